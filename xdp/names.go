package xdp

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Arena is the memory that frames lie in: the UMEM. Alloc takes a piece of it for
// something else, At returns bytes of it, and Close gives all of it back.
type Arena = mem.Arena

// NewArena makes an arena of at least so many bytes, on huge pages where there are
// any. It fails when the memory cannot be had. The caller closes it, after the ports
// that use it.
func NewArena(size int) (*Arena, error) { return mem.New(mem.Config{Size: size}) }

// Addr is an offset into an Arena.
type Addr = mem.Addr

// Desc is a buffer of a frame in the arena.
type Desc = fabric.Desc

// More in Desc.Flags marks a buffer that is followed by another one of the same
// frame.
const More = fabric.More

// Pool is the chunks of the arena that a port has for frames: GetToSend takes one to
// fill and send, and a receiver gives each back with Put.
type Pool = mem.Pool

// Budget is how many chunks each part holds at most.
type Budget = mem.Budget

// PortCaps says what a port can do, PortStats what it did.
type PortCaps = fabric.PortCaps

// PortStats counts frames of a port.
type PortStats = fabric.PortStats

// FramePort is what all ports are: Port, and those that OpenPairSlot opens.
type FramePort = fabric.Port
