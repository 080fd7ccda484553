package mpi

import (
	"maps"
	"slices"
	"time"
)

// CommStats are counters of a communicator. They count while the process is
// watched: see Config.Stats. Those of Protocols count always.
type CommStats struct {
	Protocols
	SentMessages, SentBytes         uint64 // those of collectives included
	ReceivedMessages, ReceivedBytes uint64
	Calls                           map[string]CallStats // by name of the operation
}

// Protocols counts the messages that were sent to others, those of collectives included,
// by the way they took.
type Protocols struct {
	Eager      uint64 // messages sent whole
	Rendezvous uint64 // messages sent after the receiver was asked
	Near       uint64 // of the eager ones, those through shared memory
}

// Limits are the lengths in bytes up to which messages are sent without asking the
// receiver: see Config.EagerMax, EagerIdle and EagerNear. Where they are measured, the
// last two are one for each rank: of EagerIdle this is the lowest, of EagerNear the lowest
// and the highest, both 0 where there are no other ranks on the host.
type Limits struct {
	Eager, Idle, NearLeast, NearMost int
}

// CallStats are counters of an operation.
type CallStats struct {
	Calls uint64
	Bytes uint64        // of the messages; of collectives, what this rank has sent
	Time  time.Duration // between the begins and the ends of the calls
}

// Stats are counters of a process. Its own fields, too, count always.
type Stats struct {
	CommStats
	Limits     Limits
	Unexpected uint64 // messages that came before their receive
	Queued     uint64 // times that a send had to wait for room
	Delegated  uint64 // of the Rendezvous, those that a ghost was asked to send
	Invited    uint64 // of the Rendezvous, those that went to a ghost, as their receivers wanted
	Met        uint64 // of the Delegated, those that went from ghost to ghost
}

func (s *CommStats) count(name string, bytes int, took uint64) {
	if s.Calls == nil {
		s.Calls = map[string]CallStats{}
	}
	k := s.Calls[name]
	k.Calls++
	k.Bytes += uint64(bytes)
	k.Time += time.Duration(took)
	s.Calls[name] = k
}

// copy returns the counters of now.
func (w *watch) copy(s *CommStats) CommStats {
	if w == nil {
		return CommStats{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := *s
	c.Calls = maps.Clone(s.Calls)
	return c
}

// Stats returns the counters of the communicator.
func (c *Comm) Stats() CommStats {
	s := c.p.watch.copy(&c.stats)
	s.Protocols = Protocols(c.ep.Counts(c.context))
	return s
}

// Stats returns the counters of the process.
func (p *Proc) Stats() Stats {
	var s Stats
	if p.watch != nil {
		s.CommStats = p.watch.copy(&p.watch.all)
	}
	p.ep.Enter()
	t := &p.ep.Stats
	s.Protocols = Protocols{t.Eager, t.Rendezvous, t.Near}
	s.Limits = Limits(p.ep.Inside().Limits())
	s.Unexpected, s.Queued, s.Delegated, s.Invited, s.Met = t.Unexpected, t.Queued, t.Delegated, t.Invited, t.Met
	p.ep.Leave()
	return s
}

// Variable is a counter by name, as the performance variables of MPI_T are.
type Variable struct {
	Name  string
	Value uint64
}

// Variables returns all counters of s by name: messages_sent, and so on, and for
// each operation call_Send_count, call_Send_bytes and call_Send_ns.
func (s Stats) Variables() []Variable {
	v := []Variable{
		{"messages_sent", s.SentMessages}, {"bytes_sent", s.SentBytes},
		{"messages_received", s.ReceivedMessages}, {"bytes_received", s.ReceivedBytes},
		{"protocol_eager", s.Eager}, {"protocol_rendezvous", s.Rendezvous}, {"protocol_near", s.Near},
		{"limit_eager", uint64(s.Limits.Eager)}, {"limit_eager_idle", uint64(s.Limits.Idle)},
		{"limit_near_least", uint64(s.Limits.NearLeast)}, {"limit_near_most", uint64(s.Limits.NearMost)},
		{"queue_unexpected", s.Unexpected}, {"queue_no_room", s.Queued},
		{"protocol_delegated", s.Delegated},
		{"protocol_invited", s.Invited}, {"protocol_met", s.Met},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Calls)) {
		k := s.Calls[name]
		v = append(v, Variable{"call_" + name + "_count", k.Calls}, Variable{"call_" + name + "_bytes", k.Bytes},
			Variable{"call_" + name + "_ns", uint64(k.Time)})
	}
	return v
}
