package cli

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
)

func TestConfigured(t *testing.T) {
	got := Configured("Options\n  $XWARP_IPV6\n          So it is\n          anyway\n  $XWARP_EAGER_NEAR\n  --own   as it was\n\nEnvironment\n  $*\nend\n", 10)
	for _, want := range []string{
		"Options\n  --ipv6, -6\n          use IPv6 addresses of the hosts' devices. So it is anyway\n  --eager-near N\n          longest message",
		"else 16k)\n  --own   as it was\n\nEnvironment\n",
		"\n  XWARP_IPV6\n          as --ipv6\n", "\n  XWARP_SHARED\n          0: messages inside", "\nend\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, config.EnvBootFD) {
		t.Error("what is no user's affair is listed")
	}
	for line := range strings.Lines(got) {
		if len(line) > helpWidth+1 {
			t.Errorf("too long: %s", line)
		}
	}
	for _, g := range config.Groups() {
		for _, v := range g.Vars {
			if g.Users != strings.Contains(got, "\n  "+v.Name+"\n") {
				t.Errorf("%s: listed or not, against the table", v.Name)
			}
		}
	}
}
