package fault

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// holdMax is how many packets may be held back at a time. It is less than any
// send queue has room for, so that held packets cannot fill one.
const holdMax = 4

// mill is what happens to packets: they go in, and what is left of them comes out in the
// batch out.
//
// Ownership: a packet that goes in belongs to the mill, which gives lost ones
// back. Doubles, held and changed packets are copies in frames of their own,
// as a network would have them: the sender may change its memory as soon as
// it has an acknowledgement.
type mill struct {
	dice
	arena    *mem.Arena
	headroom int // bytes to leave free in the first frame of a copy
	take     func() (mem.Addr, bool)
	give     func(mem.Addr)

	out     *fabric.Batch
	held    []held
	scratch []fabric.Desc
}

// held is a packet that others shall overtake.
type held struct {
	packet fabric.Packet
	bufs   [fabric.MaxBufs]fabric.Desc // the first packet.Bufs
	wait   int                         // packets and flushes
}

func (h *held) descs() []fabric.Desc { return h.bufs[:h.packet.Bufs] }

func newMill(c Config, arena *mem.Arena) (mill, error) {
	d, err := newDice(c)
	return mill{
		dice: d, arena: arena,
		out:     fabric.NewBatch(64, fabric.MaxBufs),
		held:    make([]held, 0, holdMax),
		scratch: make([]fabric.Desc, 0, fabric.MaxBufs),
	}, err
}

// add decides what happens to a packet. With spoil, its bits may flip.
func (m *mill) add(p fabric.Packet, bufs []fabric.Desc, spoil bool) {
	m.stats.Packets++
	if m.chance(m.Loss) {
		m.stats.Lost++
		m.drop(bufs)
		m.release(holdMax)
		return
	}
	if m.chance(m.Dup) && m.copy(bufs) {
		m.stats.Duplicated++
		m.emit(p, m.scratch)
	}
	late := len(m.held) < holdMax && m.chance(m.Reorder)
	spoil = spoil && p.Len > 0 && m.chance(m.Corrupt)
	if !late && !spoil || !m.copy(bufs) {
		m.emit(p, bufs)
		m.release(holdMax)
		return
	}
	m.drop(bufs)
	if spoil {
		m.stats.Corrupted++
		m.flip(m.scratch, int(p.Len))
	}
	if late {
		m.release(holdMax)
		m.hold(p)
	} else {
		m.emit(p, m.scratch)
		m.release(holdMax)
	}
}

// emit puts a packet into the batch that goes out.
func (m *mill) emit(p fabric.Packet, bufs []fabric.Desc) {
	p.First, p.Bufs = int32(len(m.out.Descs)), int32(len(bufs))
	m.out.Pkts = append(m.out.Pkts, p)
	m.out.Descs = append(m.out.Descs, bufs...)
}

// hold keeps the packet in scratch, so that the next ones overtake it.
func (m *mill) hold(p fabric.Packet) {
	m.stats.Reordered++
	p.Bufs = int32(len(m.scratch))
	h := held{packet: p, wait: m.holds()}
	copy(h.bufs[:], m.scratch)
	m.held = append(m.held, h)
}

// release counts one packet or flush for all that are held, and emits those
// that have waited long enough, at most room.
func (m *mill) release(room int) {
	kept := 0
	for i := range m.held {
		h := &m.held[i]
		if h.wait--; h.wait <= 0 && room > 0 {
			m.emit(h.packet, h.descs())
			room--
			continue
		}
		m.held[kept] = *h
		kept++
	}
	m.held = m.held[:kept]
}

// dropHeld gives back what is held.
func (m *mill) dropHeld() {
	for i := range m.held {
		m.drop(m.held[i].descs())
	}
	m.held = m.held[:0]
}

func (m *mill) drop(bufs []fabric.Desc) {
	for _, d := range bufs {
		m.give(d.Addr)
	}
}

// copy makes scratch a copy of a packet, in frames of its own. Without enough
// frames it counts that and returns false.
func (m *mill) copy(bufs []fabric.Desc) bool {
	m.scratch = m.scratch[:0]
	room := 0
	for i, d := range bufs {
		rest := m.arena.At(d.Addr, int(d.Len))
		for len(rest) > 0 || i == 0 && len(m.scratch) == 0 { // an empty packet has a buffer too
			if room == 0 {
				if room = m.extend(); room == 0 {
					m.drop(m.scratch)
					m.stats.NoFrame++
					return false
				}
			}
			last := &m.scratch[len(m.scratch)-1]
			n := copy(m.arena.At(last.Addr+mem.Addr(last.Len), room), rest)
			last.Len += uint32(n)
			rest, room = rest[n:], room-n
		}
	}
	m.scratch[len(m.scratch)-1].Flags = 0
	return true
}

// extend adds a frame to scratch and returns how many bytes fit, 0 when there
// is none.
func (m *mill) extend() int {
	addr, ok := m.take()
	if !ok {
		return 0
	}
	headroom := 0
	if len(m.scratch) == 0 {
		headroom = m.headroom
	}
	m.scratch = append(m.scratch, fabric.Desc{Addr: addr + mem.Addr(headroom), Flags: fabric.More})
	return mem.FrameSize - headroom
}

// flip flips bits of a packet of n bytes.
func (m *mill) flip(bufs []fabric.Desc, n int) {
	for range 1 + m.rand.IntN(3) {
		bit := m.rand.IntN(8 * n)
		at := bit / 8
		for _, d := range bufs {
			if at < int(d.Len) {
				m.arena.At(d.Addr, int(d.Len))[at] ^= 1 << (bit % 8)
				break
			}
			at -= int(d.Len)
		}
	}
}
