package near

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// carrier records what is sent and hands out what a test puts into rx.
type carrier struct {
	name   string
	arena  *mem.Arena
	pool   *mem.Pool
	local  netip.AddrPort
	fd     int
	sent   []string
	calls  []string
	rx     []string
	stats  fabric.DatagramStats
	groups []netip.Addr
	fail   error
}

func newCarrier(t *testing.T, name string, arena *mem.Arena) *carrier {
	t.Helper()
	pool, err := mem.NewPool(arena, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return &carrier{name: name, arena: arena, pool: pool, fd: fd, local: netip.MustParseAddrPort("10.0.0.1:7"),
		stats: fabric.DatagramStats{RxPackets: 1, RxBytes: 2, TxPackets: 3, TxBytes: 4, RxMalformed: 5, RxChecksum: 6, RxDropped: 7, TxUnreachable: 8, TxErrors: 9}}
}

func (c *carrier) Caps() fabric.DatagramCaps {
	return fabric.DatagramCaps{Carrier: c.name, MaxPayload: 1000, MaxBufs: 3, RxDepth: 10}
}
func (c *carrier) Arena() *mem.Arena     { return c.arena }
func (c *carrier) Local() netip.AddrPort { return c.local }
func (c *carrier) Resolve(to netip.AddrPort) (fabric.Path, error) {
	return fabric.Path(to.Port()), c.fail
}
func (c *carrier) Back(from fabric.Remote, _ fabric.Station) (fabric.Path, bool) {
	return fabric.Path(from.Port()), true
}
func (c *carrier) Drop(p fabric.Path) { c.calls = append(c.calls, fmt.Sprint("drop ", p)) }
func (c *carrier) Trust(p fabric.Path, s fabric.Station) {
	c.calls = append(c.calls, fmt.Sprint("trust ", p, " ", s))
}
func (c *carrier) Doubt(p fabric.Path) { c.calls = append(c.calls, fmt.Sprint("doubt ", p)) }
func (c *carrier) Recv(b *fabric.Batch) int {
	b.Reset()
	for _, text := range c.rx {
		at, _ := c.pool.Get()
		b.Add(fabric.Packet{}, fabric.Desc{Addr: at, Len: uint32(copy(c.arena.At(at, mem.FrameSize), text))})
	}
	c.rx = nil
	return len(b.Pkts)
}
func (c *carrier) Release(b *fabric.Batch) {
	for _, d := range b.Descs {
		if !c.pool.Owns(d.Addr) {
			panic("somebody else's buffer is released")
		}
		c.pool.Put(d.Addr)
	}
	b.Reset()
}
func (c *carrier) Frame() (mem.Addr, bool) { return c.pool.Get() }
func (c *carrier) Unframe(a mem.Addr)      { c.pool.Put(a) }
func (c *carrier) TxRoom() int             { return len(c.name) }
func (c *carrier) Send(b *fabric.Batch) {
	for _, p := range b.Pkts {
		var text []byte
		for _, d := range b.Descs[p.First:][:p.Bufs] {
			text = append(text, c.arena.At(d.Addr, int(d.Len))...)
			c.pool.Put(d.Addr)
		}
		c.sent = append(c.sent, fmt.Sprintf("%d:%s", p.To, text))
	}
}
func (c *carrier) Flush()                      {}
func (c *carrier) FD() int                     { return c.fd }
func (c *carrier) Stats() fabric.DatagramStats { return c.stats }
func (c *carrier) Close() error                { return errors.Join(c.fail, unix.Close(c.fd)) }
func (c *carrier) Join(g netip.Addr) error     { c.groups = append(c.groups, g); return nil }
func (c *carrier) Leave(netip.Addr) error      { c.groups = nil; return nil }

func newPair(t *testing.T) (c *Carrier, far, near *carrier) {
	t.Helper()
	arena := mem.Over(make([]byte, 32*mem.FrameSize))
	far, near = newCarrier(t, "far away", arena), newCarrier(t, "near", arena)
	c, err := New(far, near, 8)
	if err != nil {
		t.Fatal(err)
	}
	return c, far, near
}

func TestSend_sortsByDestination(t *testing.T) {
	c, far, near := newPair(t)
	defer c.Close()
	there, err1 := c.Resolve(netip.MustParseAddrPort("10.0.0.2:20"))
	here, err2 := c.Resolve(netip.MustParseAddrPort("[::ffff:10.0.0.1]:10"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	send := func(to ...fabric.Path) {
		b := fabric.NewBatch(8, 3)
		for i, p := range to {
			for range i%2 + 1 { // datagrams of one and of two buffers
				at, ok := c.Frame()
				if !ok {
					t.Fatal("no frame")
				}
				b.Descs = append(b.Descs, fabric.Desc{Addr: at, Len: uint32(copy(c.Arena().At(at, 1), []byte{'a' + byte(i)}))})
			}
			bufs := int32(i%2 + 1)
			b.Pkts = append(b.Pkts, fabric.Packet{First: int32(len(b.Descs)) - bufs, Bufs: bufs, Len: bufs, To: p})
		}
		before := fmt.Sprint(b.Pkts)
		c.Send(b)
		c.Flush()
		if fmt.Sprint(b.Pkts) != before {
			t.Errorf("the batch was changed: %v", b.Pkts)
		}
	}
	send(there, there)
	send(here, there, here, here)
	send(here)
	if got, want := fmt.Sprint(far.sent), "[20:a 20:bb 20:bb]"; got != want {
		t.Errorf("far away: %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(near.sent), "[10:a 10:c 10:dd 10:a]"; got != want {
		t.Errorf("near: %s, want %s", got, want)
	}
	if far.pool.Free() != 8 {
		t.Errorf("%d of 8 frames are back", far.pool.Free())
	}
}

// Neither of the two starves the other, and each gets back its own buffers.
func TestRecv_takesTurns(t *testing.T) {
	c, far, near := newPair(t)
	defer c.Close()
	b := fabric.NewBatch(8, 3)
	var got bytes.Buffer
	for range 6 {
		far.rx, near.rx = []string{"f"}, []string{"n"}
		for range 2 {
			if c.Recv(b) == 1 {
				got.Write(c.Arena().At(b.Descs[0].Addr, 1))
			}
			c.Release(b)
		}
	}
	if text := got.String(); bytes.Count(got.Bytes(), []byte("f")) != 6 || bytes.Count(got.Bytes(), []byte("n")) != 6 {
		t.Errorf("received %s", text)
	}
	if c.Recv(b) != 0 || far.pool.Free() != 8 || near.pool.Free() != 8 {
		t.Errorf("%d and %d of 8 frames are back", far.pool.Free(), near.pool.Free())
	}
}

// The near one is asked seldom while it has nothing, and at once after a wait.
func TestRecv_asksNearSeldom(t *testing.T) {
	c, _, near := newPair(t)
	defer c.Close()
	b := fabric.NewBatch(8, 3)
	calls := func() (n int) {
		near.rx = []string{"n"}
		for n = 1; c.Recv(b) == 0; n++ {
		}
		c.Release(b)
		return n
	}
	idle := func() {
		for range nearIdleMax + nearEvery + 1 {
			c.Recv(b)
		}
	}
	if n := calls(); n != 1 {
		t.Errorf("while it is busy it waits for %d calls", n)
	}
	idle()
	if n := calls(); n == 1 || n > nearEvery {
		t.Errorf("after it was idle it waits for %d calls, want up to %d and not 1", n, nearEvery)
	}
	idle()
	c.FD()
	if n := calls(); n != 1 {
		t.Errorf("after a wait it waits for %d calls", n)
	}
}

// The kernel is not asked to tell of what comes while the caller looks by itself.
func TestFD_onlyWhileWaiting(t *testing.T) {
	c, far, _ := newPair(t)
	defer c.Close()
	b := fabric.NewBatch(8, 3)
	if _, err := unix.Write(far.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.Recv(b)
		for _, want := range []int{0, 1} {
			if want == 1 {
				c.FD()
			}
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.poll), Events: unix.POLLIN}}, 0); err != nil || n != want {
				t.Errorf("%d descriptors are readable (%v), want %d", n, err, want)
			}
		}
	}
}

// The descriptor is readable when that of either is.
func TestFD(t *testing.T) {
	for _, which := range []int{0, 1} {
		c, far, near := newPair(t)
		readable := func() bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(c.FD()), Events: unix.POLLIN}}, 0)
			return n == 1
		}
		if readable() {
			t.Error("readable before anything has come")
		}
		if _, err := unix.Write([]*carrier{far, near}[which].fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		if !readable() {
			t.Errorf("carrier %d has something, and nobody hears of it", which)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCarrier_isBoth(t *testing.T) {
	c, far, near := newPair(t)
	if caps := c.Caps(); caps.Carrier != "far away and near" || caps.MaxPayload != 1000 || c.TxRoom() != 4 {
		t.Errorf("%+v, room for %d", caps, c.TxRoom())
	}
	if s := c.Stats(); s != (fabric.DatagramStats{RxPackets: 2, RxBytes: 4, TxPackets: 6, TxBytes: 8, RxMalformed: 10, RxChecksum: 12, RxDropped: 14, TxUnreachable: 16, TxErrors: 18}) {
		t.Errorf("%+v", s)
	}
	group := netip.MustParseAddr("239.1.2.3")
	if err := c.Join(group); err != nil || len(far.groups) != 1 || len(near.groups) != 0 {
		t.Errorf("%v, %v, %v", err, far.groups, near.groups)
	}
	if err := c.Leave(group); err != nil || far.groups != nil {
		t.Errorf("%v, %v", err, far.groups)
	}
	near.fail = errors.New("stuck")
	if err := c.Close(); !errors.Is(err, near.fail) {
		t.Errorf("%v", err)
	}
}

func TestNew_withoutDescriptor(t *testing.T) {
	arena := mem.Over(make([]byte, 32*mem.FrameSize))
	far, near := newCarrier(t, "far", arena), newCarrier(t, "near", arena)
	unix.Close(near.fd)
	near.fd = -1
	if c, err := New(far, near, 8); err == nil {
		t.Errorf("%v of a carrier that nobody can wait for", c)
	}
}

// silent is a carrier that takes what is sent and keeps nothing of it.
type silent struct{ *carrier }

func (s silent) Send(b *fabric.Batch) {
	for _, d := range b.Descs {
		s.pool.Put(d.Addr)
	}
}

func TestAllocs_Carrier(t *testing.T) {
	arena := mem.Over(make([]byte, 32*mem.FrameSize))
	c, err := New(silent{newCarrier(t, "far", arena)}, silent{newCarrier(t, "near", arena)}, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, in := fabric.NewBatch(8, 3), fabric.NewBatch(8, 3)
	n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for i := range 4 {
			at, _ := c.Frame()
			b.Add(fabric.Packet{To: fabric.Path(i%2) * nearBit}, fabric.Desc{Addr: at, Len: 8})
		}
		c.Send(b)
		c.Flush()
		c.Recv(in)
		c.Release(in)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Paths back belong to the carrier that has received; who claims on the network to be of
// this host has none.
func TestBack(t *testing.T) {
	c, far, near := newPair(t)
	defer c.Close()
	here, there := fabric.RemoteOf(netip.MustParseAddrPort("10.0.0.1:10")), fabric.RemoteOf(netip.MustParseAddrPort("10.0.0.2:20"))
	b := fabric.NewBatch(8, 3)
	back := func(from *carrier, who fabric.Remote) (fabric.Path, bool) {
		from.rx = []string{"x"}
		for c.Recv(b) == 0 {
		}
		c.Release(b)
		from.rx = nil
		return c.Back(who, 5)
	}
	p, ok := back(far, there)
	q, also := back(near, here)
	if p != 20 || !ok || q != 10|nearBit || !also {
		t.Fatalf("paths are %d, %v and %d, %v", p, ok, q, also)
	}
	if _, ok := back(far, here); ok {
		t.Error("somebody on the network is of this host")
	}
	for _, to := range []fabric.Path{p, q} {
		c.Trust(to, 5)
		c.Doubt(to)
		c.Drop(to)
	}
	if fmt.Sprint(far.calls) != "[trust 20 5 doubt 20 drop 20]" || fmt.Sprint(near.calls) != "[trust 10 5 doubt 10 drop 10]" {
		t.Errorf("far was told %v, near %v", far.calls, near.calls)
	}
}
