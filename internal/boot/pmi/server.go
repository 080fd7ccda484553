package pmi

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/xwarp/xwarp/internal/boot"
)

// What a Server offers: room in bytes, the end of a C string included. It is
// what hydra does, because MPICH's processes read lines into small buffers.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// Server answers the processes of a host that speak PMI-1. It turns what they
// ask into the requests of internal/boot, which the launcher carries to all
// hosts. Its methods may be called by any goroutine.
type Server struct {
	name string // of the table
	size int

	mu     sync.Mutex
	values map[string]string
}

// NewServer returns a server for a host of a job with a name and a number of
// ranks. The mapping is that of FormatMapping, or "".
func NewServer(job string, size int, mapping string) *Server {
	s := &Server{name: "xwarp-" + job, size: size, values: map[string]string{}}
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

// BarrierOut is the line that ends the wait of a process whose Session asked
// for a fence.
const BarrierOut = "cmd=barrier_out\n"

// Session is the conversation with one process. One goroutine uses it.
type Session struct {
	server    *Server
	multiline string // the command whose lines are being read, or ""
}

// NewSession starts a conversation.
func (s *Server) NewSession() *Session { return &Session{server: s} }

// Handle takes a line without its end. It returns the lines to answer with and
// what the launcher has to do for the process, either of which may be missing.
// After an OpFence the answer is BarrierOut, once the fence is complete. An
// error says that the process makes no sense and cannot go on.
func (c *Session) Handle(line []byte) (answer string, request *boot.Request, err error) {
	if multi, ok := c.inMultiline(string(line)); ok {
		return multi, nil, nil
	}
	m, err := Parse(line)
	if err != nil {
		return "", nil, fmt.Errorf("PMI: %w", err)
	}
	switch m.Cmd {
	case "init":
		return c.init(m)
	case "put":
		return c.put(m)
	case "barrier_in":
		return "", &boot.Request{Op: boot.OpFence}, nil
	case "finalize":
		return "cmd=finalize_ack\n", &boot.Request{Op: boot.OpFinalize}, nil
	case "abort":
		code, err := m.number("exitcode", -1<<31)
		if err != nil {
			code = 1
		}
		return "", &boot.Request{Op: boot.OpAbort, Code: code, Why: m.Get("error_msg")}, nil
	}
	answer, err = c.query(m)
	return answer, nil, err
}

// inMultiline swallows the commands that are many lines long, all of which
// start processes at run time.
func (c *Session) inMultiline(line string) (answer string, ok bool) {
	if cmd, ok := strings.CutPrefix(line, "mcmd="); ok {
		c.multiline = cmd
		return "", true
	}
	if c.multiline == "" {
		return "", false
	}
	if strings.TrimSpace(line) == "endcmd" {
		answer = "cmd=" + c.multiline + "_result rc=-1 msg=not_supported\n"
		c.multiline = ""
	}
	return answer, true
}

func (c *Session) init(m Message) (string, *boot.Request, error) {
	if m.Get("pmi_version") != "1" {
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", nil, nil
	}
	return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", &boot.Request{Op: boot.OpHello, Version: boot.WireVersion}, nil
}

// put takes a value. Processes of this host see it at once, which PMI allows,
// and those of others after the next fence.
func (c *Session) put(m Message) (string, *boot.Request, error) {
	key, value := m.Get("key"), m.Get("value")
	if key == "" || !utf8.ValidString(key) || len(key) >= maxKey || len(value) >= maxValue || m.Get("kvsname") != c.server.name {
		return "cmd=put_result rc=-1 msg=invalid\n", nil, nil
	}
	v := boot.Value{Key: key, Value: []byte(value)}
	c.server.Add([]boot.Value{v})
	return "cmd=put_result rc=0 msg=success\n", &boot.Request{Op: boot.OpPut, Key: v.Key, Value: v.Value}, nil
}

// query answers what changes nothing.
func (c *Session) query(m Message) (string, error) {
	switch m.Cmd {
	case "get_maxes":
		return fmt.Sprintf("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", maxName, maxKey, maxValue), nil
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=" + c.server.name + "\n", nil
	case "get_appnum":
		return "cmd=appnum appnum=0\n", nil
	case "get_universe_size":
		return "cmd=universe_size size=" + strconv.Itoa(c.server.size) + "\n", nil
	case "get":
		if v, ok := c.server.get(m.Get("key")); ok {
			return "cmd=get_result rc=0 msg=success value=" + v + "\n", nil
		}
		return "cmd=get_result rc=-1 msg=not_found value=unknown\n", nil
	case "publish_name", "unpublish_name", "lookup_name":
		return "cmd=" + strings.TrimSuffix(m.Cmd, "_name") + "_result rc=-1 info=not_supported msg=not_supported\n", nil
	}
	return "", fmt.Errorf("PMI: unknown command %.32q", m.Cmd)
}
