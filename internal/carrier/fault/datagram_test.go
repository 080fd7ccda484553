package fault

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

const testHeadroom = 64

// carrier is a Datagram that keeps the payloads that it is given to send.
type carrier struct {
	fabric.Datagram // nil: what a test does not need
	arena           *mem.Arena
	pool            *mem.Pool
	room            int // datagrams per flush
	queued          int
	sent            [][]byte
	flushes         int
}

func newCarrier(t testing.TB) *carrier {
	t.Helper()
	a := mem.Over(make([]byte, 1<<20))
	p, err := mem.NewPool(a, 128, true)
	if err != nil {
		t.Fatal(err)
	}
	return &carrier{arena: a, pool: p, room: 64}
}

func (c *carrier) Caps() fabric.DatagramCaps {
	return fabric.DatagramCaps{Carrier: "test", Headroom: testHeadroom}
}
func (c *carrier) Arena() *mem.Arena       { return c.arena }
func (c *carrier) Local() netip.AddrPort   { return netip.AddrPort{} }
func (c *carrier) Frame() (mem.Addr, bool) { return c.pool.Get() }
func (c *carrier) Unframe(a mem.Addr)      { c.pool.Put(a) }
func (c *carrier) TxRoom() int             { return c.room - c.queued }
func (c *carrier) Close() error            { return nil }
func (c *carrier) Flush()                  { c.queued = 0; c.flushes++ }
func (c *carrier) Send(b *fabric.Batch) {
	for _, p := range b.Pkts {
		var payload []byte
		bufs := b.Descs[p.First : p.First+p.Bufs]
		if off := bufs[0].Addr - mem.FrameBase(bufs[0].Addr); c.pool.Owns(bufs[0].Addr) && off < testHeadroom {
			panic("first buffer without headroom")
		}
		for i, d := range bufs {
			if (d.Flags&fabric.More != 0) != (i < len(bufs)-1) {
				panic("wrong flags")
			}
			payload = append(payload, c.arena.At(d.Addr, int(d.Len))...)
			c.pool.Put(d.Addr)
		}
		if len(payload) != int(p.Len) {
			panic("Len is not the sum of the buffers")
		}
		c.sent = append(c.sent, payload)
		if c.queued++; c.queued > c.room {
			panic("more was sent than TxRoom allowed")
		}
	}
}

// fill appends to b a datagram of a header frame and, when size is large
// enough, of a registered buffer that is not in the pool.
func (c *carrier) fill(t testing.TB, b *fabric.Batch, user mem.Addr, number, size int) {
	t.Helper()
	addr, ok := c.pool.Get()
	if !ok {
		t.Fatal("no frame")
	}
	head := c.arena.At(addr+testHeadroom, min(size, 100))
	p := fabric.Packet{First: int32(len(b.Descs)), Bufs: 1, Len: int32(size), Sealed: number%2 == 0}
	b.Descs = append(b.Descs, fabric.Desc{Addr: addr + testHeadroom, Len: uint32(len(head))})
	copy(head, pattern(number, size))
	if rest := size - len(head); rest > 0 {
		copy(c.arena.At(user, rest), pattern(number, size)[len(head):])
		b.Descs[len(b.Descs)-1].Flags = fabric.More
		b.Descs = append(b.Descs, fabric.Desc{Addr: user, Len: uint32(rest)})
		p.Bufs++
	}
	b.Pkts = append(b.Pkts, p)
}

func pattern(number, size int) []byte {
	p := make([]byte, max(size, 4))
	for i := range p {
		p[i] = byte(number*7 + i)
	}
	binary.BigEndian.PutUint32(p, uint32(number))
	return p[:size]
}

// drive sends count datagrams through a decorator, as TxRoom allows, and
// returns it with the carrier below. Nothing may be missing afterwards.
func drive(t *testing.T, cfg Config, count int) (*Datagram, *carrier) {
	t.Helper()
	c := newCarrier(t)
	user, err := c.arena.Alloc(8192, mem.FrameSize)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDatagram(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(64, 2)
	for i := 0; i < count; {
		b.Reset()
		for n := min(d.TxRoom(), count-i, 1+i%5); n > 0; n-- {
			c.fill(t, b, user, i, 4+i%3000)
			i++
			d.Send(b)
			b.Reset()
		}
		clear(c.arena.At(user, 8192)) // the sender may do so once it is acknowledged
		d.Flush()
	}
	for range 100 {
		d.Flush()
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if c.pool.Free() != c.pool.Cap() {
		t.Errorf("%d frames are missing", c.pool.Cap()-c.pool.Free())
	}
	if n := d.mill.stats.NoFrame; n != 0 {
		t.Errorf("%d times there was no frame", n)
	}
	return d, c
}

func numbers(sent [][]byte) []int {
	out := make([]int, len(sent))
	for i, p := range sent {
		out[i] = int(binary.BigEndian.Uint32(p))
	}
	return out
}

func checkIntact(t *testing.T, sent [][]byte) {
	t.Helper()
	for _, p := range sent {
		if n := int(binary.BigEndian.Uint32(p)); !bytes.Equal(p, pattern(n, len(p))) {
			t.Fatalf("datagram %d was sent changed", n)
		}
	}
}

func TestDatagram_zeroConfigChangesNothing(t *testing.T) {
	d, c := drive(t, Config{}, 1000)
	for i, n := range numbers(c.sent) {
		if i != n {
			t.Fatalf("datagram %d at place %d", n, i)
		}
	}
	checkIntact(t, c.sent)
	if s := d.mill.stats; s != (Stats{Packets: 1000}) || len(c.sent) != 1000 {
		t.Errorf("%+v, %d sent", s, len(c.sent))
	}
	if d.Caps().Carrier != "test+fault" {
		t.Errorf("carrier %q", d.Caps().Carrier)
	}
}

func TestDatagram_loss(t *testing.T) {
	d, c := drive(t, Config{Seed: 1, Loss: 0.1}, 5000)
	s := d.mill.stats
	if s.Lost < 400 || s.Lost > 600 || len(c.sent) != 5000-int(s.Lost) {
		t.Errorf("%+v, %d sent", s, len(c.sent))
	}
	if !slices.IsSorted(numbers(c.sent)) {
		t.Error("loss changed the order")
	}
	checkIntact(t, c.sent)
}

func TestDatagram_dup(t *testing.T) {
	d, c := drive(t, Config{Seed: 2, Dup: 0.1}, 5000)
	s := d.mill.stats
	if s.Duplicated < 400 || s.Duplicated > 600 || len(c.sent) != 5000+int(s.Duplicated) {
		t.Errorf("%+v, %d sent", s, len(c.sent))
	}
	if got := len(slices.Compact(numbers(c.sent))); got != 5000 {
		t.Errorf("%d different datagrams in a row, not 5000", got)
	}
	checkIntact(t, c.sent)
}

func TestDatagram_reorder(t *testing.T) {
	d, c := drive(t, Config{Seed: 3, Reorder: 0.1, Span: 5}, 5000)
	if s := d.mill.stats; s.Reordered < 300 || s.Reordered > 600 {
		t.Errorf("%+v", s)
	}
	order := numbers(c.sent)
	if slices.IsSorted(order) {
		t.Error("nothing was overtaken")
	}
	for i, n := range order {
		if n < i-6 || n > i+6 {
			t.Errorf("datagram %d at place %d, with a span of 5", n, i)
		}
	}
	slices.Sort(order)
	for i, n := range order {
		if i != n {
			t.Fatalf("datagram %d is missing or doubled", i)
		}
	}
	checkIntact(t, c.sent)
}

func TestDatagram_corruptsOnlySealed(t *testing.T) {
	d, c := drive(t, Config{Seed: 4, Corrupt: 0.2}, 5000)
	wrong := 0
	for i, p := range c.sent {
		if !bytes.Equal(p, pattern(i, len(p))) {
			wrong++
			if i%2 != 0 {
				t.Errorf("datagram %d has no CRC and was changed", i)
			}
		}
	}
	// Two flips may meet on one bit.
	if s := int(d.mill.stats.Corrupted); s < 400 || s > 600 || wrong < s-5 || wrong > s {
		t.Errorf("%d corrupted, %d sent wrong", s, wrong)
	}
}

func TestDatagram_sameSeedSameFaults(t *testing.T) {
	cfg := Config{Seed: 5, Loss: 0.1, Dup: 0.1, Reorder: 0.1, Corrupt: 0.1}
	_, one := drive(t, cfg, 2000)
	_, two := drive(t, cfg, 2000)
	if !slices.EqualFunc(one.sent, two.sent, bytes.Equal) {
		t.Error("one seed gave two results")
	}
	cfg.Seed++
	_, other := drive(t, cfg, 2000)
	if slices.EqualFunc(one.sent, other.sent, bytes.Equal) {
		t.Error("two seeds gave one result")
	}
}

// A small send queue must neither overflow nor stay blocked by what is held.
func TestDatagram_smallQueue(t *testing.T) {
	c := newCarrier(t)
	c.room = 3
	d, err := NewDatagram(c, Config{Seed: 6, Dup: 0.5, Reorder: 0.5, Span: 3})
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, 1)
	for i := 0; i < 300; d.Flush() {
		if d.TxRoom() > 0 {
			b.Reset()
			c.fill(t, b, 0, i, 50)
			d.Send(b)
			i++
		}
		if c.flushes > 5000 {
			t.Fatal("no room comes free")
		}
	}
}

// Without frames for copies packets go out as they are.
func TestDatagram_noFrames(t *testing.T) {
	c := newCarrier(t)
	d, err := NewDatagram(c, Config{Dup: 1, Reorder: 1, Corrupt: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, 1)
	c.fill(t, b, 0, 8, 90)
	for c.pool.Free() > 0 {
		c.pool.Get()
	}
	d.Send(b)
	if len(c.sent) != 1 || !bytes.Equal(c.sent[0], pattern(8, 90)) {
		t.Errorf("%d datagrams sent", len(c.sent))
	}
	if s := d.mill.stats; s.NoFrame != 2 || s.Duplicated+s.Reordered+s.Corrupted != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDatagram_empty(t *testing.T) {
	c := newCarrier(t)
	d, err := NewDatagram(c, Config{Dup: 1, Reorder: 1, Corrupt: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, 1)
	c.fill(t, b, 0, 8, 0)
	d.Send(b)
	for range 10 {
		d.Flush()
	}
	if len(c.sent) != 2 || len(c.sent[0])+len(c.sent[1]) != 0 || c.pool.Free() != c.pool.Cap() {
		t.Errorf("%d datagrams sent, %d of %d frames are back", len(c.sent), c.pool.Free(), c.pool.Cap())
	}
}

func TestAllocs_Datagram(t *testing.T) {
	c := newCarrier(t)
	d, err := NewDatagram(c, Config{Seed: 1, Loss: 0.2, Dup: 0.2, Reorder: 0.2, Corrupt: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	q := &quiet{carrier: c}
	d.Datagram = q
	b := fabric.NewBatch(1, 1)
	if n := testing.AllocsPerRun(1000, func() {
		b.Reset()
		addr, _ := c.pool.Get()
		b.Descs = append(b.Descs, fabric.Desc{Addr: addr + testHeadroom, Len: 100})
		b.Pkts = append(b.Pkts, fabric.Packet{Bufs: 1, Len: 100, Sealed: true})
		d.Send(b)
		d.Flush()
	}); n != 0 {
		t.Errorf("%v allocations per datagram", n)
	}
}

// quiet is a carrier that forgets what it sends.
type quiet struct{ *carrier }

func (q *quiet) Send(b *fabric.Batch) {
	for _, d := range b.Descs {
		q.pool.Put(d.Addr)
	}
}
