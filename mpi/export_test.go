package mpi

import (
	"encoding/binary"
	"errors"
	"reflect"
	"time"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// ServeAsGhost lets a process that is not among the ranks of its job be a ghost until the job is
// over, and ends it.
func ServeAsGhost(p *Proc) error { return errors.Join(p.serve(), p.close()) }

// ServedBy returns how many Puts and Gets, and how many accumulates, of a rank each ghost of a job has
// done, by its number.
func ServedBy(w *Win) map[int][2]uint64 {
	done := map[int][2]uint64{}
	for _, s := range w.w.Account().Counts().Served {
		if n := [2]uint64{s.Puts + s.Gets, s.Accumulates}; n != [2]uint64{} {
			done[s.By-rma.ByGhost] = n
		}
	}
	return done
}

// SetAsyncInterval is what Config.AsyncInterval says, for one rank, without a look at it.
func SetAsyncInterval(p *Proc, d time.Duration) { p.async.AsyncInterval = d }

// Targets returns where a window keeps what it knows of its targets, and of how many.
func Targets(w *Win) (at uintptr, n int) {
	targets := reflect.ValueOf(w.w).Elem().FieldByName("targets")
	return targets.Pointer(), targets.Len()
}

// Windows returns how many windows one is made of.
func Windows(w *Win) int { return 1 + len(w.layers) }

// Atomics returns how many atomics of verbs a rank has asked for.
func Atomics(p *Proc) uint64 { return p.ep.Stats.Atomics }

// Linked returns how many times a rank has sent or fetched data over a connection beside datagrams.
func Linked(p *Proc) uint64 { return p.ep.Stats.Linked }

// HasGhost reports whether there is a ghost for this rank's memory of a window.
func HasGhost(w *Win) bool { return rma.RoutesOf(w.w).Own() }

// ServedByGhosts returns, for each rank of a window, whether this one asks a ghost for what it does
// with its memory.
func ServedByGhosts(w *Win) (all []bool) {
	for rank := range w.Size() {
		all = append(all, w.w.Account().Server(int32(rank), nil) >= rma.ByGhost)
	}
	return all
}

// LockMemory returns how many bytes a window has for locks among ranks of this host.
func LockMemory(w *Win) int {
	if w.common == nil {
		return 0
	}
	return len(w.common.Control)
}

// costlyServer is what a ghost does, where it takes time.
type costlyServer struct {
	p2p.Server
	spend func(client, operations, bytes int)
}

func (c costlyServer) Serve(context uint32, source, what int32, id uint32, body []byte) bool {
	operations := 0
	if what&0xff <= 4 && len(body) >= 4 { // see wire.go of rma
		operations = int(binary.BigEndian.Uint16(body[2:]))
	}
	c.spend(int(what>>16), operations, len(body))
	return c.Server.Serve(context, source, what, id, body)
}

// ServeAsCostlyGhost is ServeAsGhost of one that spends time on each message, for the rank of its host with this
// number from 1 on, before it looks at it.
func ServeAsCostlyGhost(p *Proc, spend func(client, operations, bytes int)) error {
	p.ep.Enter()
	g := rma.NewGhost(p.ep.Inside(), int32(p.rank), p.ghosts)
	err := p.serveWith(costlyServer{g, spend}, g)
	p.ep.Leave()
	return errors.Join(err, p.close())
}

// InArena reports whether b is memory of the arena of a rank.
func InArena(p *Proc, b []byte) bool {
	_, inside := p.ctx.Arena().Find(b)
	return inside
}
