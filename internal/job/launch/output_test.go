package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot"
)

// What a rank writes arrives whole, however it comes.
func TestForward(t *testing.T) {
	long := strings.Repeat("y", 3*outputPiece+10)
	in := "one\ntwo\n\n" + long + "\nlast \x00\xff"
	for name, r := range map[string]io.Reader{
		"at once":       strings.NewReader(in),
		"byte for byte": iotest.OneByteReader(strings.NewReader(in)),
		"data and end":  iotest.DataErrReader(strings.NewReader(in)),
	} {
		var got bytes.Buffer
		read, write := io.Pipe()
		o := newOutbox(write)
		go func() {
			o.forward(r, report{Op: opOutput, Rank: 2, Stderr: true})
			o.close()
		}()
		lines := boot.NewLineReader(read)
		for {
			line, err := lines.Next()
			if err != nil {
				break
			}
			r, err := parseReport(line, 3)
			if err != nil || r.Op != opOutput || r.Rank != 2 || !r.Stderr {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			data, err := lines.Piece(r.Length)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(data)
		}
		if got.String() != in {
			t.Errorf("%s: %d bytes came out of %d", name, got.Len(), len(in))
		}
	}
}

func TestPrinter(t *testing.T) {
	var out, errOut bytes.Buffer
	p := newPrinter(Config{Stdout: &out, Stderr: &errOut}, 3, 0, &outputFiles{})
	p.print(0, false, []byte("a\nb"))
	p.print(0, false, []byte("c\n"))
	p.print(1, false, []byte("unfinished"))
	p.print(1, true, []byte("error\n"))
	p.print(2, false, []byte("other\n"))
	p.print(2, false, []byte("last"))
	p.ended(2)
	p.print(1, false, []byte(" end"))
	if want := "a\nbc\nother\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if err := p.close(false); err != nil || out.String() != "a\nbc\nother\nunfinished endlast" {
		t.Errorf("at the end %q, %v", out.String(), err)
	}
	if want := "error\n"; errOut.String() != want {
		t.Errorf("%q, want %q", errOut.String(), want)
	}
}

func TestPrinter_inOrder(t *testing.T) {
	var out, errOut bytes.Buffer
	p := newPrinter(Config{Stdout: &out, Stderr: &errOut, TagOutput: true, OrderOutput: true}, 5, 0, &outputFiles{})
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
	p := newPrinter(Config{Stdout: &out, TagOutput: true}, 13, 0, &outputFiles{})
	p.print(0, false, []byte("a\n\nb"))
	p.print(0, false, []byte("c\nd"))
	p.print(12, false, []byte("e\n"))
	p.print(12, true, []byte("nobody listens\n"))
	p.print(0, false, nil)
	p.print(12, false, []byte("f"))
	if err := p.close(false); err != nil {
		t.Error(err)
	}
	if want := "[0] a\n[0] \n[0] bc\n[12] e\n[0] d\n[12] f"; out.String() != want {
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
	c := rankConfig(3, "env", config.EnvRank)
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

// Nothing comes between the pieces of the only rank of an output.
func TestPrinter_alone(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(Config{Stdout: &out, TagOutput: true}, 1, 0, &outputFiles{})
	p.print(0, false, []byte("a"))
	p.print(0, false, []byte("b\nc"))
	if want := "[0] ab\n[0] c"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// terminal returns both ends of a terminal.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	var n int
	raw, err := ours.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
				err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
			}
		})
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// On a terminal a question is shown before it is answered, and the line goes on where
// it was; lines of others stay whole.
func TestPrinter_prompt(t *testing.T) {
	ours, theirs := terminal(t)
	p := newPrinter(Config{Stdin: theirs, Stdout: theirs}, 2, 0, &outputFiles{})
	shown := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(ours, b); err != nil || string(b) != want {
			t.Fatalf("%q, %v; want %q", b, err, want)
		}
	}
	p.print(0, false, []byte("name? "))
	shown("name? ")
	p.print(0, false, []byte("you\nage? "))
	shown("you\r\nage? ")
	p.print(1, false, []byte("never"))
	p.print(1, false, []byte(" cut\n"))
	shown("\r\nnever cut\r\n")
	p.print(1, false, []byte("last words"))
	p.ended(1)
	shown("last words")
	if err := p.close(false); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]Config{
		"no output of a terminal": {Stdin: theirs, Stdout: io.Discard},
		"no input of a terminal":  {Stdin: strings.NewReader(""), Stdout: theirs},
		"another rank reads":      {Stdin: theirs, Stdout: theirs, StdinTo: 1},
	} {
		if p := newPrinter(c, 2, 0, &outputFiles{}); p.sources[0][0].ask != nil {
			t.Errorf("%s: what rank 0 has begun is shown before its end", name)
		}
	}
}

// A backlog keeps what it gets, in memory, in a file, and where there can be none.
func TestBacklog(t *testing.T) {
	for name, dir := range map[string]string{"file": t.TempDir(), "no file": "/no/such/folder"} {
		t.Setenv("TMPDIR", dir)
		var b backlog
		for round := range 2 {
			var want, got bytes.Buffer
			for i := range 3*backlogMemory/outputPiece + 1 {
				piece := bytes.Repeat([]byte{byte(i + round)}, outputPiece+i)
				want.Write(piece)
				b.add(piece)
			}
			if name == "file" && cap(b.mem) > 2*backlogMemory {
				t.Errorf("%d bytes in memory", cap(b.mem))
			}
			if err := b.drain(func(p []byte) { got.Write(p) }); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s: %d bytes came out of %d, %v", name, got.Len(), want.Len(), err)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// A long line stays whole while another rank writes short ones.
func TestRun_longLine(t *testing.T) {
	const size = 50 << 20
	out, err := runJob(t, rankConfig(2, "longline", "0", strconv.Itoa(size)))
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		switch {
		case len(line) == size && strings.Count(line, "x") == size:
			long++
		case line != "short":
			t.Fatalf("a line of %d bytes, %.20q...", len(line), line)
		}
	}
	if long != 1 || strings.Count(out, "short\n") != 5000 {
		t.Errorf("%d long lines, %d short ones", long, strings.Count(out, "short\n"))
	}
}

// The last words of a rank that is killed are there, without an end of line, too.
func TestRun_lastWordsOfTheKilled(t *testing.T) {
	out, err := runJob(t, rankConfig(2, "diewithout", "1"))
	if err == nil || out != "no newline" {
		t.Errorf("%q, %v", out, err)
	}
}

// A line without an end is printed before it takes all memory, where there is no file for
// it.
func TestPrinter_lineWithoutEndAndNoRoom(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	var out bytes.Buffer
	p := newPrinter(Config{Stdout: &out}, 2, 0, &outputFiles{})
	for range 3 * backlogMemory / outputPiece {
		p.print(0, false, bytes.Repeat([]byte("x"), outputPiece))
		if n := len(p.sources[0][0].held.mem); n > 2*backlogMemory {
			t.Fatalf("%d bytes are kept", n)
		}
	}
	if err := p.close(false); err != nil || out.Len() != 3*backlogMemory {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}
