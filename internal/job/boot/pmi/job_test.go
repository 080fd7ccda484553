package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// launcher serves the ranks of a job in this process, one server per host.
type launcher struct {
	t     *testing.T
	hosts []*Server
	of    []int // host of each rank

	mu      sync.Mutex
	staged  []boot.Value
	waiting []*Session
	asked   []boot.Op
	aborted chan boot.Request
}

func newLauncher(t *testing.T, mapped bool, of ...int) *launcher {
	l := &launcher{t: t, of: of, aborted: make(chan boot.Request, 1)}
	for range of {
		if mapped {
			l.hosts = append(l.hosts, NewServer("test", len(of), FormatMapping(of)))
		} else {
			l.hosts = append(l.hosts, NewServer("test", len(of), ""))
		}
	}
	return l
}

// placeOn is the place of a rank with a socket to its launcher.
func placeOn(socket net.Conn, rank, size int) place {
	return place{rank: rank, size: size, socket: socket, lines: boot.NewLineReader(socket)}
}

// start serves a rank at the other end of the returned socket.
func (l *launcher) start(rank int) net.Conn {
	ours, theirs := net.Pipe()
	l.t.Cleanup(func() { ours.Close() })
	go l.serve(rank, ours)
	return theirs
}

func (l *launcher) serve(rank int, socket net.Conn) {
	defer socket.Close()
	session := l.hosts[l.of[rank]].NewSession(rank, 0, func(text string) { _, _ = socket.Write([]byte(text)) })
	lines := boot.NewLineReader(socket)
	for {
		text, err := session.Next(lines)
		if err != nil {
			return
		}
		request, err := session.Handle(text)
		if err != nil {
			l.t.Errorf("rank %d: %v", rank, err)
			return
		}
		if request != nil {
			l.note(rank, session, socket, *request)
		}
	}
}

func (l *launcher) note(rank int, session *Session, socket net.Conn, r boot.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, r.Op)
	switch r.Op {
	case boot.OpAbort:
		l.aborted <- r
		socket.Close()
	case boot.OpPut:
		l.staged = append(l.staged, boot.Value{Rank: rank, Key: r.Key, Value: r.Value})
	case boot.OpFence:
		if l.waiting = append(l.waiting, session); len(l.waiting) < len(l.of) {
			return
		}
		for _, h := range l.hosts {
			h.Add(l.staged)
		}
		for _, s := range l.waiting {
			go s.Fenced()
		}
		l.staged, l.waiting = nil, nil
	}
}

// onRanks runs body for all ranks of the launcher.
func (l *launcher) onRanks(version string, body func(j *job) error) {
	var group sync.WaitGroup
	for rank := range l.of {
		group.Go(func() {
			socket := l.start(rank)
			p := placeOn(socket, rank, len(l.of))
			p.version = version
			j, err := join(p, &bytes.Buffer{})
			if err == nil {
				err = body(j)
			}
			if err != nil {
				l.t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	group.Wait()
}

func TestJob_exchanges(t *testing.T) {
	for _, c := range []struct {
		version string
		mapped  bool
	}{{"1", true}, {"1", false}, {"2", true}, {"2", false}, {"auto", true}} {
		mapped := c.mapped
		l := newLauncher(t, mapped, 0, 0, 1, 2, 2, 2)
		var keys sync.Map
		l.onRanks(c.version, func(j *job) error {
			keys.Store(j.Key(), true)
			host, local := j.Host()
			wantHost, wantLocal := l.of[j.rank], [...]int{0, 1, 0, 0, 1, 2}[j.rank]
			if !mapped { // they really are on one
				wantHost, wantLocal = 0, j.rank
			}
			if host != wantHost || local != wantLocal || j.Size() != 6 {
				return fmt.Errorf("on host %d.%d of %d ranks, want %d.%d", host, local, j.Size(), wantHost, wantLocal)
			}
			for round := range 3 {
				if err := exchange(j, round); err != nil {
					return err
				}
			}
			return j.Finalize()
		})
		n := 0
		keys.Range(func(key, _ any) bool { n++; return key != uint64(0) })
		if n != 1 {
			t.Errorf("%d different keys", n)
		}
	}
}

// exchange puts values of which one needs several pieces.
func exchange(j boot.Job, round int) error {
	long := func(rank int) string { return strings.Repeat(fmt.Sprintf("%d %d\n\x00", rank, round), 2000) }
	if err := errors.Join(j.Put("long", long(j.Rank())), j.Put(fmt.Sprint("k", round), strconv.Itoa(j.Rank()))); err != nil {
		return err
	}
	if _, ok := j.Get(j.Rank(), fmt.Sprint("k", round)); ok {
		return errors.New("a value is visible before the fence")
	}
	if err := j.Fence(); err != nil {
		return err
	}
	for rank := range j.Size() {
		if v, _ := j.Get(rank, "long"); v != long(rank) {
			return fmt.Errorf("round %d: rank %d put %.20q", round, rank, v)
		}
		if v, _ := j.Get(rank, fmt.Sprint("k", round)); v != strconv.Itoa(rank) {
			return fmt.Errorf("round %d: rank %d put %q", round, rank, v)
		}
	}
	if _, ok := j.Get(0, "nobody put this"); ok {
		return errors.New("a value that nobody put")
	}
	if _, ok := j.Get(j.Size(), "long"); ok {
		return errors.New("a value of a rank that is not there")
	}
	return nil
}

func TestJob_aborts(t *testing.T) {
	l := newLauncher(t, true, 0)
	socket := l.start(0)
	var stderr bytes.Buffer
	j, err := join(placeOn(socket, 0, 1), &stderr)
	if err != nil {
		t.Fatal(err)
	}
	j.Abort(7, "enough")
	if r := <-l.aborted; r.Code != 7 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(stderr.String(), "enough") {
		t.Errorf("the reason is lost: %q", stderr.String())
	}
	<-j.Lost()
	if err := j.Fence(); !errors.Is(err, boot.ErrLost) {
		t.Errorf("Fence: %v", err)
	}
	j.Abort(7, "returns, because nobody can be told")
}

func TestJoin_badLauncher(t *testing.T) {
	for answers, want := range map[string]string{
		"":                            "lost the launcher",
		"nonsense\n":                  "cmd=",
		"cmd=maxes\n":                 "answers init with maxes",
		"cmd=response_to_init rc=1\n": "version",
		"cmd=response_to_init rc=0\ncmd=maxes vallen_max=3\n":                                                                       "vallen_max",
		"cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\ncmd=my_kvsname\n":                                                    "name of a table",
		"cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\ncmd=my_kvsname kvsname=k\ncmd=put_result rc=-1 msg=no\n":             "refuses put",
		"cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\ncmd=my_kvsname kvsname=k\ncmd=put_result rc=0\ncmd=barrier_result\n": "barrier_result",
	} {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			lines := boot.NewLineReader(ours)
			for line := range strings.Lines(answers) {
				if _, err := lines.Next(); err != nil {
					return
				}
				if _, err := ours.Write([]byte(line)); err != nil {
					return
				}
			}
			if answers == "" {
				return
			}
			_, _ = lines.Next() // it waits for us to hang up
		}()
		_, err := join(placeOn(theirs, 0, 1), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answers, err, want)
		}
		theirs.Close()
	}
}

// A launcher of one version is asked for the other one when it may choose.
func TestPlace_negotiates(t *testing.T) {
	for _, c := range []struct {
		version, job, answers string
		asked                 string // versions, in turn
		want                  int    // 0: an error
	}{
		{"", "", "1 0", "1", 1},
		{"auto", "7.0", "2 0", "2", 2},
		{"", "", "2 -1|2 0", "12", 2},
		{"", "7.0", "1 -1|1 0", "21", 1},
		{"1", "7.0", "1 0", "1", 1},
		{"1", "", "2 -1", "1", 0},
		{"2", "", "2 0", "2", 2},
		{"2", "", "1 1", "2", 0},
		{"", "", "3 -1", "1", 0},
		{"", "", "1 -1", "1", 0},
		{"3", "", "", "", 0},
	} {
		ours, theirs := net.Pipe()
		asked := make(chan string, 1)
		go func() {
			defer ours.Close()
			lines := boot.NewLineReader(ours)
			versions := ""
			for _, answer := range strings.FieldsFunc(c.answers, func(r rune) bool { return r == '|' }) {
				line, err := lines.Next()
				m, parseErr := Parse(line)
				if err != nil || parseErr != nil {
					t.Error(err, parseErr)
				}
				versions += m.Get("pmi_version")
				var version, rc int
				_, _ = fmt.Sscan(answer, &version, &rc)
				fmt.Fprintf(ours, "cmd=response_to_init pmi_version=%d pmi_subversion=0 rc=%d\n", version, rc)
			}
			asked <- versions
		}()
		p := placeOn(theirs, 0, 1)
		p.version, p.jobID = c.version, c.job
		version, err := p.negotiate()
		if got := <-asked; (err != nil) != (c.want == 0) || err == nil && version != c.want || got != c.asked {
			t.Errorf("%+v: version %d, %v, after asking for %s", c, version, err, got)
		}
		theirs.Close()
	}
}

func TestConn_unasked(t *testing.T) {
	ours, theirs := net.Pipe()
	c := newConn(theirs, boot.NewLineReader(theirs), 1)
	for range 2 {
		if _, err := ours.Write([]byte("cmd=barrier_out\n")); err != nil {
			t.Error(err)
		}
	}
	<-c.Lost()
	if !strings.Contains(c.cause.Error(), "nobody has asked") {
		t.Errorf("%v", c.cause)
	}
	ours.Close()
	theirs.Close()
}

func TestJoin_byDescriptor(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "launcher")
	served, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	l := newLauncher(t, true, 0)
	go l.serve(0, served)
	t.Setenv(EnvFD, strconv.Itoa(pair[1]))
	t.Setenv(EnvRank, "0")
	t.Setenv(EnvSize, "1")
	j, err := Join(&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(&bytes.Buffer{}); !errors.Is(err, boot.ErrNoLauncher) {
		t.Errorf("second Join: %v", err)
	}
	if err := j.Finalize(); err != nil {
		t.Error(err)
	}
}

func TestJoin_byPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := newLauncher(t, true, 0, 0, 0)
	go func() {
		socket, err := listener.Accept()
		if err != nil {
			return
		}
		line, err := boot.NewLineReader(socket).Next()
		if err != nil || string(line) != "cmd=initack pmiid=2" {
			t.Errorf("%q, %v", line, err)
		}
		_, _ = socket.Write([]byte("cmd=initack\ncmd=set size=3\ncmd=set rank=2\ncmd=set debug=0\n"))
		l.serve(2, socket)
	}()
	for rank := range 2 {
		go func() {
			socket := l.start(rank)
			_, _ = join(placeOn(socket, rank, 3), &bytes.Buffer{})
		}()
	}
	t.Setenv(EnvPort, listener.Addr().String())
	t.Setenv(EnvID, "2")
	j, err := Join(&bytes.Buffer{})
	if err != nil || j.Rank() != 2 || j.Size() != 3 {
		t.Errorf("%v, %v", j, err)
	}
}

func TestJoin_byPortRefuses(t *testing.T) {
	for answers, want := range map[string]string{
		"":                               "EOF",
		"nonsense\n":                     "cmd=",
		"cmd=initack rc=-1\n":            "refuses initack",
		"cmd=initack\ncmd=put_result\n":  "has to set size",
		"cmd=initack\ncmd=set size=x\n":  "size is \"x\"",
		"cmd=initack\ncmd=set rank=-1\n": "rank is \"-1\"",
		"cmd=initack\ncmd=set size=2\ncmd=set rank=2\ncmd=set debug=0\n": "rank 2 of 2",
		"cmd=initack\ncmd=set debug=0\ncmd=set a=b\ncmd=set c=d\n":       "rank -1 of 0",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			defer socket.Close()
			_, _ = boot.NewLineReader(socket).Next()
			_, _ = socket.Write([]byte(answers))
		}()
		t.Setenv(EnvPort, listener.Addr().String())
		t.Setenv(EnvID, "0")
		if _, err := Join(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answers, err, want)
		}
		listener.Close()
	}
}

func TestJoin_badEnvironment(t *testing.T) {
	if _, err := Join(nil); !errors.Is(err, boot.ErrNoLauncher) {
		t.Errorf("without any: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct{ fd, rank, size, want string }{
		{strconv.Itoa(int(null.Fd())), "0", "1", "no connection to a launcher here; start the program with xrun or mpiexec, or without any PMI_FD"},
		{"x", "0", "1", EnvFD}, {"-1", "0", "1", EnvFD}, {"3", "", "1", EnvRank}, {"3", "0", "0", EnvSize},
		{"1000000", "0", "1", "no descriptor"},
	} {
		t.Setenv(EnvFD, c.fd)
		t.Setenv(EnvRank, c.rank)
		t.Setenv(EnvSize, c.size)
		if _, err := Join(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := os.Unsetenv(EnvFD); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvPort, "garbage")
	t.Setenv(EnvID, "0")
	if _, err := Join(nil); err == nil || !strings.Contains(err.Error(), `which is "garbage": dial tcp: address garbage: missing port in address; start the program with xrun`) {
		t.Errorf("without a port: %v", err)
	}
}

// A rank of another library puts nothing that ranks of this one look for.
func TestJoin_partnerOfAnotherLibrary(t *testing.T) {
	l := newLauncher(t, true, 0, 0)
	other := l.start(1)
	go func() {
		for _, line := range []string{"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=barrier_in\n"} {
			_, _ = other.Write([]byte(line))
			_, _ = boot.NewLineReader(other).Next()
		}
	}()
	_, err := join(placeOn(l.start(0), 0, 2), &bytes.Buffer{})
	var pe *PartnerError
	if !errors.As(err, &pe) || pe.Rank != 1 || !strings.Contains(err.Error(), "rank 1 runs another MPI library, or another version of this one: build all programs") {
		t.Errorf("%v", err)
	}
}
