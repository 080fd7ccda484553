// Package rdmap is the Remote Direct Memory Access Protocol (RFC 5040): what
// the segments that DDP places mean.
package rdmap

// Opcode is the operation of a message (RFC 5040, section 4.3).
type Opcode uint8

// Opcodes.
const (
	Write        Opcode = 0
	ReadRequest  Opcode = 1
	ReadResponse Opcode = 2
	Send         Opcode = 3
	SendInv      Opcode = 4
	SendSE       Opcode = 5
	SendSEInv    Opcode = 6
	Terminate    Opcode = 7
)

// Version is the RDMAP version of RFC 5040.
const Version = 1

// Control returns the control byte: version, reserved bits, opcode.
func Control(op Opcode) uint8 { return Version<<6 | uint8(op) }

// ParseControl takes the opcode out of a control byte. ok is false when the
// version is not ours.
func ParseControl(b uint8) (op Opcode, ok bool) { return Opcode(b & 0x0f), b>>6 == Version }
