package boot

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
)

// NewKey returns a key for a job.
func NewKey() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand says
	return binary.LittleEndian.Uint64(b[:])
}

// Solo returns a job of one rank, for a process without a launcher. There is
// no launcher to end it: Abort returns, and the caller ends the process.
func Solo() Job { return Local(1)[0] }

// Local returns the jobs of n ranks that live in this process, on one host.
// Abort makes the Fence of every rank return an *AbortError and returns too.
func Local(n int) []Job {
	w := &world{
		table:   table{values: make(map[name]string)},
		size:    n,
		key:     NewKey(),
		aborted: make(chan struct{}),
		open:    make(chan struct{}),
	}
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = &local{world: w, rank: i}
	}
	return jobs
}

// An AbortError says which rank ended the job, and why.
type AbortError struct {
	Rank, Code int
	Why        string
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("boot: rank %d aborted the job with code %d: %s", e.Rank, e.Code, e.Why)
}

// world is what the ranks of Local share.
type world struct {
	table
	size    int
	key     uint64
	aborted chan struct{} // closed by Abort

	deaths

	lock    sync.Mutex // guards what follows
	cause   *AbortError
	staged  []Value
	inFence int
	open    chan struct{} // closed when the present fence is complete
	gone    []int         // ranks that have finalized
}

type local struct {
	*world
	rank int
}

func (l *local) Rank() int                   { return l.rank }
func (l *local) Size() int                   { return l.size }
func (l *local) Host() (host, localRank int) { return 0, l.rank }
func (l *local) Key() uint64                 { return l.key }
func (l *local) Lost() <-chan struct{}       { return l.aborted }

func (l *local) Put(key, value string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.staged = append(l.staged, Value{l.rank, key, []byte(value)})
	return nil
}

func (l *local) Fence() error {
	l.lock.Lock()
	if l.cause != nil || len(l.gone) > 0 {
		defer l.lock.Unlock()
		return l.failure()
	}
	open := l.open
	l.inFence++
	if l.inFence == l.size {
		l.add(l.staged)
		l.staged, l.inFence, l.open = nil, 0, make(chan struct{})
		close(open)
	}
	l.lock.Unlock()
	select {
	case <-open:
		return nil
	case <-l.aborted:
		l.lock.Lock()
		defer l.lock.Unlock()
		return l.failure()
	}
}

// Leave tells the others of a job of Local that a rank has ended while they go on.
func Leave(job Job) {
	l := job.(*local)
	l.deaths.learn(l.rank)
	_ = l.Finalize() // so that no fence waits for it
}

// failure says why no fence can complete any more.
func (w *world) failure() error {
	if w.cause != nil {
		return w.cause
	}
	return fmt.Errorf("boot: ranks %v have left the job: a fence needs all", w.gone)
}

func (l *local) Abort(code int, why string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.cause == nil {
		l.cause = &AbortError{l.rank, code, why}
		close(l.aborted)
	}
}

// Finalize of a rank that others wait for in a fence ends their wait.
func (l *local) Finalize() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.gone = append(l.gone, l.rank)
	if l.inFence > 0 && l.cause == nil {
		l.cause = &AbortError{l.rank, 1, "it has left while other ranks wait for it in a fence"}
		close(l.aborted)
	}
	return nil
}
