package vectors

import "encoding/binary"

// Capture is a pcap file in the making: TCP connections between two hosts,
// for Wireshark to read. The zero value is an empty one.
type Capture struct {
	out  []byte
	next map[uint16]*[2]uint32 // sequence numbers by the client's port
}

// Segment adds a TCP segment of the connection that a client has from port to
// 7471 of the server. side says who sends: 0 is the client.
func (c *Capture) Segment(port uint16, side int, payload []byte) {
	if c.next == nil {
		c.next = map[uint16]*[2]uint32{}
	}
	seq := c.next[port]
	if seq == nil {
		seq = &[2]uint32{1000, 5000}
		c.next[port] = seq
	}
	be := binary.BigEndian
	f := []byte{2, 0, 0, 0, 0, byte(2 - side), 2, 0, 0, 0, 0, byte(1 + side), 8, 0}
	f = append(f, 0x45, 0)
	f = be.AppendUint16(f, uint16(40+len(payload)))
	f = append(f, 0, 0, 0x40, 0, 64, 6, 0, 0)
	f = append(f, 10, 0, 0, byte(1+side), 10, 0, 0, byte(2-side))
	ports := [2]uint16{port, 7471}
	f = be.AppendUint16(f, ports[side])
	f = be.AppendUint16(f, ports[1-side])
	f = be.AppendUint32(f, seq[side])
	f = be.AppendUint32(f, seq[1-side])
	f = append(f, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0)
	f = append(f, payload...)
	seq[side] += uint32(len(payload))

	le := binary.LittleEndian
	c.out = append(c.out, make([]byte, 8)...) // time
	c.out = le.AppendUint32(c.out, uint32(len(f)))
	c.out = le.AppendUint32(c.out, uint32(len(f)))
	c.out = append(c.out, f...)
}

// Bytes returns the file.
func (c *Capture) Bytes() []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 0xa1b2c3d4)
	out = le.AppendUint32(out, 2|4<<16) // version
	out = append(out, make([]byte, 8)...)
	out = le.AppendUint32(out, 1<<16)
	out = le.AppendUint32(out, 1) // Ethernet
	return append(out, c.out...)
}
