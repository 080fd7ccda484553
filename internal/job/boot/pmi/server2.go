package pmi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// Return codes of version 2. The draft leaves all but 0 to the launcher.
const (
	rcSuccess = "0"
	rcFail    = "1"
)

// handleFrame is Handle in version 2.
func (c *Session) handleFrame(frame []byte) (*boot.Request, error) {
	m, err := ParseFrame(frame)
	if err != nil {
		return nil, fmt.Errorf("PMI-2: %w", err)
	}
	switch m.Cmd {
	case "fullinit":
		c.respond(m, rcSuccess, "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(c.rank),
			"size", strconv.Itoa(c.server.size), "appnum", strconv.Itoa(c.app), "debugged", "FALSE", "pmiverbose", "FALSE")
		return &boot.Request{Op: boot.OpHello, Version: boot.WireVersion}, nil
	case "kvs-put":
		key, value := m.Get("key"), m.Get("value")
		if err := c.take(key, value); err != nil {
			c.respond(m, rcFail, "errmsg", err.Error())
			return nil, nil
		}
		c.server.Add([]boot.Value{{Key: key, Value: []byte(value)}})
		c.respond(m, rcSuccess)
		return &boot.Request{Op: boot.OpPut, Key: key, Value: []byte(value)}, nil
	case "kvs-fence":
		c.fence.Store(&m)
		return &boot.Request{Op: boot.OpFence}, nil
	case "finalize":
		c.respond(m, rcSuccess)
		return &boot.Request{Op: boot.OpFinalize}, nil
	case "abort":
		return &boot.Request{Op: boot.OpAbort, Code: 1, Why: m.Get("msg")}, nil
	}
	return nil, c.inquire(m)
}

// tooLong is the answer to what would take a frame that is too long.
const tooLong = "cmd=kvs-get-response;rc=1;errmsg=too long;"

// respond answers m. A thread that has given its name finds its answer by it.
func (c *Session) respond(m Message, rc string, keysAndValues ...string) {
	answer := Message{Cmd: m.Cmd + "-response"}
	if id := m.Get("thrid"); id != "" && len(id) < maxKey {
		answer.Attrs = append(answer.Attrs, Attr{"thrid", id})
	}
	answer.Attrs = append(answer.Attrs, question("", keysAndValues...).Attrs...)
	answer.Attrs = append(answer.Attrs, Attr{"rc", rc})
	text, err := AppendFrame(nil, answer)
	if err != nil { // a value that one of our own ranks has put can be too long
		text = fmt.Appendf(nil, "%-*d%s", lengthSize, len(tooLong), tooLong)
	}
	c.answer(string(text))
}

// found answers m with a value, if there is one.
func (c *Session) found(m Message, value string, ok bool) {
	if !ok {
		c.respond(m, rcSuccess, "found", "FALSE")
		return
	}
	c.respond(m, rcSuccess, "found", "TRUE", "value", value)
}

// inquire answers what is no concern of the launcher.
func (c *Session) inquire(m Message) error {
	switch key := m.Get("key"); m.Cmd {
	case "job-getid":
		c.respond(m, rcSuccess, "jobid", c.server.name)
	case "kvs-get":
		value, ok := c.server.get(key)
		c.found(m, value, ok)
	case "info-getjobattr":
		value, ok := c.server.jobAttribute(key)
		c.found(m, value, ok)
	case "info-putnodeattr":
		if err := c.take(key, m.Get("value")); err != nil {
			c.respond(m, rcFail, "errmsg", err.Error())
			break
		}
		c.respond(m, rcSuccess)
		c.server.putHere(key, m.Get("value"))
	case "info-getnodeattr":
		if !strings.EqualFold(m.Get("wait"), "TRUE") {
			value, ok := c.server.getHere(key)
			c.found(m, value, ok)
		} else if !c.server.awaitHere(key, func(value string) { c.found(m, value, true) }) {
			c.respond(m, rcFail, "errmsg", "too many wait")
		}
	case "spawn", "job-connect", "job-disconnect", "name-publish", "name-unpublish", "name-lookup", "ring":
		c.respond(m, rcFail, "errmsg", "xrun does not support this")
	default:
		return fmt.Errorf("PMI-2: unknown command %.32q", m.Cmd)
	}
	return nil
}

// jobAttribute returns what the launcher says of the job itself.
func (s *Server) jobAttribute(key string) (string, bool) {
	switch key {
	case mappingKey:
		return s.get(mappingKey)
	case "universeSize":
		return strconv.Itoa(s.size), true
	}
	return "", false
}
