package boot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/config"
)

// ErrLost says that the launcher is gone, and the job with it.
var ErrLost = errors.New("boot: lost the launcher: the job is being ended")

// Watched is a Job that knows when its launcher is gone. The jobs of Join and
// Local are.
type Watched interface {
	Job
	// Lost is closed when the launcher is gone or the job was aborted. The
	// process should end soon; where it runs under xrun on the same host
	// the kernel kills it anyway.
	Lost() <-chan struct{}
}

// WithGhosts is a Job with ghosts: processes of the launcher's own that serve the ranks. They
// take part in its table under the numbers behind those of the ranks.
type WithGhosts interface {
	Job
	// Ghosts returns how many there are, on all hosts.
	Ghosts() int
}

// Ghosts returns how many ghosts a job has.
func Ghosts(j Job) int {
	if h, ok := j.(WithGhosts); ok {
		return h.Ghosts()
	}
	return 0
}

// Witness is a Job whose ranks may die while the others go on.
type Witness interface {
	Job
	// Deaths returns the ranks that have ended, in whatever way, in the order
	// in which this became known here, without the first known ones. A launcher
	// that ends the job when a rank dies tells of none.
	Deaths(known int) []int
}

// Stateful is a Job whose launcher may ask at any time what the process does.
type Stateful interface {
	Job
	// OnState makes the answer what state returns. It is called by a goroutine of
	// its own, whatever the others do.
	OnState(state func() string)
}

// Join returns the job that this process was started for. It returns
// ErrNoLauncher for a process without a launcher, which may then be a job of
// its own (Solo), an *EnvError for an environment that makes no sense, and an
// error when the launcher cannot be talked to. A process can join once: the
// children of a rank are not ranks.
func Join() (Job, error) {
	p, err := placementFromEnv(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	file, err := bootSocket(p.fd)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{config.EnvBootFD, EnvPMIFD, config.EnvSlot} {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("boot: %w", err)
		}
	}
	return join(p, file)
}

func join(p placement, socket *os.File) (Job, error) {
	j := &joined{
		table:  table{values: make(map[name]string)},
		p:      p,
		socket: socket,
		fenced: make(chan []Value, 1),
		lost:   make(chan struct{}),
	}
	if err := j.send(Request{Op: OpHello, Version: WireVersion}); err != nil {
		return nil, err
	}
	lines := NewLineReader(socket)
	line, err := lines.Next()
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrLost, err)
	}
	welcome, err := ParseReply(line)
	if err == nil && welcome.Op != OpWelcome {
		err = fmt.Errorf("first line is %q", welcome.Op)
	}
	if err != nil {
		return nil, fmt.Errorf("boot: launcher: %w", err)
	}
	j.key, j.secret = welcome.JobKey, welcome.Secret
	go j.read(lines)
	return j, nil
}

// joined is the job of a process that xrun started.
type joined struct {
	table
	p      placement
	key    uint64
	secret []byte
	socket *os.File
	write  sync.Mutex
	quota  Quota // guarded by write
	fence  sync.Mutex
	fenced chan []Value
	lost   chan struct{}
	cause  error // why lost; valid once lost is closed
	deaths deaths
	state  atomic.Pointer[func() string]
}

// deaths lists ranks that have ended while others go on.
type deaths struct {
	mu    sync.Mutex
	ranks []int
}

func (d *deaths) learn(ranks ...int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ranks = append(d.ranks, ranks...)
}

// Deaths returns the ranks that have ended, without the first known ones.
func (d *deaths) Deaths(known int) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ranks[known:len(d.ranks):len(d.ranks)]
}

func (j *joined) Rank() int                   { return j.p.rank }
func (j *joined) Size() int                   { return j.p.size }
func (j *joined) Ghosts() int                 { return j.p.ghosts }
func (j *joined) Host() (host, localRank int) { return j.p.host, j.p.localRank }
func (j *joined) Key() uint64                 { return j.key }
func (j *joined) Secret() []byte              { return j.secret }
func (j *joined) Lost() <-chan struct{}       { return j.lost }
func (j *joined) Deaths(known int) []int      { return j.deaths.Deaths(known) }

func (j *joined) OnState(state func() string) { j.state.Store(&state) }

// read takes what the launcher says until it is gone.
func (j *joined) read(lines *LineReader) {
	defer close(j.lost)
	for {
		line, err := lines.Next()
		if err != nil {
			j.cause = fmt.Errorf("%w (%w)", ErrLost, err)
			return
		}
		reply, err := ParseReply(line)
		if err != nil {
			j.cause = fmt.Errorf("boot: launcher: %w", err)
			return
		}
		if reply.Op == OpEnded {
			j.deaths.learn(slices.DeleteFunc(reply.Ranks, func(rank int) bool { return rank >= j.Size()+j.Ghosts() })...)
			continue
		}
		if reply.Op == OpState {
			if state := j.state.Load(); state != nil {
				go func() {
					text := (*state)()
					_ = j.send(Request{Op: OpState, Value: []byte(text[:min(len(text), maxState)])}) // a launcher that is gone need not get it
				}()
			}
			continue
		}
		if reply.Op != OpFenced {
			j.cause = fmt.Errorf("boot: launcher: unexpected %q", reply.Op)
			return
		}
		select {
		case j.fenced <- reply.Values:
		default:
			j.cause = errors.New("boot: launcher: ended a fence that nobody waits in")
			return
		}
	}
}

func (j *joined) send(r Request) error {
	line, err := AppendLine(nil, r)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	j.write.Lock()
	defer j.write.Unlock()
	if r.Op == OpPut {
		if err := j.quota.Take(r.Key, r.Value); err != nil {
			return fmt.Errorf("boot: %w", err)
		}
	}
	if _, err := j.socket.Write(line); err != nil {
		return fmt.Errorf("%w (%w)", ErrLost, err)
	}
	return nil
}

func (j *joined) Put(key, value string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	return j.send(Request{Op: OpPut, Key: key, Value: []byte(value)})
}

func (j *joined) Fence() error {
	j.fence.Lock()
	defer j.fence.Unlock()
	if err := j.send(Request{Op: OpFence}); err != nil {
		return err
	}
	select {
	case values := <-j.fenced:
		j.add(values)
		return nil
	case <-j.lost:
		return j.cause
	}
}

func (j *joined) Abort(code int, why string) {
	if j.send(Request{Op: OpAbort, Code: code, Why: why[:min(len(why), maxWhy)]}) == nil {
		<-j.lost // the launcher kills this process first
	}
}

func (j *joined) Finalize() error { return j.send(Request{Op: OpFinalize}) }
