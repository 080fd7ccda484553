package footprint

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// Carrier is what is under the connections, or the datagrams.
type Carrier uint8

// Carriers.
const (
	Memory    Carrier = iota // datagrams in this process (package mesh)
	KernelTCP                // on loopback: two descriptors for each connection
	SimTCP                   // the simulator's streams
)

func (c Carrier) String() string { return [...]string{"memory", "kernel TCP", "simulator"}[c] }

// Config says what to measure.
type Config struct {
	Carrier Carrier // Memory: reliable datagrams; else connections
	Peers   int
	Recvs   int  // receives that it posts (connections: on each, unless Shared); default 512
	Shared  bool // connections: all take their receives from one queue, of Recvs
}

func (c *Config) fill() error {
	c.Recvs = cmp.Or(c.Recvs, 512)
	if c.Carrier > SimTCP || c.Peers < 1 {
		return fmt.Errorf("footprint: %d peers over carrier %d", c.Peers, c.Carrier)
	}
	return nil
}

// connectionSends is the send queue of each of the server's connections.
const connectionSends = 16

// completions is the depth of the server's completion queues, if that is enough:
// each posted receive holds a place in one, and peers come in waves.
const completions = 4096

// received is the depth of the queue for receives.
func (c *Config) received() int {
	if c.Carrier == Memory || c.Shared {
		return max(c.Recvs, completions)
	}
	return max(c.Recvs*c.Peers, completions)
}

// wave is how many peers are between their first and their last message.
const wave = 64

// message is the length of a message in bytes.
const message = 64

// setup is a server with its peers.
type setup interface {
	// play connects all peers and exchanges a message with each.
	play() error
	// leave lets go of everything but the server.
	leave() error
	// end lets go of the server.
	end() error
}

// Heap returns how many bytes of the heap the server of c keeps when its peers are
// idle: all of it, with what does not depend on their number.
func Heap(c Config) (bytes int64, err error) {
	if err := c.fill(); err != nil {
		return 0, err
	}
	open := openConnected
	if c.Carrier == Memory {
		open = openDatagrams
	}
	s, err := open(c)
	if err != nil {
		return 0, err
	}
	if err := s.play(); err != nil {
		return 0, errors.Join(err, s.leave(), s.end())
	}
	if err := s.leave(); err != nil {
		return 0, errors.Join(err, s.end())
	}
	with := inUse()
	if err := s.end(); err != nil {
		return 0, err
	}
	without := inUse()
	runtime.KeepAlive(s)
	return with - without, nil
}

// inUse returns how many bytes of the heap are in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 { // what the first finds free may have been pooled
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// member is one end: what both kinds of peers and servers have.
type member struct {
	ctx *verbs.Context
	pd  *verbs.PD
	scq *verbs.CQ
	rcq *verbs.CQ
	mr  *verbs.MR
	wc  [64]verbs.WC
}

// open makes what a queue pair needs, with completion queues of these depths.
func (m *member) open(config verbs.Config, sends, recvs int) (err error) {
	config.ZeroBased = true
	if m.ctx, err = verbs.New(config); err != nil {
		return err
	}
	if m.pd, err = m.ctx.AllocPD(); err != nil {
		return err
	}
	if m.scq, err = m.ctx.CreateCQ(verbs.CQInit{Depth: sends}); err != nil {
		return err
	}
	if m.rcq, err = m.ctx.CreateCQ(verbs.CQInit{Depth: recvs}); err != nil {
		return err
	}
	m.mr, err = m.pd.RegMR(make([]byte, message), verbs.LocalWrite)
	return err
}

// receive is a receive into the member's memory: what arrives is not read.
func (m *member) receive() *verbs.RecvWR {
	return &verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{m.mr.SGE(0, message)}}
}

// text is a message, to ah over datagrams.
func text(ah *verbs.AH) *verbs.SendWR {
	return &verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: make([]byte, message), AH: ah}
}

// completed takes up to len(m.wc) completions.
func (m *member) completed(cq *verbs.CQ) ([]verbs.WC, error) {
	n := cq.Poll(m.wc[:])
	for i := range m.wc[:n] {
		if wc := &m.wc[i]; wc.Status != verbs.Success {
			return nil, fmt.Errorf("footprint: %v: %v", wc.Opcode, wc.Status)
		}
	}
	return m.wc[:n], nil
}

// drained takes all completions and returns how many there were.
func (m *member) drained(cq *verbs.CQ) (n int, err error) {
	for {
		wcs, err := m.completed(cq)
		if err != nil || len(wcs) == 0 {
			return n, err
		}
		n += len(wcs)
	}
}

// spinner is the parker of a member that is stepped in turns with others.
type spinner struct{}

var _ progress.Parker = spinner{}

// Park implements progress.Parker.
func (spinner) Park(mono.Time, mono.Duration) bool { return false }
