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

// resolveTimeout is how long Resolve waits for an answer, in ms: a receiver that is
// there answers within one, unless its process was stopped. Then datagrams are
// lost until it goes on.
const resolveTimeout = 1000

// reach connects a path without waiting and reports whether it is connected.
// Each attempt costs some system calls, for a datagram that is lost anyway if
// the peer is not there.
func (e *Datagram) reach(p *path) bool {
	if p.out != nil && p.out.alive.gone.Load() {
		_ = e.part(p) // the peer is gone, and its ring with it
	}
	if p.out == nil && p.asked < 0 {
		p.problem = e.ask(p)
	}
	if p.out == nil && p.asked >= 0 {
		e.hear(p)
	}
	return p.out != nil
}

// ask sends a handshake to the peer. An error means that there is no listener, or that
// it is too busy to get handshakes now.
func (e *Datagram) ask(p *path) error {
	c := call{Port: e.local.Port(), Addr: e.local.Addr().As16()}
	asked, err := e.request(name(p.to), bodyOf(&c))
	if err != nil {
		return fmt.Errorf("shm: %s does not listen: %w", p.to, err)
	}
	p.asked, p.waited = asked, false
	return nil
}

// hear takes the answer if it has come.
func (e *Datagram) hear(p *path) {
	l, err := receiveAnswer(p.asked)
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
	e.busy.Add(1)
	go p.out.alive.watch(e.busy.Done)
}

// accept maps the ring that an answer brings, and takes the eventfd and line.
func (e *Datagram) accept(p *path, l *handshake, line int) (*outbound, error) {
	var a answer
	if !parse(l.body, &a) || !a.usable() {
		return nil, fmt.Errorf("shm: %s ended, or its answer of %d bytes makes no sense: is it another version?", p.to, len(l.body))
	}
	if a.Status != statusOK {
		return nil, fmt.Errorf("shm: %s: %w: raise its Config.Peers", p.to, ErrPeers)
	}
	if int(a.Most) < e.caps.MaxPayload {
		return nil, fmt.Errorf("shm: %s takes datagrams of %d bytes, ours have up to %d: %w; use the same MTU everywhere", p.to, a.Most, e.caps.MaxPayload, ErrMTU)
	}
	if len(l.fds) != 2 {
		return nil, fmt.Errorf("shm: answer of %s has %d descriptors", p.to, len(l.fds))
	}
	w, err := newWriter(&a, l.fds[0], l.fds[1])
	if err != nil {
		return nil, fmt.Errorf("ring of %s: %w", p.to, err)
	}
	unix.Close(l.fds[0])
	l.fds = nil
	return &outbound{writer: w, max: int(a.Most), alive: &liveness{file: os.NewFile(uintptr(line), "shm")}}, nil
}

// part ends a connection.
func (e *Datagram) part(p *path) error {
	o := p.out
	p.out = nil
	if i := slices.Index(e.dirty, o); i >= 0 {
		e.dirty = slices.Delete(e.dirty, i, i+1)
	}
	o.alive.close()
	return o.unmap()
}
