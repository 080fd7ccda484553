package iwarp

import "fmt"

// Layer is the protocol that found an error (RFC 5040, section 4.8).
type Layer uint8

// Layers.
const (
	LayerRDMAP Layer = 0
	LayerDDP   Layer = 1
	LayerLLP   Layer = 2
)

func (l Layer) String() string {
	switch l {
	case LayerRDMAP:
		return "RDMAP"
	case LayerDDP:
		return "DDP"
	case LayerLLP:
		return "LLP"
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// Cause says why a stream is terminated. It is the first 16 bits of the
// Terminate message: layer (4 bits), error type (4), error code (8). Packages
// ddp and rdmap name the causes of their layers; those of the LLP are here.
//
// The zero Cause is a real one (RDMAP, Local Catastrophic Error), so it never
// stands for "none".
type Cause uint16

// Causes that the lower layer finds (RFC 5044, section 8; RFC 6581). On
// datagrams the same codes are used: "connection" is the association.
const (
	LLPLost         Cause = 0x2001
	LLPCRC          Cause = 0x2002
	LLPMarker       Cause = 0x2003
	LLPStartup      Cause = 0x2004
	LLPCatastrophic Cause = 0x2005
	LLPResources    Cause = 0x2006
	LLPNoRTR        Cause = 0x2007
)

// MakeCause puts a Cause together from its parts. typ has 4 bits.
func MakeCause(l Layer, typ, code uint8) Cause {
	return Cause(l&0xf)<<12 | Cause(typ&0xf)<<8 | Cause(code)
}

// Layer returns which protocol found the error.
func (c Cause) Layer() Layer { return Layer(c >> 12) }

// Type returns the error type, which each layer numbers for itself.
func (c Cause) Type() uint8 { return uint8(c>>8) & 0xf }

// Code returns the error code within the type.
func (c Cause) Code() uint8 { return uint8(c) }

// Protection tells whether the peer refused access to its memory, whichever
// layer found out: RDMAP's Remote Protection Error or DDP's Tagged Buffer
// Error, of which a version that it does not know is none. Verbs call it a
// remote access error.
func (c Cause) Protection() bool { return c>>8 == 0x01 || c>>8 == 0x11 && c != 0x1104 }

// Known tells whether c is in the registry of RFC 6580.
func (c Cause) Known() bool { return c.text() != "" }

func (c Cause) Error() string {
	text := c.text()
	if text == "" {
		text = "terminated by the peer for a reason that no RFC has"
	}
	return fmt.Sprintf("%s (%v error %d/%#02x)", text, c.Layer(), c.Type(), c.Code())
}

func (c Cause) text() string {
	if c>>8 == 0 { // RDMAP's only type without codes
		return "the peer failed locally"
	}
	for i := range registry {
		if registry[i].cause == c {
			return registry[i].text
		}
	}
	return ""
}

// registry is IANA's list of RDDP errors (RFC 6580; RFC 7306 added none), in
// words for the owner of the request that failed.
var registry = [...]struct {
	cause Cause
	text  string
}{
	{0x0100, "the STag (remote key) of the source is not valid: never issued, revoked, or mistyped"},
	{0x0101, "the source lies outside of the remote region"},
	{0x0102, "the remote region does not grant this access: register it with the right for it"},
	{0x0103, "the STag of the source belongs to another protection domain or stream"},
	{0x0104, "the source reaches past the end of the 64-bit address space"},
	{0x0109, "the STag may not be invalidated by this peer"},
	{0x01ff, "remote protection error"},
	{0x0205, "the peer does not speak this version of RDMAP"},
	{0x0206, "the peer did not expect this operation"},
	{0x0207, "the peer cannot go on with this stream"},
	{0x0208, "the peer cannot go on with any stream"},
	{0x0209, "the STag cannot be invalidated"},
	{0x02ff, "remote operation error"},

	{0x1000, "the peer's DDP failed locally"},
	{0x1100, "the STag (remote key) of the sink is not valid: never issued, revoked, or mistyped"},
	{0x1101, "the sink lies outside of the remote region"},
	{0x1102, "the STag of the sink belongs to another protection domain or stream"},
	{0x1103, "the sink reaches past the end of the 64-bit address space"},
	{0x1104, "the peer does not speak this version of DDP (tagged)"},
	{0x1201, "the peer has no such queue, or not for this operation"},
	{0x1202, "the peer had no receive posted"},
	{0x1203, "the message number is out of range"},
	{0x1204, "the message offset is out of range"},
	{0x1205, "the message is longer than the buffer for it"},
	{0x1206, "the peer does not speak this version of DDP (untagged)"},

	{LLPLost, "the connection was lost"},
	{LLPCRC, "a CRC was wrong"},
	{LLPMarker, "a marker did not match the length of its FPDU"},
	{LLPStartup, "the start-up frame was not valid"},
	{LLPCatastrophic, "the peer's lower layer failed locally"},
	{LLPResources, "the peer's IRD is less than what was asked for"},
	{LLPNoRTR, "no kind of first message suits both sides"},
}
