package launch

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRun_stdinGoesToRankZero(t *testing.T) {
	const size = 1_000_000
	c := rankConfig(3, "stdin")
	c.TagOutput = true
	c.Stdin = iotest.HalfReader(strings.NewReader(strings.Repeat("z", size)))
	out, err := runJob(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[0] read 1000000\n", "[1] read 0\n", "[2] read 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
}

func TestRun_stdinGoesWhereItIsAsked(t *testing.T) {
	const size = 1_000_000
	for to, want := range map[int][]int{2: {0, 0, size}, StdinAll: {size, size, size}} {
		c := rankConfig(3, "stdin")
		c.TagOutput, c.StdinTo = true, to
		c.Stdin = strings.NewReader(strings.Repeat("z", size))
		out, err := runJob(t, c)
		if err != nil {
			t.Fatal(err)
		}
		for rank, n := range want {
			if line := fmt.Sprintf("[%d] read %d\n", rank, n); !strings.Contains(out, line) {
				t.Errorf("to %d: no %q in %q", to, line, out)
			}
		}
	}
}

// All read the standard input, but one that ends at once: the others get all of it.
func TestRun_stdinOfOneThatTakesNoMore(t *testing.T) {
	c := rankConfig(2, "stdin")
	c.Further = []App{{Program: "true"}, {Program: "sh", Args: []string{"-c", "exec <&-; sleep 0.1"}}}
	c.StdinTo, c.Stdin = StdinAll, strings.NewReader(strings.Repeat("z", 1_000_000))
	if out, err := runJob(t, c); err != nil || out != "read 1000000\nread 1000000\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestReaders(t *testing.T) {
	c := Config{StdinTo: StdinAll}
	r := c.newReaders(3)
	for i, step := range []struct {
		got, want bool
	}{
		{r.room(0), false}, {r.room(0), false}, {r.room(2), false}, {r.room(1), true}, // a piece is under way
		{r.room(1), false}, {r.gone(1), false}, {r.room(0), false}, {r.gone(2), true}, // another one
		{r.gone(7), false}, {r.gone(0), false}, {r.room(0), false}, // nobody is left
	} {
		if step.got != step.want {
			t.Errorf("step %d: %v", i, step.got)
		}
	}
	c.StdinTo = StdinNone
	if r = c.newReaders(1); r.room(0) || r.gone(0) {
		t.Error("somebody reads")
	}
}

func TestRun_withoutStdin(t *testing.T) {
	out, err := runJob(t, rankConfig(2, "stdin"))
	if err != nil || out != "read 0\nread 0\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A rank that does not read must not keep the job from ending.
func TestRun_stdinThatNobodyReads(t *testing.T) {
	c := rankConfig(2, "env", "HOME")
	c.Stdin = endless{}
	if _, err := runJob(t, c); err != nil {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestStdinReader_readsOnlyWhenAsked(t *testing.T) {
	p := newStdinReader(strings.NewReader("abc"))
	defer p.close()
	select {
	case b := <-p.data:
		t.Errorf("%q came unasked", b)
	default:
	}
	p.more()
	p.more() // at most one is remembered
	if b := <-p.data; string(b) != "abc" {
		t.Errorf("%q", b)
	}
	p.more()
	if b := <-p.data; len(b) != 0 {
		t.Errorf("%q after the end", b)
	}
}

// A rank that reads the standard input can ask for what it wants without ending the line.
func TestRun_prompt(t *testing.T) {
	ours, theirs := terminal(t)
	c := Config{Ranks: 2, Program: "sh", Args: []string{"-c", `[ $XWARP_RANK = 1 ] && exit; printf 'name? '; read x; [ "$x" = you ]`}}
	c.Stdin, c.Stdout = theirs, theirs
	go func() {
		asked := ""
		for b := make([]byte, 100); !strings.HasSuffix(asked, "name? "); {
			n, err := ours.Read(b)
			if err != nil {
				return
			}
			asked += string(b[:n])
		}
		_, _ = ours.WriteString("you\n")
	}()
	if err := Run(c); err != nil {
		t.Error(err)
	}
}
