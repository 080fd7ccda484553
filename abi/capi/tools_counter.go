package capi

import (
	"strings"

	"github.com/xwarp/xwarp/mpi"
)

// counter is a performance variable: a counter of package mpi, or a limit there. Those of
// calls come into being with the first call.
type counter struct{ name string }

// limit reports whether the variable is none that counts.
func (c *counter) limit() bool { return strings.HasPrefix(c.name, "limit_") }

// watched reports whether it counts in a watched process only.
func (c *counter) watched() bool {
	return strings.HasPrefix(c.name, "messages_") || strings.HasPrefix(c.name, "bytes_") || strings.HasPrefix(c.name, "call_")
}

func (c *counter) class() int {
	switch {
	case c.limit():
		return MPI_T_PVAR_CLASS_SIZE
	case strings.HasSuffix(c.name, "_ns"):
		return MPI_T_PVAR_CLASS_TIMER
	case strings.Contains(c.name, "bytes"):
		return MPI_T_PVAR_CLASS_AGGREGATE
	}
	return MPI_T_PVAR_CLASS_COUNTER
}

// docs say what the variables are; those of calls say it by their names.
var docs = map[string]string{
	"messages_sent": "messages sent, those of collectives included", "bytes_sent": "bytes sent",
	"messages_received": "messages received", "bytes_received": "bytes received",
	"protocol_eager":      "messages sent whole",
	"protocol_rendezvous": "messages sent after the receiver was asked",
	"protocol_near":       "messages sent whole through shared memory",
	"limit_eager":         "longest message that is sent without asking the receiver",
	"limit_eager_idle":    "the same where little is under way",
	"limit_near_least":    "the same through shared memory, of the rank with the lowest limit",
	"limit_near_most":     "the same through shared memory, of the rank with the highest limit",
	"queue_unexpected":    "messages that came before their receive",
	"queue_no_room":       "times that a send had to wait for room",
	"protocol_delegated":  "of those sent after the receiver was asked, the ones that a ghost was to send",
	"protocol_invited":    "of those sent after the receiver was asked, the ones that went to a ghost of the receiver's",
	"protocol_met":        "of those that a ghost was to send, the ones that it wrote to a ghost of the receiver's",
}

// counting is a handle for a counter: it counts from a start to a stop.
type counting struct {
	*counter
	session Addr
	started bool
	sum     uint64 // until the last stop
	from    uint64 // where the counter stood at the start
}

type toolSession struct{ handles []Handle }

// count lists the counters that are there now. Those that were stay where they are.
func (t *tools) count() {
	for _, v := range t.variables() {
		if _, ok := t.known[v.Name]; !ok {
			t.known[v.Name] = len(t.counters)
			t.counters = append(t.counters, counter{v.Name})
		}
	}
}

func (t *tools) variables() []mpi.Variable {
	switch {
	case t.last != nil:
		return t.last
	case t.proc == nil:
		return mpi.Stats{}.Variables()
	}
	return t.proc.Stats().Variables()
}

// now is what a counter is at.
func (t *tools) now(c *counter) uint64 {
	for _, v := range t.variables() {
		if v.Name == c.name {
			return v.Value
		}
	}
	return 0
}

// value is what a handle reads.
func (t *tools) value(h *counting) uint64 {
	switch {
	case h.limit():
		return t.now(h.counter)
	case h.started:
		return h.sum + t.now(h.counter) - h.from
	}
	return h.sum
}

// set makes a handle read a value.
func (t *tools) set(h *counting, value uint64) {
	h.sum = value
	if h.started {
		h.from = t.now(h.counter)
	}
}

// TPvarGetNum is MPI_T_pvar_get_num.
func TPvarGetNum(l *Lib, n Ints) error {
	return l.inTools(func(t *tools) error {
		t.count()
		n.set(0, len(t.counters))
		return nil
	})
}

// TPvarGetInfo is MPI_T_pvar_get_info.
func TPvarGetInfo(l *Lib, index int, name Text, nameLen, verbosity, class Ints, datatype Handles, enum Addr, desc Text, descLen, bind, readonly, continuous, atomic Ints) error {
	return l.inTools(func(t *tools) error {
		c, err := indexed(t.counters, index)
		if err != nil {
			return err
		}
		doc := docs[c.name]
		if doc == "" {
			doc = strings.ReplaceAll(c.name, "_", " ")
		}
		setText(name, nameLen, c.name)
		setText(desc, descLen, doc)
		verbosity.set(0, MPI_T_VERBOSITY_USER_BASIC)
		class.set(0, c.class())
		setType(datatype, MPI_UNSIGNED_LONG_LONG)
		setWord(enum, 0)
		bind.set(0, MPI_T_BIND_NO_OBJECT)
		readonly.setFlag(c.limit())
		continuous.setFlag(c.limit())
		atomic.setFlag(!c.limit())
		return nil
	})
}

// TPvarGetIndex is MPI_T_pvar_get_index.
func TPvarGetIndex(l *Lib, name string, class int, index Ints) error {
	return l.inTools(func(t *tools) error {
		t.count()
		return named(t.counters, func(c *counter) bool { return c.name == name && c.class() == class }, index)
	})
}

// TPvarSessionCreate is MPI_T_pvar_session_create.
func TPvarSessionCreate(l *Lib, session Addr) error {
	return l.inTools(func(t *tools) error {
		setWord(session, uintptr(t.sessions.add(new(toolSession))))
		return nil
	})
}

// session returns a session of MPI_T.
func (t *tools) session(h Addr) (*toolSession, error) {
	s, err := toolHandle(&t.sessions, h)
	if err != nil {
		err = toolsError(MPI_T_ERR_INVALID_SESSION)
	}
	return s, err
}

// TPvarSessionFree is MPI_T_pvar_session_free.
func TPvarSessionFree(l *Lib, session Addr) error {
	return l.inTools(func(t *tools) error {
		h := *session.word()
		s, err := t.session(Addr(h))
		if err != nil {
			return err
		}
		for _, c := range s.handles {
			t.counterHandles.remove(c)
		}
		t.sessions.remove(Handle(h))
		setWord(session, 0)
		return nil
	})
}

// TPvarHandleAlloc is MPI_T_pvar_handle_alloc.
func TPvarHandleAlloc(l *Lib, session Addr, index int, _, handle Addr, count Ints) error {
	return l.inTools(func(t *tools) error {
		s, err := t.session(session)
		if err != nil {
			return err
		}
		c, err := indexed(t.counters, index)
		if err != nil {
			return err
		}
		if c.watched() && !t.watch {
			if t.watch = true; t.proc != nil {
				t.proc.SetHooks(nil)
			}
		}
		h := t.counterHandles.add(&counting{counter: c, session: session})
		s.handles = append(s.handles, h)
		setWord(handle, uintptr(h))
		count.set(0, 1)
		return nil
	})
}

// handles returns those that a handle of a session stands for: MPI_T_PVAR_ALL_HANDLES for all
// that count.
func (t *tools) handles(session, handle Addr) ([]*counting, error) {
	s, err := t.session(session)
	if err != nil {
		return nil, err
	}
	if handle == 1 {
		var all []*counting
		for _, h := range s.handles {
			if c := *t.counterHandles.get(h); !c.limit() {
				all = append(all, c)
			}
		}
		return all, nil
	}
	c, err := toolHandle(&t.counterHandles, handle)
	if err == nil && c.session != session {
		err = toolsError(MPI_T_ERR_INVALID_HANDLE)
	}
	return []*counting{c}, err
}

// eachHandle calls f for the handles that one stands for. Of a limit it returns the error.
func (l *Lib) eachHandle(session, handle Addr, ofLimit toolsError, f func(*tools, *counting)) error {
	return l.inTools(func(t *tools) error {
		list, err := t.handles(session, handle)
		if err != nil {
			return err
		}
		for _, h := range list {
			if h.limit() {
				return ofLimit
			}
			f(t, h)
		}
		return nil
	})
}

// TPvarHandleFree is MPI_T_pvar_handle_free.
func TPvarHandleFree(l *Lib, session, handle Addr) error {
	return l.inTools(func(t *tools) error {
		h := *handle.word()
		s, err := t.session(session)
		if err != nil {
			return err
		}
		for i, c := range s.handles {
			if c == Handle(h) {
				s.handles = append(s.handles[:i], s.handles[i+1:]...)
				t.counterHandles.remove(c)
				setWord(handle, 0)
				return nil
			}
		}
		return toolsError(MPI_T_ERR_INVALID_HANDLE)
	})
}

// TPvarStart is MPI_T_pvar_start.
func TPvarStart(l *Lib, session, handle Addr) error {
	return l.eachHandle(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, func(t *tools, h *counting) {
		if !h.started {
			h.started, h.from = true, t.now(h.counter)
		}
	})
}

// TPvarStop is MPI_T_pvar_stop.
func TPvarStop(l *Lib, session, handle Addr) error {
	return l.eachHandle(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, func(t *tools, h *counting) {
		h.sum, h.started = t.value(h), false
	})
}

// TPvarReset is MPI_T_pvar_reset.
func TPvarReset(l *Lib, session, handle Addr) error {
	return l.eachHandle(session, handle, MPI_T_ERR_PVAR_NO_WRITE, func(t *tools, h *counting) { t.set(h, 0) })
}

// one returns the handle that a call is for, which is not MPI_T_PVAR_ALL_HANDLES.
func (t *tools) one(session, handle Addr) (*counting, error) {
	if handle == 1 {
		return nil, toolsError(MPI_T_ERR_INVALID_HANDLE)
	}
	list, err := t.handles(session, handle)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// TPvarRead is MPI_T_pvar_read.
func TPvarRead(l *Lib, session, handle, buf Addr) error {
	return l.inTools(func(t *tools) error {
		h, err := t.one(session, handle)
		if err == nil {
			setWord(buf, uintptr(t.value(h)))
		}
		return err
	})
}

// TPvarReadreset is MPI_T_pvar_readreset.
func TPvarReadreset(l *Lib, session, handle, buf Addr) error {
	return l.inTools(func(t *tools) error {
		h, err := t.one(session, handle)
		switch {
		case err != nil:
			return err
		case h.limit():
			return toolsError(MPI_T_ERR_PVAR_NO_ATOMIC)
		}
		setWord(buf, uintptr(t.value(h)))
		t.set(h, 0)
		return nil
	})
}

// TPvarWrite is MPI_T_pvar_write.
func TPvarWrite(l *Lib, session, handle, buf Addr) error {
	return l.inTools(func(t *tools) error {
		h, err := t.one(session, handle)
		switch {
		case err != nil:
			return err
		case h.limit():
			return toolsError(MPI_T_ERR_PVAR_NO_WRITE)
		}
		t.set(h, uint64(*buf.word()))
		return nil
	})
}
