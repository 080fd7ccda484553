package getopt

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestExplain(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Int("n", 0, "")
	hints := map[string]string{"np": "use -n"}
	for arg, want := range map[string]string{
		"--np=3": "there is no option -np: use -n",
		"-x":     "there is no option -x",
		"-n=x":   `invalid value "x" for flag -n: parse error`,
	} {
		if err := Explain(fs.Parse([]string{arg}), hints); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	if err := Explain(fs.Parse([]string{"-n", "3"}), hints); err != nil {
		t.Error(err)
	}
	if err := Explain(flag.ErrHelp, hints); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v is another error now", err)
	}
}
