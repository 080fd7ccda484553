package mpa

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Private data of a start-up frame in bytes: RFC 5044 allows 512, with the 4
// of RFC 6581 among them. We send 256 at most: with more Linux's siw resets the
// connection, or its kernel fails.
const (
	MaxPrivate     = 512
	MaxPrivateSent = 256
)

// FrameMax is the length of the longest start-up frame in bytes.
const FrameMax = frameLen + MaxPrivate

// MaxDepth is the largest IRD or ORD that can be asked for. DepthUnlimited
// stands for "not to be agreed upon here" (RFC 6581, section 9.1).
const (
	MaxDepth       = 0x3ffe
	DepthUnlimited = 0x3fff
)

// Frame is a start-up frame (RFC 5044, section 7.1; RFC 6581, sections 6 and 9):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|     "MPA ID Req Frame" or "MPA ID Rep Frame" (16 bytes)       |   0
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|R|S|   0   |   revision    |    length of private data     |  16
//	+-+-+-+-+-------+---------------+-+-+---------------------------+
//	|A|B|          IRD              |C|D|          ORD              |  20, if S
//	+-+-+---------------------------+-+-+---------------------------+
//	|  private data ...
type Frame struct {
	Reply    bool
	Revision uint8
	Markers  bool // M: the sender wants markers in what it receives
	CRC      bool // C: the sender wants CRCs
	Reject   bool // R, in a Reply
	// Enhanced (S): the 4 bytes of RFC 6581 are there, and so the next four
	// fields have a meaning. Never in revision 1.
	Enhanced   bool
	PeerToPeer bool // A
	RTR        RTR  // B (Send), C (Write), D (Read)
	IRD, ORD   uint16
	Private    []byte // without those 4 bytes
}

const (
	frameLen    = 20
	enhancedLen = 4
	keyLen      = 16

	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10

	bitA      = 0x8000 // above the IRD
	bitB      = 0x4000
	bitC      = 0x8000 // above the ORD
	bitD      = 0x4000
	maskDepth = 0x3fff
)

const (
	keyRequest = "MPA ID Req Frame"
	keyReply   = "MPA ID Rep Frame"
)

// Append writes f behind dst. The private data is as short as the sender's
// rules want it; IRD and ORD have 14 bits.
func (f *Frame) Append(dst []byte) []byte {
	key := keyRequest
	if f.Reply {
		key = keyReply
	}
	dst = append(dst, key...)
	pd := len(f.Private)
	if f.Enhanced {
		pd += enhancedLen
	}
	dst = append(dst, flag(f.Markers, flagMarkers)|flag(f.CRC, flagCRC)|flag(f.Reject, flagReject)|flag(f.Enhanced, flagEnhanced), f.Revision)
	dst = binary.BigEndian.AppendUint16(dst, uint16(pd))
	if f.Enhanced {
		ird, ord := f.IRD&maskDepth, f.ORD&maskDepth
		if f.PeerToPeer {
			ird |= bitA
		}
		if f.RTR&RTRSend != 0 {
			ird |= bitB
		}
		if f.RTR&RTRWrite != 0 {
			ord |= bitC
		}
		if f.RTR&RTRRead != 0 {
			ord |= bitD
		}
		dst = binary.BigEndian.AppendUint16(dst, ird)
		dst = binary.BigEndian.AppendUint16(dst, ord)
	}
	return append(dst, f.Private...)
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// Parse reads a frame from the start of b; reply says of which kind it has to
// be. n is its length; 0 without an error: more has to come. An error is a
// *ProtocolError, and comes as early as the bytes tell. Private lies in b.
//
// Reserved flags are ignored, and so is S in revision 1, where it is one.
func (f *Frame) Parse(b []byte, reply bool) (n int, err error) {
	key := keyRequest
	if reply {
		key = keyReply
	}
	if k := min(len(b), keyLen); string(b[:k]) != key[:k] {
		return 0, notMPA(b[:k], reply)
	}
	if len(b) < frameLen {
		return 0, nil
	}
	flags, pd := b[keyLen], int(binary.BigEndian.Uint16(b[keyLen+2:]))
	*f = Frame{
		Reply: reply, Revision: b[keyLen+1],
		Markers: flags&flagMarkers != 0, CRC: flags&flagCRC != 0, Reject: flags&flagReject != 0,
	}
	if pd > MaxPrivate {
		return 0, invalid("the start-up frame announces %d bytes of private data, at most %d are allowed", pd, MaxPrivate)
	}
	f.Enhanced = flags&flagEnhanced != 0 && f.Revision >= 2
	switch {
	case f.Enhanced && pd < enhancedLen:
		return 0, invalid("the start-up frame has the enhanced flag (S), but %d bytes of private data do not hold IRD and ORD", pd)
	case len(b) < frameLen+pd:
		return 0, nil
	}
	f.Private = b[frameLen : frameLen+pd : frameLen+pd]
	if f.Enhanced {
		f.parseEnhanced()
	}
	return frameLen + pd, nil
}

// parseEnhanced takes IRD and ORD off the front of the private data.
func (f *Frame) parseEnhanced() {
	ird, ord := binary.BigEndian.Uint16(f.Private), binary.BigEndian.Uint16(f.Private[2:])
	f.Private = f.Private[enhancedLen:]
	f.IRD, f.ORD = ird&maskDepth, ord&maskDepth
	f.PeerToPeer = ird&bitA != 0
	if ird&bitB != 0 {
		f.RTR |= RTRSend
	}
	if ord&bitC != 0 {
		f.RTR |= RTRWrite
	}
	if ord&bitD != 0 {
		f.RTR |= RTRRead
	}
}

func notMPA(got []byte, reply bool) error {
	if reply && bytes.Equal(got, []byte(keyRequest)) {
		return invalid("both ends have sent a Request: one has to listen")
	}
	return invalid("what came is no start-up frame of MPA: %q", got)
}

// checkPrivate tells whether private data is short enough to be sent.
func checkPrivate(private []byte, enhanced bool) error {
	room := MaxPrivateSent
	if enhanced {
		room -= enhancedLen
	}
	if len(private) > room {
		return fmt.Errorf("mpa: %d bytes of private data, %d are possible", len(private), room)
	}
	return nil
}
