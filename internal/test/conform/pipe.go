package conform

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// PipeConfig describes a pipe. Its zero value carries 9000-byte packets.
type PipeConfig struct {
	MTU     int // largest IP packet in bytes; default 9000
	Frames  int // frames of each end; default 512
	Depth   int // send queue in buffers, and frames that may wait to be received; default 128
	MaxBufs int // most buffers of a frame to send; default fabric.MaxBufs
	// Chunks are the lengths in bytes of the buffers that a frame is
	// received in, repeated as often as needed; default mem.FrameSize-256.
	Chunks []int
	Room   int // bytes left free in front of each buffer that is received; default 0
	// Wire, when not nil, sees each frame on its way and may change it, or
	// lose it by returning nil.
	Wire func(frame []byte) []byte
}

// Pipe is one end of two joined Ethernet ports in memory. Frames move when
// the sender flushes.
type Pipe struct {
	config PipeConfig
	peer   *Pipe
	arena  *mem.Arena
	pool   *mem.Pool
	tx     []fabric.Desc
	rx     []fabric.Desc // ring of buffers of frames that have arrived
	head   int           // of the ring
	count  int           // buffers in the ring
	frames int           // frames in the ring
	wire   []byte
	stats  fabric.PortStats
}

var _ fabric.Port = (*Pipe)(nil)

// NewPipe makes the two ends of a pipe, each with an arena of its own.
func NewPipe(c PipeConfig) (a, b *Pipe, err error) {
	if c.MTU == 0 {
		c.MTU = 9000
	}
	if c.Frames == 0 {
		c.Frames = 512
	}
	if c.Depth == 0 {
		c.Depth = 128
	}
	if c.MaxBufs == 0 {
		c.MaxBufs = fabric.MaxBufs
	}
	if len(c.Chunks) == 0 {
		c.Chunks = []int{mem.FrameSize - 256}
	}
	if a, err = newPipeEnd(c); err != nil {
		return nil, nil, err
	}
	if b, err = newPipeEnd(c); err != nil {
		return nil, nil, err
	}
	a.peer, b.peer = b, a
	return a, b, nil
}

func newPipeEnd(c PipeConfig) (*Pipe, error) {
	arena := mem.Over(make([]byte, c.Frames*mem.FrameSize+1<<20))
	pool, err := mem.NewPool(arena, c.Frames, true)
	if err != nil {
		return nil, err
	}
	return &Pipe{
		config: c, arena: arena, pool: pool,
		tx:   make([]fabric.Desc, 0, c.Depth),
		rx:   make([]fabric.Desc, c.Frames),
		wire: make([]byte, 0, 1<<17),
	}, nil
}

// Caps implements fabric.Port.
func (p *Pipe) Caps() fabric.PortCaps {
	return fabric.PortCaps{
		Driver: "pipe", MTU: p.config.MTU, MaxBufs: p.config.MaxBufs,
		TxDepth: p.config.Depth, RxDepth: p.config.Depth,
	}
}

// Arena implements fabric.Port.
func (p *Pipe) Arena() *mem.Arena { return p.arena }

// Pool implements fabric.Port.
func (p *Pipe) Pool() *mem.Pool { return p.pool }

// FD implements fabric.Port.
func (p *Pipe) FD() int { return -1 }

// Stats implements fabric.Port.
func (p *Pipe) Stats() fabric.PortStats { return p.stats }

// TxFree implements fabric.Port.
func (p *Pipe) TxFree() int { return cap(p.tx) - len(p.tx) }

// Send implements fabric.Port. It panics for frames that a real port would
// lose without a word.
func (p *Pipe) Send(src []fabric.Desc) int {
	before := len(p.tx)
	start, size := before, 0
	for i, d := range src {
		if d.Len == 0 || mem.FrameBase(d.Addr) != mem.FrameBase(d.Addr+mem.Addr(d.Len)-1) {
			panic(fmt.Sprintf("conform: buffer %d of %d bytes at %#x is empty or crosses a chunk boundary", i, d.Len, d.Addr))
		}
		if len(p.tx) == cap(p.tx) {
			break
		}
		p.tx = append(p.tx, d)
		size += int(d.Len)
		if d.Flags&fabric.More != 0 {
			continue
		}
		if n := len(p.tx) - start; n > p.config.MaxBufs || size > p.config.MTU+14 {
			panic(fmt.Sprintf("conform: frame of %d bytes in %d buffers is too large", size, n))
		}
		start, size = len(p.tx), 0
	}
	p.tx = p.tx[:start] // whole frames only
	return start - before
}

// Flush implements fabric.Port.
func (p *Pipe) Flush() {
	for i := range p.tx {
		d := &p.tx[i]
		p.wire = append(p.wire, p.arena.At(d.Addr, int(d.Len))...)
		p.pool.Put(d.Addr)
		if d.Flags&fabric.More != 0 {
			continue
		}
		p.stats.TxFrames++
		p.stats.TxBytes += uint64(len(p.wire))
		frame := p.wire
		if p.config.Wire != nil {
			frame = p.config.Wire(frame)
		}
		if frame != nil {
			p.peer.arrive(frame)
		}
		p.wire = p.wire[:0]
	}
	p.tx = p.tx[:0]
}

// arrive copies a frame into buffers of the pool, of which a quarter is left
// for sending.
func (p *Pipe) arrive(frame []byte) {
	bufs, rest := 0, len(frame)
	for ; rest > 0; bufs++ {
		rest -= p.config.Chunks[bufs%len(p.config.Chunks)]
	}
	if p.frames == p.config.Depth || bufs > len(p.rx)-p.count || p.pool.Free()-bufs < p.pool.Cap()/4 {
		p.stats.RxDropped++
		return
	}
	p.stats.RxFrames++
	p.stats.RxBytes += uint64(len(frame))
	for i := range bufs {
		addr, _ := p.pool.Get()
		addr += mem.Addr(p.config.Room)
		n := copy(p.arena.At(addr, p.config.Chunks[i%len(p.config.Chunks)]), frame)
		frame = frame[n:]
		d := fabric.Desc{Addr: addr, Len: uint32(n)}
		if i < bufs-1 {
			d.Flags = fabric.More
		}
		p.rx[(p.head+p.count)%len(p.rx)] = d
		p.count++
	}
	p.frames++
}

// Recv implements fabric.Port.
func (p *Pipe) Recv(dst []fabric.Desc) int {
	if len(dst) < fabric.MaxBufs {
		panic("conform: Recv with room for less than one frame")
	}
	whole := 0
	for n := 0; n < len(dst) && n < p.count; {
		d := p.rx[(p.head+n)%len(p.rx)]
		dst[n] = d
		n++
		if d.Flags&fabric.More == 0 {
			whole = n
			p.frames--
		}
	}
	p.head = (p.head + whole) % len(p.rx)
	p.count -= whole
	return whole
}

// Inject makes frame arrive at p, as if the peer had sent it.
func (p *Pipe) Inject(frame []byte) { p.arrive(frame) }

// Close implements fabric.Port.
func (p *Pipe) Close() error {
	for _, d := range p.tx {
		p.pool.Put(d.Addr)
	}
	p.tx = p.tx[:0]
	for ; p.count > 0; p.count-- {
		p.pool.Put(p.rx[p.head].Addr)
		p.head = (p.head + 1) % len(p.rx)
	}
	if lost := p.pool.Cap() - p.pool.Free(); lost > 0 {
		return fmt.Errorf("conform: port closed with %d frames not given back", lost)
	}
	return nil
}
