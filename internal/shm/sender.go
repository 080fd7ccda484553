package shm

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// path is a destination.
type path struct {
	to      netip.AddrPort
	out     *outbound // nil while there is none
	asked   int       // socket on which the answer will come; -1 when we have not asked
	waited  bool      // for it, in vain
	problem error     // of the last answer
}

// patience is how long Resolve waits for an answer, in ms: a receiver that is
// there answers within one, unless its process was stopped. Then datagrams are
// lost until it goes on.
const patience = 1000

// reach connects a path without waiting and reports whether it is connected.
// Each attempt costs some system calls, for a datagram that is lost anyway if
// the peer is not there.
func (e *Endpoint) reach(p *path) bool {
	if p.out != nil && p.out.line.gone.Load() {
		e.part(p)
	}
	if p.out == nil && p.asked < 0 {
		p.problem = e.ask(p)
	}
	if p.out == nil && p.asked >= 0 {
		e.hear(p)
	}
	return p.out != nil
}

// ask sends a letter to the peer. An error says that nobody is there, or that
// it is too busy to get letters now.
func (e *Endpoint) ask(p *path) error {
	var call [callLen]byte
	putCall(call[:], e.local)
	asked, err := e.porter.knock(name(p.to), call[:])
	if err != nil {
		return fmt.Errorf("shm: %s does not listen: %w", p.to, err)
	}
	p.asked, p.waited = asked, false
	return nil
}

// hear takes the answer if it has come.
func (e *Endpoint) hear(p *path) {
	l, err := receive(p.asked)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	line := p.asked
	p.asked = -1
	if err == nil {
		p.out, err = e.accept(p, &l, line)
	}
	p.problem = err
	l.discard()
	if err != nil {
		unix.Close(line)
		return
	}
	e.porter.busy.Add(1)
	go p.out.line.watch(e.porter.busy.Done)
}

// accept maps the ring that an answer brings, and takes the eventfd and line.
func (e *Endpoint) accept(p *path, l *letter, line int) (*outbound, error) {
	var a answer
	if !a.parse(l.body) {
		return nil, fmt.Errorf("shm: %s hung up, or its answer of %d bytes makes no sense: is it another version?", p.to, len(l.body))
	}
	if a.status != statusOK {
		return nil, fmt.Errorf("shm: %s: %w: raise its Config.Peers", p.to, ErrPeers)
	}
	if a.max < e.caps.MaxPayload {
		return nil, fmt.Errorf("shm: %s takes datagrams of %d bytes, ours have up to %d: %w; use the same MTU everywhere", p.to, a.max, e.caps.MaxPayload, ErrMTU)
	}
	if len(l.fds) != 2 {
		return nil, fmt.Errorf("shm: answer of %s has %d descriptors", p.to, len(l.fds))
	}
	b, err := mapMemfd(l.fds[0], dataAt+a.ring)
	if err != nil {
		return nil, fmt.Errorf("ring of %s: %w", p.to, err)
	}
	unix.Close(l.fds[0])
	bell := l.fds[1]
	l.fds = nil
	return &outbound{
		writer: writer{ring: newRing(b[:dataAt:dataAt], b[dataAt:]), limit: uint64(a.ring)}, mapped: b, max: a.max,
		bell: bell, line: &lifeline{file: os.NewFile(uintptr(line), "shm")},
	}, nil
}

// part ends a connection.
func (e *Endpoint) part(p *path) {
	o := p.out
	p.out = nil
	if i := slices.Index(e.dirty, o); i >= 0 {
		e.dirty = slices.Delete(e.dirty, i, i+1)
	}
	o.line.close()
	unix.Close(o.bell)
	_ = unix.Munmap(o.mapped)
}
