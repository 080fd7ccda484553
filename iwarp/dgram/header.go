// Package dgram carries DDP over unreliable datagrams: the LLP header of ours,
// and the window that makes datagrams reliable (RD). It knows sequence numbers
// and times; it never sees a socket, a clock or a payload.
package dgram

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/xwarp/xwarp/internal/serial"
)

// Version of the wire format, in the upper half of byte 0.
const Version = 1

// HeaderLen is the length in bytes of the LLP header in front of the ULPDUs.
const HeaderLen = 36

// LengthLen is the length in bytes of the length field in front of each ULPDU.
const LengthLen = 2

// MaxSackWords is the most selective-acknowledgement words in one datagram.
const MaxSackWords = 8

// Type is the kind of a datagram.
type Type uint8

// Kinds of datagrams.
const (
	TypeData Type = 1 // carries ULPDUs and an acknowledgement
	TypeAck  Type = 2 // carries an acknowledgement and SACK words only
)

// Flags of a datagram.
const (
	FlagCRC     = 0x80 // the CRC field is filled in
	FlagAckSoon = 0x40 // the sender waits for the acknowledgement
)

// Header is the LLP header. All fields are big-endian on the wire:
//
//	 0      1      2             4                                    12
//	|V|type| flags| ULPDU count | job key                            |
//	 12                16                20                24
//	| source epoch    | dest. epoch     | LSN             | ack       |
//	 28          30           32                36
//	| window    | SACK words | CRC32C           |
//
// The CRC covers the whole datagram with the CRC field as zero.
type Header struct {
	Type      Type
	Flags     uint8
	Count     uint16     // number of ULPDUs
	Key       uint64     // job key: what does not carry it is dropped
	SrcEpoch  uint32     // life of the sending endpoint, never 0
	DstEpoch  uint32     // life of the receiver as the sender knows it, 0 = not yet
	LSN       serial.U32 // sequence number of the first ULPDU
	Ack       serial.U32 // all ULPDUs before this one have arrived
	Window    uint16     // ULPDUs from Ack on that the sender of this header takes
	SackWords uint16     // 64-bit words behind the header; bit i of word w: Ack+1+64w+i has arrived
	CRC       uint32
}

// Put writes h to the first HeaderLen bytes of b, with a CRC of zero.
func (h *Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	b[0] = Version<<4 | byte(h.Type)
	b[1] = h.Flags
	binary.BigEndian.PutUint16(b[2:], h.Count)
	binary.BigEndian.PutUint64(b[4:], h.Key)
	binary.BigEndian.PutUint32(b[12:], h.SrcEpoch)
	binary.BigEndian.PutUint32(b[16:], h.DstEpoch)
	binary.BigEndian.PutUint32(b[20:], uint32(h.LSN))
	binary.BigEndian.PutUint32(b[24:], uint32(h.Ack))
	binary.BigEndian.PutUint16(b[28:], h.Window)
	binary.BigEndian.PutUint16(b[30:], h.SackWords)
	binary.BigEndian.PutUint32(b[32:], 0)
}

// Parse reads a header from the start of b. ok is false when b is too short or
// what it holds is not a datagram of this version.
func (h *Header) Parse(b []byte) (ok bool) {
	if len(b) < HeaderLen || b[0]>>4 != Version {
		return false
	}
	h.Type = Type(b[0] & 0x0f)
	h.Flags = b[1]
	h.Count = binary.BigEndian.Uint16(b[2:])
	h.Key = binary.BigEndian.Uint64(b[4:])
	h.SrcEpoch = binary.BigEndian.Uint32(b[12:])
	h.DstEpoch = binary.BigEndian.Uint32(b[16:])
	h.LSN = serial.U32(binary.BigEndian.Uint32(b[20:]))
	h.Ack = serial.U32(binary.BigEndian.Uint32(b[24:]))
	h.Window = binary.BigEndian.Uint16(b[28:])
	h.SackWords = binary.BigEndian.Uint16(b[30:])
	h.CRC = binary.BigEndian.Uint32(b[32:])
	switch h.Type {
	case TypeData:
		return h.SackWords == 0 && h.SrcEpoch != 0
	case TypeAck:
		return h.Count == 0 && h.SackWords <= MaxSackWords && h.SrcEpoch != 0 &&
			len(b) == HeaderLen+8*int(h.SackWords)
	}
	return false
}

// castagnoli selects CRC32C, for which hash/crc32 uses the processor's
// instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC continues a CRC32C over b. Start with 0.
func CRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Seal writes the CRC that covers the whole datagram into its header.
func Seal(header []byte, crc uint32) { binary.BigEndian.PutUint32(header[32:], crc) }

// Unseal clears the CRC field, so that a CRC over the datagram can be compared
// with what the field held.
func Unseal(header []byte) { binary.BigEndian.PutUint32(header[32:], 0) }
