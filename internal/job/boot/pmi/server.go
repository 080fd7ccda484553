package pmi

import (
	"errors"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// What a Server offers: room in bytes, the end of a C string included. It is
// what hydra does, because MPICH's processes read lines into small buffers.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// Server answers the processes of a host that speak PMI. It turns what they
// ask into the requests of internal/job/boot, which the launcher carries to all
// hosts. Its methods may be called by any goroutine.
type Server struct {
	name string // of the job, and of its table
	size int

	mu      sync.Mutex
	values  map[string]string
	node    map[string]string         // what processes of this host tell each other
	waiting map[string][]func(string) // for a key of node
	waiters int                       // in waiting
}

// NewServer returns a server for a host of a job with a name and a number of
// ranks. The mapping is that of FormatMapping, or "".
func NewServer(job string, size int, mapping string) *Server {
	s := &Server{
		name: "xwarp-" + job, size: size,
		values: map[string]string{}, node: map[string]string{}, waiting: map[string][]func(string){},
	}
	if mapping != "" && len(mapping) < maxValue { // else they compare the names of their hosts
		s.values[mappingKey] = mapping
	}
	return s
}

// Add makes values visible that a fence has spread.
func (s *Server) Add(values []boot.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		s.values[v.Key] = string(v.Value)
	}
}

func (s *Server) get(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	return v, ok
}

// putHere stores what processes of this host may know, and wakes those that wait
// for it.
func (s *Server) putHere(key, value string) {
	s.mu.Lock()
	waiting := s.waiting[key]
	s.node[key] = value
	delete(s.waiting, key)
	s.waiters -= len(waiting)
	s.mu.Unlock()
	for _, found := range waiting {
		found(value)
	}
}

// getHere returns what putHere has stored.
func (s *Server) getHere(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.node[key]
	return v, ok
}

// awaitHere is getHere that calls found with what will be there, if there is nothing
// yet. false says that too many wait.
func (s *Server) awaitHere(key string, found func(string)) bool {
	s.mu.Lock()
	v, ok := s.node[key]
	if !ok && s.waiters < maxWaiters {
		s.waiting[key] = append(s.waiting[key], found)
		s.waiters++
		s.mu.Unlock()
		return true
	}
	s.mu.Unlock()
	if ok {
		found(v)
	}
	return ok
}

// maxWaiters is more than the threads of all processes of a host that wait at a time.
const maxWaiters = 1 << 14

// take says why a key and a value of the process cannot go into a table, or takes room
// for them.
func (c *Session) take(key, value string) error {
	if key == "" || !utf8.ValidString(key) || len(key) >= maxKey || len(value) >= maxValue {
		return errInvalid
	}
	return c.quota.Take(key, []byte(value))
}

var errInvalid = errors.New("invalid key or value")

// Session is the conversation with one process. One goroutine reads what the
// process says and has it handled.
type Session struct {
	server    *Server
	rank, app int
	version   int // of PMI, from the process' first line on
	answer    func(string)
	multiline string                  // the command whose lines are being read, or ""
	fence     atomic.Pointer[Message] // that the process waits in, in version 2
	quota     boot.Quota              // of what it has put
}

// NewSession starts a conversation with a rank, which runs program number app of
// the job. What it is to be told goes to answer, which any goroutine may call and
// which must not wait for this server.
func (s *Server) NewSession(rank, app int, answer func(string)) *Session {
	return &Session{server: s, rank: rank, app: app, version: 1, answer: answer}
}

// Next reads what the process says next, for Handle.
func (c *Session) Next(r *boot.LineReader) ([]byte, error) {
	if c.version == 2 {
		return readFrame(r)
	}
	return r.Next()
}

// Handle takes what the process says, answers, and returns what the launcher has to
// do for the process, which may be nothing. After an OpFence the answer is for
// Fenced. An error says that the process makes no sense and cannot go on.
func (c *Session) Handle(text []byte) (*boot.Request, error) {
	if c.version == 2 {
		return c.handleFrame(text)
	}
	return c.handleLine(text)
}

// Fenced tells the process that the fence it asked for is complete. Any goroutine may
// call it.
func (c *Session) Fenced() {
	if fence := c.fence.Swap(nil); fence != nil {
		c.respond(*fence, rcSuccess)
		return
	}
	c.answer("cmd=barrier_out\n")
}
