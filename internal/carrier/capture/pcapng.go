package capture

import "encoding/binary"

// The blocks of a pcapng file that we write (draft-ietf-opsawg-pcapng, sections
// 4.1 to 4.3), in little-endian order. Each is its type, its length, a body in
// whole words, and its length again.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6

	byteOrder    = 0x1a2b3c4d
	linkEthernet = 1 // LINKTYPE_ETHERNET
)

// Options of blocks: code, length and value, padded to whole words.
const (
	optEnd         = 0
	optFlags       = 2 // of a packet: epb_flags
	optName        = 2 // of an interface
	optDescription = 3
	optResolution  = 9
	optApplication = 4 // of a section
)

// direction is what epb_flags says of a packet.
type direction uint32

const (
	inbound  direction = 1
	outbound direction = 2
)

// blockMax is the most bytes of a block with one packet: a frame of the largest
// IPv4 packet and what lies around it.
const blockMax = 1<<16 + 64

// begin starts a block whose length end fills in.
func begin(b []byte, typ uint32) []byte {
	b = binary.LittleEndian.AppendUint32(b, typ)
	return binary.LittleEndian.AppendUint32(b, 0)
}

// end ends the block that starts at b[at:].
func end(b []byte, at int) []byte {
	n := uint32(len(b) - at + 4)
	binary.LittleEndian.PutUint32(b[at+4:], n)
	return binary.LittleEndian.AppendUint32(b, n)
}

// appendPadded appends value and fills up the last word.
func appendPadded[T string | []byte](b []byte, value T) []byte {
	const zeros = "\x00\x00\x00"
	b = append(b, value...)
	return append(b, zeros[:-len(value)&3]...)
}

func appendOption[T string | []byte](b []byte, code uint16, value T) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return appendPadded(b, value)
}

func appendSection(b []byte) []byte {
	at := len(b)
	b = begin(b, blockSection)
	b = binary.LittleEndian.AppendUint32(b, byteOrder)
	b = binary.LittleEndian.AppendUint32(b, 1)          // version 1.0
	b = binary.LittleEndian.AppendUint64(b, ^uint64(0)) // length of the section: up to the end
	b = appendOption(b, optApplication, "xwarp")
	b = appendOption(b, optEnd, "")
	return end(b, at)
}

func appendInterface(b []byte, name, description string) []byte {
	at := len(b)
	b = begin(b, blockInterface)
	b = binary.LittleEndian.AppendUint32(b, linkEthernet)
	b = binary.LittleEndian.AppendUint32(b, 0) // packets are whole, however long
	b = appendOption(b, optName, name)
	b = appendOption(b, optDescription, description)
	b = appendOption(b, optResolution, "\x09") // 10^-9 s
	b = appendOption(b, optEnd, "")
	return end(b, at)
}

// appendPacket appends a whole frame. now is in nanoseconds since 1970.
func appendPacket(b, frame []byte, now uint64, way direction) []byte {
	at := len(b)
	b = begin(b, blockPacket)
	b = binary.LittleEndian.AppendUint32(b, 0) // the first interface
	b = binary.LittleEndian.AppendUint32(b, uint32(now>>32))
	b = binary.LittleEndian.AppendUint32(b, uint32(now))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame))) // here
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame))) // on the wire
	b = appendPadded(b, frame)
	b = binary.LittleEndian.AppendUint32(b, 4<<16|optFlags)
	b = binary.LittleEndian.AppendUint32(b, uint32(way))
	b = appendOption(b, optEnd, "")
	return end(b, at)
}
