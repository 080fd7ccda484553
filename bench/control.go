package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/carrier/secure"
)

// protocolVersion is the version of the control protocol.
const protocolVersion = 3

// maxLine is the longest control message in bytes.
const maxLine = 256 << 10

// The control protocol is one JSON object per line, in both directions:
//
//	client             server
//	hello spec  ------>          what to measure
//	            <------ hello    agreed, and the job key; or abort
//	fence       <----->  fence   addresses of both ends, as often as needed
//	run burst   ------>
//	            <------ ready    the server's loop starts
//	        (frames)
//	stop        ------>          the client has all it wants
//	            <------ done
//	bye         ------>          or the next run
//
// Either end may send abort, with the reason, at any time.
const (
	opHello = "hello"
	opFence = "fence"
	opRun   = "run"
	opReady = "ready"
	opStop  = "stop"
	opDone  = "done"
	opBye   = "bye"
	opAbort = "abort"
)

// message is one line of the control protocol.
type message struct {
	Op      string            `json:"op"`
	Version int               `json:"version,omitempty"`    // hello
	Session int               `json:"session,omitempty"`    // hello: which of the client's configurations
	Spec    *Spec             `json:"spec,omitempty"`       // hello of the client
	Key     uint64            `json:"key,omitempty,string"` // hello of the server
	Public  []byte            `json:"public,omitempty"`     // hello, of a test with encryption: see agreeOn
	Values  map[string]string `json:"values,omitempty"`     // fence
	Burst   *Burst            `json:"burst,omitempty"`      // run
	Tally   *Tally            `json:"tally,omitempty"`      // done, where messages may get lost
	Losses  *trace.Losses     `json:"losses,omitempty"`     // done
	Code    int               `json:"code,omitempty"`       // abort
	Why     string            `json:"why,omitempty"`        // abort
}

// parseMessage reads one line. Whatever the line holds, the message that it
// returns is safe to act on.
func parseMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("not a message of xperf: %w", err)
	}
	switch m.Op {
	case opHello:
		if m.Version != protocolVersion {
			return message{}, fmt.Errorf("the other end speaks version %d of the control protocol, this one %d: use the same xperf on both", m.Version, protocolVersion)
		}
		if m.Spec != nil {
			if err := m.Spec.Check(); err != nil {
				return message{}, err
			}
		}
		if m.Session < 0 {
			return message{}, fmt.Errorf("hello with session %d", m.Session)
		}
	case opRun:
		if m.Burst == nil {
			return message{}, errors.New("run without a burst")
		}
		if err := m.Burst.check(); err != nil {
			return message{}, err
		}
	case opDone:
		if m.Tally != nil {
			if err := m.Tally.check(); err != nil {
				return message{}, err
			}
		}
	case opFence, opReady, opStop, opBye, opAbort:
	default:
		return message{}, fmt.Errorf("unknown message %q", m.Op)
	}
	return m, nil
}

// PeerError is what the other end reported before it gave up.
type PeerError struct {
	Peer string
	Why  string
}

func (e *PeerError) Error() string { return fmt.Sprintf("%s reports: %s", e.Peer, e.Why) }

// ErrPeerLost is wrapped by every error that says the control connection broke.
var ErrPeerLost = errors.New("the other end is gone")

// Pair is the control connection between the two ends of a test, and the job
// of two ranks that they form: it implements boot.Job, so that MPI runs
// between them without a launcher. The server is rank 0.
type Pair struct {
	conn   net.Conn
	rank   int
	key    uint64
	secret []byte                     // of a test with encryption
	abort  func(code int, why string) // see Abort

	inbox chan message
	gone  chan struct{} // closed when nothing more will come
	err   error         // why; read after gone was closed
	news  atomic.Int32  // messages in the inbox, and one more when gone
	over  atomic.Bool   // the other end has given up, or is gone
	bye   atomic.Bool   // this end has said that the test is over

	mu      sync.Mutex
	pending map[string]string // put since the last fence
	tables  [2]map[string]string
}

// newPair takes over conn. abort ends this process; see Pair.Abort.
func newPair(conn net.Conn, rank int, abort func(code int, why string)) *Pair {
	p := &Pair{conn: conn, rank: rank, abort: abort, inbox: make(chan message, 16), gone: make(chan struct{})}
	p.tables = [2]map[string]string{{}, {}}
	go p.read()
	return p
}

func (p *Pair) read() {
	in := bufio.NewReader(p.conn)
	if first, err := in.Peek(1); err == nil && first[0] == secure.Preamble[0] { // no message begins like that
		p.finish(fmt.Errorf("control connection to %s: %w", p.conn.RemoteAddr(), errKeyMissing))
		return
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		m, err := parseMessage(lines.Bytes())
		if err != nil {
			p.finish(err)
			return
		}
		p.over.Store(p.over.Load() || m.Op == opAbort)
		p.news.Add(1)
		p.inbox <- m
	}
	err := lines.Err()
	if errors.Is(err, secure.ErrForged) {
		p.finish(fmt.Errorf("control connection to %s: %w: give both ends the same --secure-key", p.conn.RemoteAddr(), err))
		return
	}
	p.finish(fmt.Errorf("%w: control connection to %s: %w", ErrPeerLost, p.conn.RemoteAddr(), cmp.Or(err, io.EOF)))
}

func (p *Pair) finish(err error) {
	p.err = err
	close(p.inbox)
	close(p.gone)
	p.over.Store(true)
	p.news.Add(1)
}

// Spoken reports whether the other end has said something or is gone. A
// spinning loop asks it now and then; it costs one load.
func (p *Pair) Spoken() bool { return p.news.Load() != 0 }

// Over reports whether the other end has given up or is gone.
func (p *Pair) Over() bool { return p.over.Load() }

func (p *Pair) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("control message of %d bytes is longer than %d", len(line), maxLine)
	}
	if _, err := p.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: control connection to %s: %w", ErrPeerLost, p.conn.RemoteAddr(), err)
	}
	return nil
}

// receive waits for the next message, which must be one of the wanted ones.
func (p *Pair) receive(want ...string) (message, error) {
	m, ok := <-p.inbox
	if !ok {
		return message{}, p.err
	}
	p.news.Add(-1)
	if m.Op == opAbort {
		return message{}, &PeerError{p.conn.RemoteAddr().String(), m.Why}
	}
	if slices.Contains(want, m.Op) {
		return m, nil
	}
	return message{}, fmt.Errorf("%s sent %q when %q was due", p.conn.RemoteAddr(), m.Op, want)
}

// refuse tells the other end why this one gives up, unless it knows already.
func (p *Pair) refuse(err error) {
	if _, peer := errors.AsType[*PeerError](err); peer || errors.Is(err, ErrPeerLost) {
		return
	}
	_ = p.send(message{Op: opAbort, Code: 1, Why: err.Error()}) // there is no other end to tell
}

func (p *Pair) close() error { return p.conn.Close() }

// Rank returns 0 on the server and 1 on the client.
func (p *Pair) Rank() int { return p.rank }

// Size returns 2.
func (p *Pair) Size() int { return 2 }

// Host returns the rank as the number of the host: the ends never share
// memory, also when they happen to run on one machine, for it is the network
// that they measure.
func (p *Pair) Host() (host, localRank int) { return p.rank, 0 }

// Key returns the secret that the server made up for this test.
func (p *Pair) Key() uint64 { return p.key }

// Put makes a value visible to the other end after the next Fence.
func (p *Pair) Put(key, value string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = map[string]string{}
	}
	p.pending[key] = value
	return nil
}

// Fence waits until both ends have called it.
func (p *Pair) Fence() error {
	p.mu.Lock()
	mine := p.pending
	p.pending = nil
	p.mu.Unlock()
	if err := p.send(message{Op: opFence, Values: mine}); err != nil {
		return err
	}
	m, err := p.receive(opFence)
	if err != nil {
		return err
	}
	p.mu.Lock()
	maps.Copy(p.tables[p.rank], mine)
	maps.Copy(p.tables[1-p.rank], m.Values)
	p.mu.Unlock()
	return nil
}

// Get returns what an end has put under key before the last Fence.
func (p *Pair) Get(rank int, key string) (string, bool) {
	if rank != 0 && rank != 1 {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.tables[rank][key]
	return v, ok
}

// Abort tells the other end why the test ends here, and then ends this process
// if the maker of the pair has set how.
func (p *Pair) Abort(code int, why string) {
	_ = p.send(message{Op: opAbort, Code: code, Why: why}) // the other end may be gone
	if p.abort != nil {
		p.abort(code, why)
	}
}

// Lost is closed when the other end can no longer be heard (boot.Watched).
func (p *Pair) Lost() <-chan struct{} { return p.gone }

// Finalize does nothing: the end of a test is announced by its session.
func (p *Pair) Finalize() error { return nil }

// said returns what the other end has put under key, which parse reads.
func said[T any](p *Pair, key string, parse func(string) (T, error)) (v T, err error) {
	text, err := p.peerValue(key)
	if err != nil {
		return v, err
	}
	if v, err = parse(text); err != nil {
		return v, fmt.Errorf("the other end said that its %s is %q: %w", key, text, err)
	}
	return v, nil
}

// peerValue returns what the other end has put under key.
func (p *Pair) peerValue(key string) (string, error) {
	v, ok := p.Get(1-p.rank, key)
	if !ok {
		return "", fmt.Errorf("%s did not say its %s", p.conn.RemoteAddr(), key)
	}
	return v, nil
}
