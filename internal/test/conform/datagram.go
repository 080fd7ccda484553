package conform

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Opener makes two carriers that can reach each other, and closes them when
// the test ends, or later: it may return those that it has made before. step, which
// may be nil, makes time pass between two looks at a carrier.
type Opener func(t *testing.T) (a, b fabric.Datagram, step func())

// Datagram holds a carrier to the contract of fabric.Datagram. A datagram that
// is waited for and never arrives is found by the time limit of go test.
func Datagram(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, a, b *end)
	}{
		{"caps", testCaps},
		{"sizes", testSizes},
		{"buffers", testBuffers},
		{"arenaBuffers", testArenaBuffers},
		{"batches", testBatches},
		{"smallBatch", testSmallBatch},
		{"aggregates", testAggregates},
		{"bothWays", testBothWays},
		{"heldBatches", testHeldBatches},
		{"noRoom", testNoRoom},
		{"noFrames", testNoFrames},
		{"resolve", testResolve},
		{"nobodyThere", testNobodyThere},
		{"stats", testStats},
		{"poll", testPoll},
		{"allocs", testAllocs},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second, step := open(t)
			a, b := newEnd(t, first, step), newEnd(t, second, step)
			meet(a, b)
			a.talk(numbered(8), false) // all buffers have taken their places
			b.talk(numbered(8), false)
			a.turn()
			framesA, framesB := a.frames(), b.frames()
			c.test(t, a, b)
			a.rest(framesA)
			b.rest(framesB)
		})
	}
}

func testCaps(t *testing.T, a, _ *end) {
	c := a.caps
	if c.Carrier == "" || c.MaxPayload < 8 || c.MaxPayload > 65507 || c.RxDepth < 1 {
		t.Errorf("caps are %+v", c)
	}
	if c.MaxBufs < 1 || c.MaxBufs > fabric.MaxBufs || c.Headroom < 0 || c.Headroom >= mem.FrameSize {
		t.Errorf("caps are %+v", c)
	}
	if room := c.MaxBufs*mem.FrameSize - c.Headroom; room < c.MaxPayload {
		t.Errorf("the largest payload of %d bytes does not fit the %d bytes of %d buffers", c.MaxPayload, room, c.MaxBufs)
	}
	if !a.Local().IsValid() || a.Local().Port() == 0 {
		t.Errorf("local address is %v", a.Local())
	}
	if a.TxRoom() < 1 {
		t.Error("no room to send on a fresh carrier")
	}
	if n := a.Recv(a.rx); n != 0 {
		t.Errorf("Recv returns %d with nothing sent", n)
	}
	a.Flush()
}

func testSizes(t *testing.T, a, b *end) {
	sizes := []int{0, 1, 2, 3, 7, 8, 9, 17, 18, 19, 63, 64, 65, 511, 512, 513, 1471, 1472}
	for n := 2000; n < a.caps.MaxPayload; n += a.caps.MaxPayload / 7 {
		sizes = append(sizes, n)
	}
	sizes = append(sizes, a.caps.MaxPayload-1, a.caps.MaxPayload)
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > a.caps.MaxPayload })
	for _, sealed := range []bool{false, true} {
		a.talk(numbered(sizes...), sealed)
		b.talk(numbered(sizes...), sealed)
	}
}

// testBuffers sends payloads in as many and as crooked buffers as there may be.
func testBuffers(t *testing.T, a, b *end) {
	for _, cuts := range [][]int{{1}, {3, 1}, {17, 8, 5}, {101}, {1000, 1, 999}, {4001}, {42, 4000}} {
		limit := 0 // what fits into MaxBufs such buffers
		for i := range a.caps.MaxBufs {
			limit += cuts[i%len(cuts)]
		}
		limit = min(limit, a.caps.MaxPayload)
		for _, sealed := range []bool{false, true} {
			a.talk(numbered(limit, limit-1, limit/2, limit/3), sealed, cuts...)
		}
	}
}

// testArenaBuffers sends straight from memory of the arena that is no frame,
// as a registered buffer is sent.
func testArenaBuffers(t *testing.T, a, b *end) {
	if a.caps.MaxBufs < 3 {
		t.Skipf("%s takes %d buffers", a.caps.Carrier, a.caps.MaxBufs)
	}
	size := min(5000, a.caps.MaxPayload-8)
	addr, err := a.Arena().Alloc(size+1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Arena().Free(addr)
	at := addr + 1
	data := a.Arena().At(at, size)
	for i := range data {
		data[i] = byte(i * 11)
	}
	for range 3 {
		head := a.frame() + mem.Addr(a.caps.Headroom)
		copy(a.Arena().At(head, 8), "header..")
		a.tx.Descs = append(a.tx.Descs, fabric.Desc{Addr: head, Len: 8})
		for off := 0; off < size; {
			from := at + mem.Addr(off)
			n := min(size-off, mem.FrameSize-int(from%mem.FrameSize))
			a.tx.Descs = append(a.tx.Descs, fabric.Desc{Addr: from, Len: uint32(n)})
			off += n
		}
		a.tx.Pkts = append(a.tx.Pkts, fabric.Packet{Bufs: int32(len(a.tx.Descs)), Len: int32(8 + size), To: a.to, Sealed: true})
		a.post()
		if got := b.receive(1)[0]; string(got.payload) != "header.."+string(data) {
			t.Errorf("%d bytes arrive, they differ", len(got.payload))
		}
	}
}

func testBatches(t *testing.T, a, b *end) {
	for _, n := range []int{1, 2, 31, 32, 33, 64, 200} {
		same, mixed := make([]int, n), make([]int, n)
		for i := range n {
			same[i] = 100
			mixed[i] = 8 + i*i*37%(a.caps.MaxPayload-8)
		}
		a.talk(numbered(same...), true)
		a.talk(numbered(mixed...), false)
	}
}

// testSmallBatch takes datagrams one at a time, and finds them all.
func testSmallBatch(t *testing.T, a, b *end) {
	n := min(20, b.caps.RxDepth)
	for i, p := range numbered(make([]int, n)...) {
		a.put(append(p, make([]byte, 8+i)...), false)
	}
	a.post()
	b.rx = fabric.NewBatch(1, fabric.MaxBufs)
	seen := map[int]bool{}
	for _, m := range b.receive(n) {
		seen[len(m.payload)] = true
	}
	if len(seen) != n {
		t.Errorf("%d different datagrams of %d arrive", len(seen), n)
	}
}

// testAggregates sends datagrams that a carrier may send as one packet.
func testAggregates(t *testing.T, a, b *end) {
	most := a.caps.MaxPayload
	long := min(most, 8000)
	for _, sizes := range [][]int{
		{1000, 1000}, {1400, 1400, 1400, 8}, slices.Repeat([]int{1400}, 31), {600, 600, 599}, {long, long}, {long, long, 100}, {most, most},
	} {
		if slices.Max(sizes) > most || len(sizes) > b.caps.RxDepth {
			continue
		}
		for _, e := range []*end{a, b} {
			e.kept = true
			e.talk(numbered(sizes...), true)
			e.kept = false
		}
	}
}

func testBothWays(t *testing.T, a, b *end) {
	for round := range 50 {
		size := 8 + round*97%(a.caps.MaxPayload-8)
		pay := numbered(size, size)
		a.put(pay[0], true)
		b.put(pay[1], true)
		a.post()
		b.post()
		if got := b.receive(1)[0]; string(got.payload) != string(pay[0]) || got.from != fabric.RemoteOf(a.Local()) {
			t.Fatalf("round %d: wrong datagram from %v", round, got.from.AddrPort())
		}
		if got := a.receive(1)[0]; string(got.payload) != string(pay[1]) || got.from != fabric.RemoteOf(b.Local()) {
			t.Fatalf("round %d: wrong datagram from %v", round, got.from.AddrPort())
		}
	}
}

// testHeldBatches reads several batches after all of them were filled, and
// releases them in another order.
func testHeldBatches(t *testing.T, a, b *end) {
	n := min(6, b.caps.RxDepth)
	pay := numbered(8, 900, 17, 1000, 8, 333)[:n]
	for _, p := range pay {
		a.put(p, false)
	}
	a.post()
	held := make([]*fabric.Batch, n)
	for i := range held {
		held[i] = fabric.NewBatch(1, fabric.MaxBufs)
		for b.Recv(held[i]) == 0 {
			a.turn()
		}
	}
	for _, h := range held {
		got := b.payload(h, &h.Pkts[0])
		if want := pay[binary.BigEndian.Uint64(got)%uint64(n)]; string(got) != string(want) {
			t.Errorf("%d bytes differ from what was sent", len(got))
		}
	}
	for i := range held {
		b.Release(held[(i*5+2)%n])
	}
	for _, h := range held { // 5 and n may have a common divisor
		b.Release(h)
	}
}

// testNoRoom sends a lot more than the receiver can keep: datagrams are lost,
// and nothing else happens. When nothing more comes there is room again; a
// receiver may need a few looks to make it, so whoever is not answered asks anew.
func testNoRoom(t *testing.T, a, b *end) {
	payload := make([]byte, min(1000, a.caps.MaxPayload))
	sent, before := a.sent, b.Stats().RxPackets
	for range min(3*b.caps.RxDepth, 20000) {
		a.put(payload, true)
	}
	a.post()
	const looks = 1000
	asked, arrived := uint64(0), uint64(0)
	for quiet := 1; asked == 0 || arrived != asked; quiet++ {
		for _, m := range b.poll() {
			arrived = max(arrived, binary.BigEndian.Uint64(m.payload))
			quiet = 0
		}
		if quiet%looks == 2 {
			asked++
			binary.BigEndian.PutUint64(payload, asked)
			a.put(payload, true)
			a.post()
		}
		a.turn()
	}
	if got := b.Stats().RxPackets - before; got > uint64(a.sent-sent) {
		t.Errorf("%d datagrams arrive, %d were sent", got, a.sent-sent)
	}
}

func testNoFrames(t *testing.T, a, b *end) {
	var all []mem.Addr
	for f, ok := a.Frame(); ok; f, ok = a.Frame() {
		all = append(all, f)
	}
	if len(all) < 64 {
		t.Errorf("only %d frames to send with", len(all))
	}
	seen := map[mem.Addr]bool{}
	for _, f := range all {
		if f%mem.FrameSize != 0 || seen[f] {
			t.Errorf("frame %#x is not aligned, or was given out twice", f)
		}
		seen[f] = true
	}
	for _, f := range all {
		a.Unframe(f + 100) // any address in it will do
	}
	a.talk(numbered(100), false)
	b.talk(numbered(100), false)
}

func testResolve(t *testing.T, a, b *end) {
	again, err := a.Resolve(b.Local())
	if err != nil || again != a.to {
		t.Errorf("resolved again: path %d, %v; want %d", again, err, a.to)
	}
	other, err := a.Resolve(netip.AddrPortFrom(b.Local().Addr(), b.Local().Port()^1))
	if err != nil || other == a.to {
		t.Errorf("another port: path %d, %v", other, err)
	}
	bad := []string{"[2001:db8::1]:4791", "192.0.2.1:0", "0.0.0.0:4791", "203.0.113.77:4791"}
	if a.Local().Addr().Is6() {
		bad = []string{"192.0.2.1:4791", "[2001:db8::1]:0", "[::]:4791", "[2001:db8::1]:4791", "[fe80::1]:4791"}
	}
	for _, bad := range bad {
		if p, err := a.Resolve(netip.MustParseAddrPort(bad)); err == nil {
			t.Errorf("%s is path %d", bad, p)
		}
	}
	if _, err := a.Resolve(netip.AddrPort{}); err == nil {
		t.Error("the zero address is accepted")
	}
	a.talk(numbered(20), false)
}

// testNobodyThere sends to a port that nobody listens on: that is no error of
// the carrier's, and does not disturb it.
func testNobodyThere(t *testing.T, a, b *end) {
	nobody, err := a.Resolve(netip.AddrPortFrom(b.Local().Addr(), b.Local().Port()^1))
	if err != nil {
		t.Fatal(err)
	}
	there := a.to
	for range 5 {
		a.to = nobody
		a.put(make([]byte, 100), false)
		a.post()
		a.to = there
		a.talk(numbered(100), false)
		b.talk(numbered(100), false)
	}
}

func testStats(t *testing.T, a, b *end) {
	beforeA, beforeB := a.Stats(), b.Stats()
	a.talk(numbered(8, 8, 500, 500, 500, 1000), true)
	sent, got := a.Stats(), b.Stats()
	want := uint64(2516 + 6*a.caps.Overhead)
	if n, size := sent.TxPackets-beforeA.TxPackets, sent.TxBytes-beforeA.TxBytes; n != 6 || size != want {
		t.Errorf("sender counts %d datagrams, %d bytes; want 6 and %d", n, size, want)
	}
	if n, size := got.RxPackets-beforeB.RxPackets, got.RxBytes-beforeB.RxBytes; n != 6 || size != want {
		t.Errorf("receiver counts %d datagrams, %d bytes; want 6 and %d", n, size, want)
	}
	errs := func(s fabric.DatagramStats) uint64 { return s.TxErrors + s.TxUnreachable + s.RxChecksum + s.RxDropped }
	if errs(sent) != errs(beforeA) || errs(got) != errs(beforeB) {
		t.Errorf("errors are counted: %+v at the sender and %+v at the receiver, before %+v and %+v", sent, got, beforeA, beforeB)
	}
}

// testPoll sleeps in poll(2) until a datagram is there, as an engine does.
func testPoll(t *testing.T, a, b *end) {
	if b.FD() < 0 {
		t.Skipf("%s has nothing to poll", b.caps.Carrier)
	}
	for range 3 {
		a.put(make([]byte, 64), false)
		a.post()
		fds := []unix.PollFd{{Fd: int32(b.FD()), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(fds, 100)
			if err == unix.EINTR || err == nil && n == 0 {
				a.Flush() // the kernel may not have taken it the first time
				continue
			}
			if n != 1 || err != nil || fds[0].Revents&unix.POLLIN == 0 {
				t.Fatalf("poll: %d, %v, events %#x", n, err, fds[0].Revents)
			}
			break
		}
		b.receive(1)
	}
}

func testAllocs(t *testing.T, a, b *end) {
	const n = 8
	exchange := func(size int) func() {
		return func() {
			for range n {
				f, _ := a.Frame()
				first := int32(len(a.tx.Descs))
				a.tx.Pkts = append(a.tx.Pkts, fabric.Packet{First: first, Bufs: 1, Len: int32(size), To: a.to, Sealed: true})
				a.tx.Descs = append(a.tx.Descs, fabric.Desc{Addr: f + mem.Addr(a.caps.Headroom), Len: uint32(size)})
			}
			a.post()
			for got := 0; got < n; {
				m := b.Recv(b.rx)
				b.Release(b.rx)
				got += m
				if m == 0 {
					b.turn()
				}
			}
			a.turn()
		}
	}
	for _, size := range []int{0, 64, min(3000, a.caps.MaxPayload)} {
		if allocs := testing.AllocsPerRun(200, exchange(size)); allocs != 0 {
			t.Errorf("%v allocations per batch of %d datagrams of %d bytes", allocs, n, size)
		}
	}
}
