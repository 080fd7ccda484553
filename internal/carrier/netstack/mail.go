package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// mail is what gVisor's goroutines leave for the engine. They take the lock
// for moments only; the engine takes it when there is something.
type mail struct {
	packets atomic.Bool // there is something in out
	news    atomic.Bool // there is something in ready or found
	asleep  atomic.Bool // the engine may be waiting for FD: ring
	rung    atomic.Bool // the bell was rung since then

	bell event.Bell
	set  event.Set // of bell and the port's descriptor; none when it has none

	mu    sync.Mutex
	shut  bool                  // nothing is taken any more
	out   []*stack.PacketBuffer // to send
	ready []*entry              // streams and listeners with something new
	found []found               // answers about hosts
}

// found is what the kernel says about a host that has called us.
type found struct {
	addr netip.Addr
	hop  inet.Hop
	err  error
}

// outMax is how many packets may wait to be sent. More are dropped, as by any
// queue of a device: TCP sends them again.
const outMax = 1 << 14

func (m *mail) open(portFD int) (err error) {
	m.set = -1
	if m.bell, err = event.NewBell(); err == nil && portFD >= 0 {
		m.set, err = event.NewSet(int(m.bell), portFD)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("netstack: %w", err), m.close())
	}
	return nil
}

func (m *mail) close() error { return errors.Join(m.set.Close(), m.bell.Close()) }

// WritePacket implements stack.QueueingDiscipline: it takes a packet to send.
func (m *mail) WritePacket(p *stack.PacketBuffer) tcpip.Error {
	m.mu.Lock()
	if m.shut || len(m.out) >= outMax {
		m.mu.Unlock()
		return &tcpip.ErrNoBufferSpace{}
	}
	m.out = append(m.out, p.IncRef())
	m.packets.Store(true)
	m.mu.Unlock()
	m.wake()
	return nil
}

// Close implements stack.QueueingDiscipline. The stack drops what is queued.
func (m *mail) Close() {}

// answer takes what was found out about a host.
func (m *mail) answer(f found) {
	m.mu.Lock()
	m.found = append(m.found, f)
	m.news.Store(true)
	m.mu.Unlock()
	m.wake()
}

// wake ends the engine's wait, if it waits.
func (m *mail) wake() {
	if m.asleep.Load() && !m.rung.Swap(true) {
		m.bell.Ring()
	}
}

// sleep prepares for a wait. New mail rings the bell from now on.
func (m *mail) sleep() {
	m.asleep.Store(true)
	if m.packets.Load() || m.news.Load() {
		m.wake()
	}
}

// awake ends what sleep began.
func (m *mail) awake() {
	if !m.asleep.Load() {
		return
	}
	m.asleep.Store(false)
	m.rung.Store(false)
	m.bell.Quiet()
}

// takeOut exchanges the packets to send for an empty slice.
func (m *mail) takeOut(empty []*stack.PacketBuffer) []*stack.PacketBuffer {
	m.mu.Lock()
	full := m.out
	m.out = empty[:0]
	m.packets.Store(false)
	m.mu.Unlock()
	return full
}

// takeNews appends the streams that have something new to ready, and returns
// what was found out about hosts.
func (m *mail) takeNews(ready []fabric.StreamID) ([]fabric.StreamID, []found) {
	m.mu.Lock()
	m.news.Store(false)
	for i, e := range m.ready {
		e.marked = false
		if e.id >= 0 {
			ready = append(ready, e.id)
		}
		m.ready[i] = nil
	}
	m.ready = m.ready[:0]
	answers := m.found
	m.found = nil
	m.mu.Unlock()
	return ready, answers
}

// entry is how gVisor tells of a stream or listener.
type entry struct {
	waiter.Entry
	mail   *mail
	id     fabric.StreamID // -1: closed. Guarded by mail.mu
	marked bool            // it is in mail.ready. Guarded by mail.mu
}

const events = waiter.ReadableEvents | waiter.WritableEvents | waiter.EventErr | waiter.EventHUp | waiter.EventRdHUp

// NotifyEvent implements waiter.EventListener. Any goroutine calls it, with
// locks of the endpoint held.
func (e *entry) NotifyEvent(waiter.EventMask) {
	m := e.mail
	m.mu.Lock()
	if !e.marked {
		e.marked = true
		m.ready = append(m.ready, e)
		m.news.Store(true)
	}
	m.mu.Unlock()
	m.wake()
}

// forget keeps the entry's number from being named again.
func (e *entry) forget() {
	e.mail.mu.Lock()
	e.id = -1
	e.mail.mu.Unlock()
}
