package p2p

import (
	"cmp"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Config describes an endpoint. Rank and Size are needed; zero values of the
// rest mean the defaults.
type Config struct {
	Rank, Size int // Size: ghosts are among them
	Ghosts     int // how many of the last ones are ghosts; default 0
	Transport  Transport
	Shared     bool // reach ranks on the same host through shared memory
	NoPull     bool // but do without process_vm_readv, as if it were forbidden
	Host       int  // number of the host
	EagerMax   int  // largest message in bytes that is sent without asking; default 16 KiB, -1 means 0
	// EagerIdle is the longest message in bytes that is sent without asking to a
	// peer that little is under way to, in pieces of EagerMax; default 64 KiB, but
	// EagerMax where that is given; at least EagerMax.
	EagerIdle int
	// EagerNear is the longest message in bytes that is copied through the shared
	// memory of a host; what is longer its receiver copies from where it lies.
	// Default: 16 KiB, but EagerMax where that is given. -1 means 0.
	EagerNear int
	// Rendezvous is how longer messages cross the network.
	Rendezvous Rendezvous
	// Calibrate sets the limit of each channel by what copies take, unless EagerMax or
	// EagerNear is given; and up to which length messages go in pieces to an idle
	// peer, unless EagerMax or EagerIdle is given. Else both are as said there.
	Calibrate bool
	Receives  int // receive buffers of EagerMax bytes; default 256
	Sends     int // send buffers of EagerMax bytes; default 64
	// UnexpectedMax is how many bytes of eager messages may wait for their
	// receives before their senders have to wait; default 64 MiB.
	UnexpectedMax int
	// Numbers counts messages that are received: see Mark.Number.
	Numbers bool
	// Threads asks for an endpoint that several goroutines use at the same time.
	// Endpoint.Threads tells whether it is one: in the simulator it is not.
	Threads bool
	// Key is the job key, which RC and Hybrid check when peers connect.
	Key uint64
	// PromoteMessages and PromoteBytes are how much of long messages RD and Hybrid send to
	// a peer in datagrams before they connect: whichever comes first. Defaults: 50 and
	// 256 KiB.
	PromoteMessages, PromoteBytes int
	// Connections is to how many peers RD and Hybrid connect at most; default 64.
	Connections int
	// Aborted is asked several times a second. When it returns an error,
	// everything under way fails with it. Default: never.
	Aborted func() error
	// Deaths is asked as often. It returns the ranks that have died while the
	// others go on, without the first known ones. Default: the endpoint is told of none.
	Deaths func(known int) []int

	found
}

// found is what is found out with the messages of the program.
type found struct {
	tunesIdle bool // how long messages in pieces are
	tunesLink bool // which way large data goes
}

// Limits of eager messages in bytes.
const (
	eagerMost = 1 << 20 // the most that each can be
	eagerMax  = config.DefaultEager
	eagerIdle = config.DefaultEagerIdle
)

// ranks returns how many of the processes are ranks.
func (c *Config) ranks() int { return c.Size - c.Ghosts }

func (c *Config) fill() error {
	c.fillEager()
	if c.Receives == 0 {
		c.Receives = 256
	}
	if c.Sends == 0 {
		c.Sends = 64
	}
	if c.UnexpectedMax == 0 {
		c.UnexpectedMax = config.DefaultUnexpected
	}
	if c.Size < 1 || c.Size > 1<<24 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("p2p: rank %d of %d is not possible (at most %d ranks)", c.Rank, c.Size, 1<<24)
	}
	if c.Ghosts < 0 || c.Ghosts >= c.Size {
		return fmt.Errorf("p2p: %d of %d ranks are ghosts", c.Ghosts, c.Size)
	}
	if err := c.fillHybrid(); err != nil {
		return err
	}
	if max(c.EagerIdle, c.EagerNear) > eagerMost || c.Receives < 1 || c.Sends < 1 {
		return fmt.Errorf("p2p: eager limit %d, %d receive and %d send buffers: want at most 1 MiB, and at least one of each", c.EagerMax, c.Receives, c.Sends)
	}
	return nil
}

// fillEager fills in the limits of eager messages.
func (c *Config) fillEager() {
	idle, near, least := eagerIdle, eagerMax, max(c.EagerMax, 0)
	c.tunesLink = c.Calibrate
	c.tunesIdle = c.Calibrate && c.EagerMax == 0 && c.EagerIdle == 0
	c.Calibrate = c.Calibrate && c.EagerMax == 0 && c.EagerNear == 0
	if c.EagerMax != 0 {
		idle, near = least, least
	} else {
		c.EagerMax = eagerMax
	}
	c.EagerMax = max(c.EagerMax, 0)
	c.EagerIdle = max(cmp.Or(c.EagerIdle, idle), c.EagerMax)
	c.EagerNear = max(cmp.Or(c.EagerNear, near), 0)
}
