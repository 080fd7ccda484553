package job

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestMain_status(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		run      error
		status   int
		out, err string
	}{
		"right":          {[]string{"--n", "3"}, nil, 0, "n is 3", ""},
		"help":           {[]string{"--help"}, nil, 0, "how to use it", ""},
		"unknown flag":   {[]string{"--m"}, nil, 1, "", "try: flag provided but not defined: -m\n"},
		"argument":       {[]string{"x"}, nil, 1, "", `try: "x" is not an option: try --help lists them`},
		"out of range":   {[]string{"--n", "9"}, nil, 1, "", "try: n is too large"},
		"a wrong answer": {nil, errors.New("wrong"), 1, "", "try: wrong"},
	} {
		var n int
		var stdout, stderr strings.Builder
		status := Main(Program{
			Name: "try", Usage: "how to use it",
			Flags: func(fs *flag.FlagSet) { fs.IntVar(&n, "n", 1, "") },
			Check: func() error {
				if n > 5 {
					return errors.New("n is too large")
				}
				return nil
			},
			Run: func(comm *mpi.Comm, out io.Writer) error {
				if n == 3 {
					_, _ = io.WriteString(out, "n is 3")
				}
				return test.run
			},
		}, test.args, &stdout, &stderr)
		if status != test.status || !strings.HasPrefix(stdout.String(), test.out) || !strings.HasPrefix(stderr.String(), test.err) {
			t.Errorf("%s: status %d, %q, %q", name, status, stdout.String(), stderr.String())
		}
	}
}

func TestPart_coversAll(t *testing.T) {
	for n := range 20 {
		for parts := 1; parts < 25; parts++ {
			at := 0
			for i := range parts {
				from, to := Part(n, parts, i)
				if from != at || to < from || to-from > n/parts+1 {
					t.Fatalf("%d of %d things: part %d is %d to %d", n, parts, i, from, to)
				}
				at = to
			}
			if at != n {
				t.Fatalf("%d things in %d parts: %d are left", n, parts, n-at)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	err := mpi.Run(3, func(p *mpi.Proc) error {
		if err := Verdict(p.World(), ""); err != nil {
			return err
		}
		wrong := ""
		if p.World().Rank() == 0 {
			wrong = "too large"
		}
		err := Verdict(p.World(), wrong)
		if err == nil || strings.Contains(err.Error(), "too large") != (wrong != "") {
			t.Errorf("rank %d: %v", p.World().Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
