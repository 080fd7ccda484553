package xdp

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// tagged is a port on the device below a VLAN: it puts a tag of 802.1Q into what is
// sent. The program takes it off what is received.
type tagged struct {
	FramePort
	bytes []byte // the arena
	tag   uint32
	tx    [8 * fabric.MaxBufs]Desc
}

// tagging returns p, or a port that owns it and puts the tag into frames that p's
// are to have. In front of each to send PortCaps.Headroom bytes must be free.
func tagging(p FramePort) FramePort {
	caps := p.Caps()
	if caps.VLAN == 0 {
		return p
	}
	const etherVLAN = 0x8100
	return &tagged{FramePort: p, bytes: p.Arena().Bytes(), tag: etherVLAN<<16 | uint32(caps.VLAN)}
}

// The addresses of a frame: what is in front of the tag.
const macsLen = 12

// Send queues whole frames and returns how many buffers it took.
func (t *tagged) Send(src []Desc) int {
	src = src[:wholeFrames(src, t.TxFree())]
	sent := 0
	for sent < len(src) {
		n := max(wholeFrames(src[sent:], len(t.tx)), 1)
		first := true // of a frame
		for i, d := range src[sent:][:n] {
			if first {
				t.put(&d)
			}
			first = d.Flags&fabric.More == 0
			t.tx[i] = d
		}
		t.FramePort.Send(t.tx[:n]) // there is room
		sent += n
	}
	return sent
}

// put puts the tag into the frame that begins with d.
func (t *tagged) put(d *Desc) {
	room := Addr(fabric.PortCaps{VLAN: 1}.Headroom())
	copy(t.bytes[d.Addr-room:][:macsLen], t.bytes[d.Addr:][:macsLen])
	d.Addr, d.Len = d.Addr-room, d.Len+uint32(room)
	binary.BigEndian.PutUint32(t.bytes[d.Addr+macsLen:], t.tag)
}

// mtuSingle is the largest MTU whose frames are received in one buffer.
func (d *device) mtuSingle() int {
	return MTUSingle - fabric.PortCaps{VLAN: d.vlan}.Headroom()
}
