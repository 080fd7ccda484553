package reliable

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// Version is the version of the bytes below.
const Version = 2

// HeaderLen is the length in bytes of the header in front of each packet.
const HeaderLen = 16

// kind is what a packet is.
type kind uint8

const (
	kindData     kind = iota + 1 // part of a message follows
	kindAck                      // SACK words follow
	kindAsk                      // acknowledge at once: chunks cannot say so themselves
	kindHello                    // goes by the second path, with padding: does it lead there?
	kindHelloAck                 // it does
	kindEnd
)

// Flags of packets of kind data.
const (
	flagFirst = 0x80 // begins a message
	flagLast  = 0x40 // ends it
	flagSoon  = 0x20 // the sender waits for the acknowledgement
	flagMask  = flagFirst | flagLast | flagSoon
)

// header is in front of every packet, in network order (docs/PROTOCOL.md):
//
//	 0       1       2               4               8              12      14     15
//	+-------+-------+---------------+---------------+---------------+-------+------+----+
//	|F|L|S|k|  SACK | window        | PSN           | ack           | held  | ver. | 0  |
//	+-------+-------+---------------+---------------+---------------+-------+------+----+
type header struct {
	kind   kind
	flags  uint8
	sack   uint8      // words of 64 bits that follow; bit i of word w: ack+1+64w+i has arrived
	window uint16     // packets from ack on that the sender of this one takes
	psn    serial.U32 // of this packet; of the next one to be sent when it has none
	ack    serial.U32 // all before it have arrived
	held   uint16     // for how long the newest of those was kept, see arq.HeldOf
}

func (h *header) put(b []byte) {
	_ = b[HeaderLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.flags|uint8(h.kind))<<56|uint64(h.sack)<<48|uint64(h.window)<<32|uint64(h.psn))
	binary.BigEndian.PutUint64(b[8:], uint64(h.ack)<<32|uint64(h.held)<<16|Version<<8)
}

// parse reads and checks the header of a packet. false means that no peer of
// ours has sent it.
func (h *header) parse(b []byte) bool {
	if len(b) < HeaderLen {
		return false
	}
	w := binary.BigEndian.Uint64(b)
	h.flags, h.kind, h.sack = uint8(w>>56)&flagMask, kind(w>>56&^flagMask), uint8(w>>48)
	h.window, h.psn = uint16(w>>32), serial.U32(w)
	w = binary.BigEndian.Uint64(b[8:])
	h.ack, h.held = serial.U32(w>>32), uint16(w>>16)
	if uint16(w) != Version<<8 || h.window > arq.WindowMax {
		return false
	}
	switch h.kind {
	case kindData:
		return h.sack == 0
	case kindAck:
		return h.flags == 0 && h.sack <= arq.MaxSackWords && len(b) == HeaderLen+8*int(h.sack)
	case kindAsk, kindHelloAck:
		return h.flags|h.sack == 0 && len(b) == HeaderLen
	case kindHello:
		return h.flags|h.sack == 0
	}
	return false
}

// ackLen is the length of the longest acknowledgement.
const ackLen = HeaderLen + 8*arq.MaxSackWords
