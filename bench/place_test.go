package bench

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// rootEnv makes the test binary say whether it may make a testbed.
const rootEnv = "XWARP_TEST_ROOT"

// As in a container without privileges.
func TestRoot_withoutCapabilities(t *testing.T) {
	if os.Getenv(rootEnv) != "" {
		t.Log("root:", Root())
		return
	}
	if os.Geteuid() != 0 {
		if Root() {
			t.Error("an ordinary user may make a testbed")
		}
		return
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("needs setpriv to give capabilities up")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, without := range []string{"-sys_admin", "-net_admin"} {
		cmd := exec.Command(setpriv, "--bounding-set="+without, self, "-test.run=^TestRoot_withoutCapabilities$", "-test.v")
		cmd.Env = append(os.Environ(), rootEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "root: false") {
			t.Errorf("%s: %v\n%s", without, err, out)
		}
	}
}
