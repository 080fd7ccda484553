// Package dgram carries DDP over unreliable datagrams: the LLP header of ours,
// whose fields make datagrams reliable (RD) by means of internal/proto/arq. It never
// sees a socket, a clock or a payload.
package dgram

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/crc32c"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// Version of the wire format, in the upper half of byte 0.
const Version = 2

// HeaderLen is the length in bytes of the LLP header in front of the ULPDUs.
const HeaderLen = 36

// LengthLen is the length in bytes of the length field in front of each ULPDU.
const LengthLen = 2

// MaxSackWords is the most selective-acknowledgement words in one datagram.
const MaxSackWords = arq.MaxSackWords

// Type is the kind of a datagram.
type Type uint8

// Kinds of datagrams.
const (
	TypeData     Type = 1 // carries ULPDUs and an acknowledgement
	TypeAck      Type = 2 // carries an acknowledgement and SACK words only
	TypeHello    Type = 3 // asks a peer whether it is there, and how large a datagram gets there
	TypeHelloAck Type = 4 // answers a Hello
	TypeUD       Type = 5 // carries ULPDUs that are not acknowledged
	TypeReset    Type = 6 // tells that the association is not known, or not any more
)

// Flags of a datagram.
const (
	FlagCRC     = 0x80 // the CRC field is filled in
	FlagAckSoon = 0x40 // the sender waits for the acknowledgement
	FlagBulk    = 0x20 // large data goes, or is to go, the second path: see BulkPort
	FlagPaths   = 0x10 // a Hello or a HelloAck tells where its sender can be reached: see PathLen
)

// BulkPort is added to the UDP port of an endpoint for that of its second path, if
// it has one.
const BulkPort = 8192

// Header is the LLP header. All fields are big-endian on the wire:
//
//	 0             4      5      6      7      8             16
//	| CRC32C      |V|type| flags| count| SACK | job key    |
//	 16            20            24            28
//	| source epoch| dest. epoch | LSN         | ack        |
//	 32                  34     36
//	| credit 6, window 10| held |
//
// The CRC covers everything behind it. That it comes first, and that the
// fields pair up to aligned words, lets it be computed over a header that was
// written a moment ago without stalling the processor.
type Header struct {
	Type      Type
	Flags     uint8
	Count     uint8  // number of ULPDUs
	SackWords uint8  // 64-bit words behind the header; bit i of word w: Ack+1+64w+i has arrived
	Key       uint64 // job key: what does not carry it is dropped
	SrcEpoch  uint32 // number of the sender's side of the association, never 0
	DstEpoch  uint32 // number of the receiver's side; 0 in a first Hello and in UD
	LSN       Serial // sequence number of the first ULPDU. UD: source queue pair
	Ack       Serial // all ULPDUs before this one have arrived. UD: destination queue pair
	Window    uint16 // ULPDUs from Ack on that the sender of this header takes; at most WindowMax
	Credit    uint8  // Sends that the peer may have outstanding, see CreditOf
	Held      uint16 // how long the newest ULPDU that this acknowledges was kept, see arq.HeldOf
	CRC       uint32
}

// Put writes h to the first HeaderLen bytes of b, except for the CRC.
func (h *Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	binary.BigEndian.PutUint32(b[4:], (Version<<4|uint32(h.Type))<<24|uint32(h.Flags)<<16|uint32(h.Count)<<8|uint32(h.SackWords))
	binary.BigEndian.PutUint64(b[8:], h.Key)
	binary.BigEndian.PutUint64(b[16:], uint64(h.SrcEpoch)<<32|uint64(h.DstEpoch))
	binary.BigEndian.PutUint64(b[24:], uint64(h.LSN)<<32|uint64(h.Ack))
	binary.BigEndian.PutUint32(b[32:], uint32(h.Credit)<<26|uint32(h.Window)<<16|uint32(h.Held))
}

// PutOne writes h, and the CRC when sealed is set, to the first bytes of b: a
// datagram of one ULPDU, which is there already but for its length. It writes
// whole words, so that no load of the CRC, nor of a checksum over b, meets two
// stores that are under way.
func (h *Header) PutOne(b []byte, sealed bool) {
	const ulpdu = HeaderLen + LengthLen
	first := (Version<<4|uint32(h.Type))<<24 | uint32(h.Flags)<<16 | 1<<8
	_ = b[ulpdu+1]
	binary.BigEndian.PutUint32(b[4:], first)
	binary.BigEndian.PutUint64(b[8:], h.Key)
	binary.BigEndian.PutUint64(b[16:], uint64(h.SrcEpoch)<<32|uint64(h.DstEpoch))
	binary.BigEndian.PutUint64(b[24:], uint64(h.LSN)<<32|uint64(h.Ack))
	last := uint64(h.Credit)<<26 | uint64(h.Window)<<16 | uint64(h.Held)
	binary.BigEndian.PutUint64(b[32:], last<<32|uint64(len(b)-ulpdu)<<16|uint64(binary.BigEndian.Uint16(b[ulpdu:])))
	crc := uint32(0)
	if sealed {
		crc = CRC(0, b[CRCLen:])
	}
	binary.BigEndian.PutUint64(b, uint64(crc)<<32|uint64(first))
}

// Parse reads a header from the start of b. ok is false when b is too short or
// what it holds is not a datagram of this version. b may be the beginning of a
// longer datagram, but not of one that ends with its header and SACK words.
func (h *Header) Parse(b []byte) (ok bool) {
	if len(b) < HeaderLen || b[4]>>4 != Version {
		return false
	}
	h.CRC = binary.BigEndian.Uint32(b)
	w := binary.BigEndian.Uint32(b[4:])
	h.Type, h.Flags, h.Count, h.SackWords = Type(w>>24&0x0f), uint8(w>>16), uint8(w>>8), uint8(w)
	h.Key = binary.BigEndian.Uint64(b[8:])
	h.SrcEpoch = binary.BigEndian.Uint32(b[16:])
	h.DstEpoch = binary.BigEndian.Uint32(b[20:])
	h.LSN = serial.U32(binary.BigEndian.Uint32(b[24:]))
	h.Ack = serial.U32(binary.BigEndian.Uint32(b[28:]))
	w = binary.BigEndian.Uint32(b[32:])
	h.Credit, h.Window, h.Held = uint8(w>>26), uint16(w>>16&0x3ff), uint16(w)
	if h.SrcEpoch == 0 || h.Window > WindowMax {
		return false
	}
	switch h.Type {
	case TypeData, TypeUD:
		return h.SackWords == 0
	case TypeAck:
		return h.Count == 0 && h.SackWords <= MaxSackWords && len(b) == HeaderLen+8*int(h.SackWords)
	case TypeHello, TypeHelloAck:
		return h.Count|h.SackWords == 0 && len(b) >= HeaderLen+HelloLen
	case TypeReset:
		return h.Count|h.SackWords == 0
	}
	return false
}

// CRC continues a CRC32C over b. Start with 0.
func CRC(crc uint32, b []byte) uint32 { return crc32c.Update(crc, b) }

// CRCLen is the length in bytes of the CRC, which is the first field and does
// not cover itself.
const CRCLen = 4

// Seal writes the CRC over all that is behind it.
func Seal(header []byte, crc uint32) { binary.BigEndian.PutUint32(header, crc) }
