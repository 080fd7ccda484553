package boot

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// launcher is the other end of a rank's socket.
type launcher struct {
	t     *testing.T
	f     *os.File
	lines *LineReader
}

func newLauncher(t *testing.T) (*launcher, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "rank")
	t.Cleanup(func() { f.Close() })
	return &launcher{t, f, NewLineReader(f)}, os.NewFile(uintptr(fds[1]), "launcher")
}

func (l *launcher) say(r Reply) {
	l.t.Helper()
	line, err := AppendLine(nil, r)
	if err == nil {
		_, err = l.f.Write(line)
	}
	if err != nil {
		l.t.Error(err)
	}
}

func (l *launcher) expect(op Op) Request {
	l.t.Helper()
	line, err := l.lines.Next()
	if err != nil {
		l.t.Errorf("waiting for %s: %v", op, err)
		return Request{}
	}
	r, err := ParseRequest(line)
	if err != nil || r.Op != op {
		l.t.Errorf("got %s, %v; want %s", line, err, op)
	}
	return r
}

func joinTo(t *testing.T) (*launcher, Watched) {
	t.Helper()
	l, socket := newLauncher(t)
	l.say(Reply{Op: OpWelcome, Version: WireVersion, JobKey: 42})
	j, err := join(placement{rank: 1, size: 2, host: 1, localRank: 0}, socket)
	if err != nil {
		t.Fatal(err)
	}
	l.expect(OpHello)
	return l, j.(Watched)
}

func TestJoin_putFenceGet(t *testing.T) {
	l, j := joinTo(t)
	if h, lr := j.Host(); j.Rank() != 1 || j.Size() != 2 || h != 1 || lr != 0 || j.Key() != 42 {
		t.Errorf("rank %d of %d, host %d %d, key %d", j.Rank(), j.Size(), h, lr, j.Key())
	}
	if err := j.Put("", "x"); err == nil {
		t.Error("an empty key was taken")
	}
	if err := j.Put("a", "mine\xff"); err != nil {
		t.Error(err)
	}
	if r := l.expect(OpPut); r.Key != "a" || string(r.Value) != "mine\xff" {
		t.Errorf("put %+v", r)
	}
	done := make(chan error)
	go func() { done <- j.Fence() }()
	l.expect(OpFence)
	if _, ok := j.Get(1, "a"); ok {
		t.Error("a value is visible before the fence")
	}
	l.say(Reply{Op: OpFenced, Values: []Value{{0, "a", []byte("theirs")}, {1, "a", []byte("mine\xff")}}})
	if err := <-done; err != nil {
		t.Error(err)
	}
	for rank, want := range []string{"theirs", "mine\xff"} {
		if v, ok := j.Get(rank, "a"); !ok || v != want {
			t.Errorf("rank %d: %q, %v", rank, v, ok)
		}
	}
	if _, ok := j.Get(0, "b"); ok {
		t.Error("a value nobody put")
	}
	if err := j.Finalize(); err != nil {
		t.Error(err)
	}
	l.expect(OpFinalize)
}

// The launcher may ask what the rank does; one that has nothing to say does not answer.
func TestJoin_state(t *testing.T) {
	l, j := joinTo(t)
	l.say(Reply{Op: OpState})
	l.say(Reply{Op: OpEnded, Ranks: []int{1}}) // it has been read
	for len(j.(Witness).Deaths(0)) == 0 {
		runtime.Gosched()
	}
	j.(Stateful).OnState(func() string { return "busy\n\xff" })
	for range 2 {
		l.say(Reply{Op: OpState})
		if r := l.expect(OpState); string(r.Value) != "busy\n\xff" {
			t.Errorf("%q", r.Value)
		}
	}
}

func TestJoin_launcherDies(t *testing.T) {
	l, j := joinTo(t)
	done := make(chan error)
	go func() { done <- j.Fence() }()
	l.expect(OpFence)
	l.f.Close()
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("Fence: %v", err)
	}
	<-j.Lost()
	if err := j.Put("a", "b"); !errors.Is(err, ErrLost) {
		t.Errorf("Put: %v", err)
	}
	j.Abort(1, "returns, because nobody can be told")
}

func TestJoin_abortDoesNotReturn(t *testing.T) {
	l, j := joinTo(t)
	returned := make(chan struct{})
	go func() {
		j.Abort(9, "enough")
		close(returned)
	}()
	if r := l.expect(OpAbort); r.Code != 9 || r.Why != "enough" {
		t.Errorf("%+v", r)
	}
	select {
	case <-returned:
		t.Error("Abort returned while the launcher lives")
	default:
	}
	l.f.Close()
	<-returned
}

func TestJoin_badLauncher(t *testing.T) {
	for _, r := range []Reply{
		{Op: OpFenced},
		{Op: OpWelcome, Version: WireVersion + 1},
		{Op: "nonsense"},
	} {
		l, socket := newLauncher(t)
		l.say(r)
		if _, err := join(placement{size: 1}, socket); err == nil {
			t.Errorf("joined a launcher that says %+v", r)
		}
		socket.Close()
	}
	l, j := joinTo(t)
	l.say(Reply{Op: OpWelcome, Version: WireVersion})
	<-j.Lost()
	if err := j.Fence(); err == nil {
		t.Error("Fence works with a launcher that makes no sense")
	}
}

func TestJoin_onlyOnce(t *testing.T) {
	l, socket := newLauncher(t)
	l.say(Reply{Op: OpWelcome, Version: WireVersion})
	for name, value := range good() {
		t.Setenv(name, value)
	}
	fd, err := unix.Dup(int(socket.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(config.EnvBootFD, strconv.Itoa(fd))
	if j, err := Join(); err != nil || j.Rank() != 3 {
		t.Errorf("%v, %v", j, err)
	}
	if _, err := Join(); !errors.Is(err, ErrNoLauncher) {
		t.Errorf("second Join: %v", err)
	}
}
