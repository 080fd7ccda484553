package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/xwarp/xwarp/internal/boot"
)

func TestForward_wholeLines(t *testing.T) {
	long := strings.Repeat("y", maxLine+10)
	in := "one\ntwo\n\n" + long + "\nlast"
	for name, r := range map[string]io.Reader{
		"at once":       strings.NewReader(in),
		"byte for byte": iotest.OneByteReader(strings.NewReader(in)),
		"data and end":  iotest.DataErrReader(strings.NewReader(in)),
	} {
		var got bytes.Buffer
		var partial int
		forward(r, 0, func(b []byte) {
			if b[len(b)-1] != '\n' {
				partial++
			}
			got.Write(b)
		})
		if got.String() != in {
			t.Errorf("%s: %d bytes came out of %d", name, got.Len(), len(in))
		}
		if partial != 2 { // a piece of the long line, and the last one
			t.Errorf("%s: %d unfinished lines", name, partial)
		}
	}
}

func TestPrinter(t *testing.T) {
	var out, errOut bytes.Buffer
	p := newPrinter(Config{Stdout: &out, Stderr: &errOut}, &outputFiles{})
	p.print(0, false, []byte("a\nb"))
	p.print(0, false, []byte("c\n"))
	p.print(1, false, []byte("unfinished"))
	p.print(1, true, []byte("error\n"))
	p.print(2, false, []byte("other\n"))
	p.print(1, false, []byte("end"))
	if want := "a\nbc\nunfinished\nother\nend"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if want := "error\n"; errOut.String() != want {
		t.Errorf("%q, want %q", errOut.String(), want)
	}
}

func TestPrinter_inOrder(t *testing.T) {
	var out, errOut bytes.Buffer
	p := newPrinter(Config{Stdout: &out, Stderr: &errOut, TagOutput: true, OrderOutput: true}, &outputFiles{})
	expect := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	p.print(2, false, []byte("c"))
	p.print(1, false, []byte("b\n"))
	p.print(1, true, []byte("at once\n"))
	p.print(0, false, []byte("a\n"))
	expect("[0] a\n")
	p.ended(1)
	p.print(2, false, []byte("cc\n"))
	p.print(0, false, []byte("aa\n"))
	expect("[0] a\n[0] aa\n")
	p.ended(0)
	expect("[0] a\n[0] aa\n[1] b\n[2] ccc\n")
	p.print(0, false, []byte("a child of it\n"))
	p.print(4, false, []byte("of a lost host\n"))
	p.print(3, false, []byte("too\n"))
	if err := p.close(false); err != nil {
		t.Error(err)
	}
	expect("[0] a\n[0] aa\n[1] b\n[2] ccc\n[0] a child of it\n[3] too\n[4] of a lost host\n")
	if errOut.String() != "[1] at once\n" {
		t.Errorf("%q", errOut.String())
	}
}

func TestPrinter_tags(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(Config{Stdout: &out, TagOutput: true}, &outputFiles{})
	p.print(0, false, []byte("a\n\nb"))
	p.print(0, false, []byte("c\nd"))
	p.print(12, false, []byte("e\n"))
	p.print(12, true, []byte("nobody listens\n"))
	p.print(0, false, nil)
	if want := "[0] a\n[0] \n[0] bc\n[0] d\n[12] e\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Lines of ranks that write at the same time stay whole.
func TestRun_linesDoNotMix(t *testing.T) {
	c := rankConfig(4, "lines")
	c.TagOutput = true
	out, err := runJob(t, c)
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, 4)
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		var tag, rank, i int
		if _, err := fmt.Sscanf(line, "[%d] <%d %d", &tag, &rank, &i); err != nil || tag != rank || i != next[rank] ||
			!strings.HasSuffix(line, " "+strings.Repeat("x", i)+">") {
			t.Fatalf("line %q, %v", line, err)
		}
		next[rank]++
	}
	for rank, n := range next {
		if n != 500 {
			t.Errorf("rank %d: %d lines", rank, n)
		}
	}
}

func TestRun_outputWithoutEndOfLine(t *testing.T) {
	out, err := runJob(t, rankConfig(1, "noeol"))
	if err != nil || out != "no newline" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRun_outputFiles(t *testing.T) {
	dir := t.TempDir()
	c := rankConfig(3, "env", boot.EnvRank)
	c.OutFile, c.ErrFile = dir+"/100%%-%r.%h", dir+"/errors"
	out, err := runJob(t, c)
	if err != nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 3 {
		if text, err := os.ReadFile(fmt.Sprintf("%s/100%%-%d.%s", dir, rank, host)); err != nil || string(text) != fmt.Sprintln(rank) {
			t.Errorf("rank %d: %q, %v", rank, text, err)
		}
	}
	if text, err := os.ReadFile(dir + "/errors"); err != nil || len(text) != 0 {
		t.Errorf("errors: %q, %v", text, err)
	}
}

// A file that cannot be made ends the job before it begins, and a full disk says so.
func TestRun_outputFilesFail(t *testing.T) {
	for name, want := range map[string]string{"/no/such/folder/%r": "output of rank 0: open /no/such/folder/0: ", "/dev/full": "output of rank 0: write /dev/full: no space left"} {
		c := rankConfig(1, "env", "HOME")
		c.OutFile = name
		if _, err := runJob(t, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// The job does its work, and its output is not lost in silence.
func TestRun_outputFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	err = Run(Config{Program: "echo", Args: []string{"lost"}, Stdout: full})
	if ExitCode(err) != ExitLauncher || !strings.Contains(fmt.Sprint(err), "output of rank 0: write /dev/full: no space left") {
		t.Error(err)
	}
}

// What was written before a deadline is read behind it, to the last byte, and what
// others write after it, too.
func TestLastWords(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := make(chan struct{}, 1)
	l := &lastWords{r, func() { said <- struct{}{} }}
	want := strings.Repeat("last words ", 1000)
	_, _ = w.WriteString(want)
	if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		k, err := l.Read(got[n:min(n+4096, len(got))])
		if n += k; err != nil || len(said) > 0 {
			t.Fatalf("%d bytes, %v; told that it is all: %d", n, err, len(said))
		}
	}
	rest := make(chan string)
	go func() {
		b, err := io.ReadAll(l)
		rest <- fmt.Sprint(string(b), err)
	}()
	<-said
	_, _ = w.WriteString("more")
	w.Close()
	if after := <-rest; string(got) != want || after != "more<nil>" {
		t.Errorf("%.20q..., and then %q", got, after)
	}
}

// A question is shown before it is answered, and the line goes on where it was.
func TestForward_prompt(t *testing.T) {
	read, write := io.Pipe()
	got := make(chan string)
	go func() {
		forward(read, time.Millisecond, func(b []byte) { got <- string(b) })
		close(got)
	}()
	for _, step := range []struct{ write, emit string }{
		{"name? ", "name? "}, {"\nhello", "\n"}, {"", "hello"}, {", ", ", "}, {"you\nbye", "you\n"}, {"", "bye"},
	} {
		if _, err := io.WriteString(write, step.write); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != step.emit {
			t.Errorf("after %q: %q, want %q", step.write, s, step.emit)
		}
	}
	write.Close()
	if s, more := <-got; more {
		t.Errorf("%q at the end", s)
	}
}
