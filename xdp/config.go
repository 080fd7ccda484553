package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// ZeroCopy says whether the device may read and write the arena itself.
type ZeroCopy uint8

// The choices for Config.ZeroCopy.
const (
	ZeroCopyAuto  ZeroCopy = iota // in driver mode, when the driver can
	ZeroCopyNever                 // the kernel copies
	ZeroCopyMust                  // fail when the driver cannot
)

// Config describes a port to open. Device, Arena and either Program or
// Steer.PortBase are needed; the rest has defaults.
type Config struct {
	Device string // name of the network device
	Arena  *Arena // all of it becomes the UMEM; must outlive the port

	// Queue is the queue to send on, from 0, and the first to receive on, and
	// Queues is how many there are to receive on. A card may give any frame to
	// any of its queues (RSS), so the default is all from Queue on, or one with
	// Program, whose caller knows where frames arrive.
	Queue, Queues int

	// Program steers frames into the socket as slot Slot of queue Queue. It
	// is attached to Device and stays the caller's. When nil, Open loads and
	// attaches one with Steer and Mode, and Close removes it.
	Program *bpf.Program
	Steer   bpf.Config
	Slot    int
	Mode    bpf.Mode // default Auto: generic on veth (lower latency there), else driver, else generic

	ZeroCopy ZeroCopy
	MTU      int   // largest IP packet wanted, bytes; default what the device has
	RxDepth  int   // chunks kept ready for receiving on each queue, a power of two; default 2048, less with many queues
	TxDepth  int   // buffers that may be on their way out, a power of two; default 1024
	Frames   int   // chunks in the port's pool; default Queues*RxDepth + TxDepth + 1024
	Pool     *Pool // chunks of Arena that several ports of one engine share, as many as their Frames together, which the caller keeps; default a pool of Frames of the port's own
	Track    bool  // check every move of a frame (tests)

	// BusyPoll lets Recv poll the device when nothing has arrived, instead of
	// leaving it to interrupts; default off. What comes of it PortCaps.BusyPoll says.
	// It is for network cards, and keeps interrupts away only while the settings of
	// the device are those of NAPI.Busy, which the caller sets, and sets back.
	BusyPoll bool
}

// depthOf returns the default number of chunks to receive into on each of some
// queues: all may arrive on one of them, so none has less while there are few, and
// many share what four have, or half of the arena if that is less.
func depthOf(alone, queues int, arena *Arena) int {
	if queues == 1 || arena == nil {
		return alone
	}
	d := min(alone, 4*alone/powerFrom(queues))
	for d*queues > arena.Room()/2/mem.FrameSize && d > depthMin {
		d /= 2
	}
	return max(d, depthMin)
}

// depthMax is what the kernel allocates without complaint.
const depthMax = 1 << 16

// WithDefaults returns c with all defaults filled in, or says what is wrong
// with it.
func (c Config) WithDefaults() (Config, error) {
	c.Queues = max(c.Queues, 1)
	c.RxDepth = cmp.Or(c.RxDepth, depthOf(2048, c.Queues, c.Arena))
	c.TxDepth = cmp.Or(c.TxDepth, 1024)
	c.Frames = cmp.Or(c.Frames, c.Queues*c.RxDepth+c.TxDepth+1024)
	if c.Program == nil {
		c.Steer.Queues = max(c.Steer.Queues, c.Queue+c.Queues)
		c.Steer.Slots = max(c.Steer.Slots, c.Slot+1)
	}
	switch {
	case c.Device == "":
		return c, errors.New("xdp: Config.Device is empty: name a network device (xinfo lists them)")
	case c.Arena == nil:
		return c, errors.New("xdp: Config.Arena is nil: make one with mem.New")
	case c.Queue < 0 || c.Slot < 0:
		return c, fmt.Errorf("xdp: Config.Queue is %d and Config.Slot is %d: both count from 0", c.Queue, c.Slot)
	case !isDepth(c.RxDepth) || !isDepth(c.TxDepth):
		return c, fmt.Errorf("xdp: Config.RxDepth is %d and Config.TxDepth is %d: give powers of two from %d to %d", c.RxDepth, c.TxDepth, depthMin, depthMax)
	case c.ZeroCopy == ZeroCopyMust && c.Mode == bpf.Generic:
		return c, errors.New("xdp: zero-copy needs driver mode: change Config.Mode or Config.ZeroCopy")
	}
	b := c.Budget()
	if err := b.Check(c.Frames); err != nil {
		return c, fmt.Errorf("xdp: Config.Frames is %d: %w", c.Frames, err)
	}
	return c, nil
}

// rxHeld is how many chunks the protocols hold between Recv and Release: one
// batch.
const rxHeld = 8 * fabric.MaxBufs

// Budget is how many of the port's chunks each part holds at most.
func (c Config) Budget() Budget {
	return Budget{
		{Name: "FILL and RX rings", Frames: max(c.Queues, 1) * c.RxDepth, Why: "chunks ready to be received into, or received", Knob: "Config.RxDepth, Config.Queues"},
		{Name: "received", Frames: rxHeld, Why: "one batch that the protocols read", Knob: "none: it is fixed"},
		{Name: "reserve to send", Frames: fillReserve, Why: "never given to the FILL ring", Knob: "none: it is fixed"},
	}
}

// depthMin leaves room for one frame of the largest size.
const depthMin = 32

func isDepth(n int) bool { return n >= depthMin && n <= depthMax && bits.OnesCount(uint(n)) == 1 }

// rxBuffer is how many bytes of a frame fit into one chunk when receiving: the
// kernel keeps XDP_PACKET_HEADROOM free in front.
const rxBuffer = mem.FrameSize - unix.XDP_PACKET_HEADROOM

// headerLen is the length of an Ethernet header.
const headerLen = 14

// MTUSingle is the largest MTU whose frames are received in one buffer.
const MTUSingle = rxBuffer - headerLen

// bufsFor returns how many buffers a received frame with an IP packet of mtu
// bytes has.
func bufsFor(mtu int) int { return min((mtu+headerLen+rxBuffer-1)/rxBuffer, fabric.MaxBufs) }
