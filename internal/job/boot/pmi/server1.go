package pmi

import (
	"fmt"
	"strings"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// handleLine is Handle in version 1, with which every conversation begins.
func (c *Session) handleLine(line []byte) (*boot.Request, error) {
	if c.inMultiline(string(line)) {
		return nil, nil
	}
	m, err := Parse(line)
	if err != nil {
		return nil, fmt.Errorf("PMI: %w", err)
	}
	switch m.Cmd {
	case "init":
		return c.init(m), nil
	case "put":
		return c.put(m), nil
	case "barrier_in":
		return &boot.Request{Op: boot.OpFence}, nil
	case "finalize":
		c.answer("cmd=finalize_ack\n")
		return &boot.Request{Op: boot.OpFinalize}, nil
	case "abort":
		code, err := m.number("exitcode", -1<<31)
		if err != nil {
			code = 1
		}
		return &boot.Request{Op: boot.OpAbort, Code: code, Why: m.Get("error_msg")}, nil
	}
	return nil, c.query(m)
}

// inMultiline swallows the commands that are many lines long, all of which
// start processes at run time.
func (c *Session) inMultiline(line string) bool {
	if cmd, ok := strings.CutPrefix(line, "mcmd="); ok {
		c.multiline = cmd
		return true
	}
	if c.multiline == "" {
		return false
	}
	if strings.TrimSpace(line) == "endcmd" {
		c.answer("cmd=" + c.multiline + "_result rc=-1 msg=not_supported\n")
		c.multiline = ""
	}
	return true
}

// init agrees on a version. In version 2 the process goes on to name itself.
func (c *Session) init(m Message) *boot.Request {
	switch m.Get("pmi_version") {
	case "1":
		c.answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n")
		return &boot.Request{Op: boot.OpHello, Version: boot.WireVersion}
	case "2":
		c.answer("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
		c.version = 2
		return nil
	}
	c.answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n")
	return nil
}

// put takes a value. Processes of this host see it at once, which PMI allows,
// and those of others after the next fence.
func (c *Session) put(m Message) *boot.Request {
	key, value := m.Get("key"), m.Get("value")
	err := errInvalid
	if m.Get("kvsname") == c.server.name {
		err = c.take(key, value)
	}
	if err != nil {
		c.answer("cmd=put_result rc=-1 msg=" + strings.ReplaceAll(err.Error(), " ", "_") + "\n")
		return nil
	}
	v := boot.Value{Key: key, Value: []byte(value)}
	c.server.Add([]boot.Value{v})
	c.answer("cmd=put_result rc=0 msg=success\n")
	return &boot.Request{Op: boot.OpPut, Key: v.Key, Value: v.Value}
}

// query answers what changes nothing.
func (c *Session) query(m Message) error {
	switch m.Cmd {
	case "get_maxes":
		c.answer(fmt.Sprintf("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", maxName, maxKey, maxValue))
	case "get_my_kvsname":
		c.answer("cmd=my_kvsname kvsname=" + c.server.name + "\n")
	case "get_appnum":
		c.answer(fmt.Sprintf("cmd=appnum appnum=%d\n", c.app))
	case "get_universe_size":
		c.answer(fmt.Sprintf("cmd=universe_size size=%d\n", c.server.size))
	case "get":
		if v, ok := c.server.get(m.Get("key")); ok {
			c.answer("cmd=get_result rc=0 msg=success value=" + v + "\n")
		} else {
			c.answer("cmd=get_result rc=-1 msg=not_found value=unknown\n")
		}
	case "publish_name", "unpublish_name", "lookup_name":
		c.answer("cmd=" + strings.TrimSuffix(m.Cmd, "_name") + "_result rc=-1 info=not_supported msg=not_supported\n")
	default:
		return fmt.Errorf("PMI: unknown command %.32q", m.Cmd)
	}
	return nil
}
