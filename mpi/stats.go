package mpi

import (
	"maps"
	"slices"
	"time"
)

// CommStats are counters of a communicator. They count while the process is
// watched: see Config.Stats.
type CommStats struct {
	SentMessages, SentBytes         uint64 // by calls of the program; messages of collectives are not counted
	ReceivedMessages, ReceivedBytes uint64
	Calls                           map[string]CallStats // by name of the operation
}

// CallStats are counters of an operation.
type CallStats struct {
	Calls uint64
	Bytes uint64        // of the messages; of collectives, what this rank has sent
	Time  time.Duration // between the begins and the ends of the calls
}

// Stats are counters of a process. Those that are not of CommStats count always.
type Stats struct {
	CommStats
	Eager      uint64 // messages sent whole, those of collectives included
	Rendezvous uint64 // messages sent after the receiver was asked
	Near       uint64 // of the eager ones, those through shared memory
	Unexpected uint64 // messages that came before their receive
	Queued     uint64 // times that a send had to wait for room
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
func (c *Comm) Stats() CommStats { return c.p.watch.copy(&c.stats) }

// Stats returns the counters of the process.
func (p *Proc) Stats() Stats {
	var s Stats
	if p.watch != nil {
		s.CommStats = p.watch.copy(&p.watch.all)
	}
	p.ep.Enter()
	t := &p.ep.Stats
	s.Eager, s.Rendezvous, s.Near, s.Unexpected, s.Queued = t.Eager, t.Rendezvous, t.Near, t.Unexpected, t.Queued
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
		{"queue_unexpected", s.Unexpected}, {"queue_no_room", s.Queued},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Calls)) {
		k := s.Calls[name]
		v = append(v, Variable{"call_" + name + "_count", k.Calls}, Variable{"call_" + name + "_bytes", k.Bytes},
			Variable{"call_" + name + "_ns", uint64(k.Time)})
	}
	return v
}
