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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("shm: %w (too many open files? see ulimit -n)", os.NewSyscallError("socketpair", err))
	}
	defer unix.Close(pair[1])
	if err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err == nil {
		var call [callLen]byte
		putCall(call[:], e.local)
		err = unix.Sendmsg(e.porter.sock, call[:], unix.UnixRights(pair[1]), name(p.to), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	if err != nil {
		unix.Close(pair[0])
		return fmt.Errorf("shm: %s does not listen: %w", p.to, err)
	}
	p.asked, p.waited = pair[0], false
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
	fd, size := l.fds[0], dataAt+a.ring
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	have, sealed := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || st.Size != int64(size) || sealed != nil || have&seals != seals {
		return nil, fmt.Errorf("shm: ring of %s: %d bytes, seals %#x: that is no ring of ours", p.to, st.Size, have)
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: ring of %s: %w", p.to, os.NewSyscallError("mmap", err))
	}
	unix.Close(fd)
	bell := l.fds[1]
	l.fds = nil
	return &outbound{
		ring: newRing(b[:dataAt:dataAt], b[dataAt:]), mapped: b, limit: uint64(a.ring), max: a.max,
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
