package rdmap

import (
	"encoding/binary"
	"fmt"
)

// Layer is where an error was found (RFC 5040, section 4.8).
type Layer uint8

// Layers.
const (
	LayerRDMAP Layer = 0
	LayerDDP   Layer = 1
	LayerLLP   Layer = 2
)

// Cause is a Terminate message's reason: layer, error type and error code.
type Cause struct {
	Layer Layer
	Type  uint8
	Code  uint8
}

// Causes that the datagram mode answers with (RFC 5040, figure 9; RFC 5041,
// section 7.2).
var (
	InvalidSTag     = Cause{LayerRDMAP, 1, 0x00}
	BaseBounds      = Cause{LayerRDMAP, 1, 0x01}
	AccessRights    = Cause{LayerRDMAP, 1, 0x02}
	UnexpectedOp    = Cause{LayerRDMAP, 2, 0x06}
	InvalidVersion  = Cause{LayerRDMAP, 2, 0x05}
	InvalidQN       = Cause{LayerDDP, 2, 0x01}
	InvalidMO       = Cause{LayerDDP, 2, 0x04}
	MessageTooLong  = Cause{LayerDDP, 2, 0x05}
	CatastrophicLLP = Cause{LayerLLP, 0, 0x00}
)

// TerminateLen is the length in bytes of the Terminate payload that we send:
// the control word, without copies of the headers that caused it.
const TerminateLen = 4

// Put writes c as the payload of a Terminate message.
func (c Cause) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(c.Layer)<<28|uint32(c.Type)<<24|uint32(c.Code)<<16)
}

// ParseCause reads the control word of a Terminate message.
func ParseCause(b []byte) (c Cause, ok bool) {
	if len(b) < TerminateLen {
		return c, false
	}
	w := binary.BigEndian.Uint32(b)
	return Cause{Layer(w >> 28), uint8(w>>24) & 0x0f, uint8(w >> 16)}, true
}

func (c Cause) Error() string {
	switch c {
	case InvalidSTag:
		return "remote key is not valid"
	case BaseBounds:
		return "remote range is outside of the region"
	case AccessRights:
		return "remote region does not grant this access"
	case UnexpectedOp:
		return "operation is not known to the peer"
	case MessageTooLong:
		return "message is longer than the receive buffer"
	}
	return fmt.Sprintf("terminated: layer %d, type %d, code %#x", c.Layer, c.Type, c.Code)
}
