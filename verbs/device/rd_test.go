package device_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// carriers are what reliable datagrams must run on.
var carriers = []struct {
	name string
	veth bool
	mtu  int
	spec device.Spec
}{
	{"loopback", false, 0, device.Spec{Fabric: "udp"}},
	{"shm", false, 0, device.Spec{Fabric: "shm"}},
	{"shm/1500", false, 0, device.Spec{Fabric: "shm", MTU: 1500}},
	{"shm/65535", false, 0, device.Spec{Fabric: "shm", MTU: 65535}},
	{"udp", true, 9000, device.Spec{Fabric: "udp"}},
	{"udp/1500", true, 1500, device.Spec{Fabric: "udp"}},
	{"generic", true, 9000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkFrames}},
	{"generic/1500", true, 1500, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkFrames}},
	{"generic/32000", true, 32000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkFrames}},
	{"generic/kernel", true, 9000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkKernel}},
	{"generic/kernel/1500", true, 1500, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkKernel}},
	{"driver/kernel", true, 9000, device.Spec{Fabric: "xdp:driver", Bulk: device.BulkKernel}},
	{"driver", true, 9000, device.Spec{Fabric: "xdp:driver"}},
	{"driver/1500", true, 1500, device.Spec{Fabric: "xdp:driver"}},
	{"asavie", true, 1500, device.Spec{Fabric: "xdp:asavie"}},
	{"udp/1500/secret", true, 1500, device.Spec{Fabric: "udp", Secret: secret}},
	{"generic/secret", true, 9000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkFrames, Secret: secret}},
	{"generic/32000/secret", true, 32000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkFrames, Secret: secret}},
	{"generic/kernel/secret", true, 9000, device.Spec{Fabric: "xdp:generic", Bulk: device.BulkKernel, Secret: secret}},
	{"driver/1500/secret", true, 1500, device.Spec{Fabric: "xdp:driver", Secret: secret}},
}

// secret is that of the carriers with encryption.
var secret = bytes.Repeat([]byte("secret. "), 4)

// open opens both ends of a carrier, connected.
func open(t testing.TB, veth bool, mtu int, s device.Spec) (a, b *host) {
	t.Helper()
	var tb *testbed.Testbed
	if veth {
		tb = hosttest.New(t, testbed.Config{MTU: mtu})
	}
	var ends [2]*host
	for i := range ends {
		var at *testbed.Host
		if tb != nil {
			at = tb.Hosts[i]
		}
		e, err := openHost(at, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.ctx.Close() })
		ends[i] = e
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

func TestRD_everyCarrier(t *testing.T) {
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t, c.veth, c.mtu, c.spec)
			testSizes(t, a, b)
			testWrite(t, a, b)
			testExchange(t, a, b, 1000, 1)
		})
	}
}

func TestRD_everyCarrierWithFaults(t *testing.T) {
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Faults = fault.Config{Seed: 3, Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.02}
			a, b := open(t, c.veth, c.mtu, c.spec)
			testExchange(t, a, b, 500, 2)
			if s, _ := a.ctx.Stats(); s.TxResent == 0 {
				t.Error("nothing was sent again: there were no faults")
			}
		})
	}
}

// step lets both ends work until done.
func step(a, b *host, done func() bool) {
	for !done() {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
}

func poll(a, b *host, q *verbs.CQ) (wc verbs.WC) {
	var one [1]verbs.WC
	step(a, b, func() bool { return q.Poll(one[:]) == 1 })
	return one[0]
}

func post(t *testing.T, e *host, op verbs.Opcode, s verbs.SGE, to *verbs.MR) {
	t.Helper()
	wr := verbs.SendWR{Opcode: op, Flags: verbs.Signaled, AH: e.ah, NumSGE: 1}
	wr.SGL[0] = s
	if to != nil {
		wr.RemoteAddr, wr.RKey = to.Addr(), to.RKey()
	}
	if err := e.qp.PostSend(&wr); err != nil {
		t.Fatal(err)
	}
}

func testSizes(t *testing.T, a, b *host) {
	seg := a.ctx.Attr().MaxSeg
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 255, 256, 257, 4095, 4096, 4097, seg - 1, seg, seg + 1, 3 * seg, 1 << 20} {
		src := a.mr.Bytes()[:n]
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		wr := verbs.RecvWR{NumSGE: 1}
		wr.SGL[0] = b.mr.SGE(0, n)
		if err := b.qp.PostRecv(&wr); err != nil {
			t.Fatal(err)
		}
		post(t, a, verbs.OpSend, a.mr.SGE(0, n), nil)
		if wc := poll(a, b, b.rcq); wc.Status != verbs.Success || wc.ByteLen != uint32(n) || !bytes.Equal(b.mr.Bytes()[:n], src) {
			t.Fatalf("%d bytes: %+v or wrong data", n, wc)
		}
		if wc := poll(a, b, a.scq); wc.Status != verbs.Success {
			t.Fatalf("%d bytes: %+v", n, wc)
		}
	}
}

func testWrite(t *testing.T, a, b *host) {
	src := b.mr.Bytes()
	for i := range src {
		src[i] = byte(i >> 4)
	}
	clear(a.mr.Bytes())
	post(t, b, verbs.OpRDMAWrite, b.mr.SGE(0, len(src)), a.mr)
	if wc := poll(a, b, b.scq); wc.Status != verbs.Success || !bytes.Equal(a.mr.Bytes(), src) {
		t.Fatalf("%+v or wrong data", wc)
	}
}

// testExchange sends messages of random sizes both ways at once and checks
// that each arrives once, whole and in order.
func testExchange(t *testing.T, a, b *host, count int, seed uint64) {
	const slots, size = 32, 1 << 15
	ends := [2]*host{a, b}
	rngs := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))}
	checks := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))}
	message := func(rng *rand.Rand, b []byte) []byte {
		n := rng.IntN(400)
		if rng.IntN(4) == 0 {
			n = rng.IntN(size)
		}
		for i := range b[:n] {
			b[i] = byte(rng.Uint32())
		}
		return b[:n]
	}
	repost := func(e *host, slot int) {
		wr := verbs.RecvWR{WRID: uint64(slot), NumSGE: 1}
		wr.SGL[0] = e.mr.SGE(slot*size, size)
		if err := e.qp.PostRecv(&wr); err != nil {
			t.Fatal(err)
		}
	}
	var posted, acked, got [2]int
	var out [2]*verbs.MR
	for i, e := range ends {
		for s := range slots {
			if !e.stocked { // else those of the exchange before are there still
				repost(e, s)
			}
		}
		e.stocked = true
		var err error
		if out[i], err = e.pd.RegMR(make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
	}
	want := make([]byte, size)
	step(a, b, func() bool {
		for i, e := range ends {
			if posted[i] == acked[i] && posted[i] < count {
				n := len(message(rngs[i], out[i].Bytes()))
				post(t, e, verbs.OpSend, out[i].SGE(0, n), nil)
				posted[i]++
			}
			var wcs [8]verbs.WC
			for _, wc := range wcs[:e.scq.Poll(wcs[:])] {
				if wc.Status != verbs.Success {
					t.Fatalf("end %d, send %d: %+v", i, acked[i], wc)
				}
				acked[i]++
			}
			for _, wc := range wcs[:e.rcq.Poll(wcs[:])] {
				at := e.mr.Bytes()[int(wc.WRID)*size:]
				if m := message(checks[1-i], want); wc.Status != verbs.Success || !bytes.Equal(at[:wc.ByteLen], m) {
					t.Fatalf("end %d, message %d: %+v, want %d bytes, or wrong data", i, got[i], wc, len(m))
				}
				got[i]++
				repost(e, int(wc.WRID))
			}
		}
		return got == [2]int{count, count} && acked == got
	})
}

// TestRD_waiters blocks in poll(2) whenever there is nothing to do.
func TestRD_waiters(t *testing.T) {
	const rounds = 300
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Poller.NoSpin = true
			a, b := open(t, c.veth, c.mtu, c.spec)
			for range 16 {
				a.recv()
				b.recv()
			}
			msg := make([]byte, 8)
			done := make(chan struct{})
			go func() {
				for range rounds {
					b.wait()
					b.send(msg)
				}
				for b.qp.Stats.Sends < rounds { // until a has acknowledged all
					b.ctx.Engine().Step()
				}
				close(done)
			}()
			for range rounds {
				a.send(msg)
				a.wait()
			}
			for stop := false; !stop; {
				a.ctx.Engine().Step()
				select {
				case <-done:
					stop = true
				default:
				}
			}
		})
	}
}

func TestAllocs_everyCarrier(t *testing.T) {
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t, c.veth, c.mtu, c.spec)
			roundTripAllocs(t, a, b)
		})
	}
}

// roundTripAllocs fails if a round trip of a short message allocates.
func roundTripAllocs(t *testing.T, a, b *host) {
	t.Helper()
	msg := make([]byte, 8)
	for range 16 {
		a.recv()
		b.recv()
	}
	var wc [1]verbs.WC
	once := func() {
		a.send(msg)
		step(a, b, func() bool { return b.rcq.Poll(wc[:]) == 1 })
		b.recv()
		b.send(msg)
		step(a, b, func() bool { return a.rcq.Poll(wc[:]) == 1 })
		a.recv()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%v allocations per round trip, want none", n)
	}
}

func TestOpen_badUse(t *testing.T) {
	for _, c := range []struct {
		name string
		root bool
		spec device.Spec
		want string
	}{
		{"unknown fabric", false, device.Spec{Fabric: "ib"}, `unknown fabric "ib": use one of xdp,`},
		{"no device", false, device.Spec{Fabric: "xdp"}, "needs the name of a network device"},
		{"unknown device for udp", false, device.Spec{Fabric: "udp", Device: "nosuch0"}, `"nosuch0"`},
		{"unknown device for tcp", false, device.Spec{Fabric: "tcp", Device: "nosuch0"}, `"nosuch0"`},
		{"capture of tcp", false, device.Spec{Fabric: "tcp", Capture: "x.pcapng"}, "tcpdump -i any -w x.pcapng tcp"},
		{"capture of udp and tcp", false, device.Spec{Fabric: "udp", RC: true, Device: "lo", Capture: "x.pcapng"}, "tcpdump -i lo"},
		{"faults of tcp", false, device.Spec{Fabric: "tcp", Faults: fault.Config{Loss: 0.1}}, "lost on purpose"},
		{"MTU of tcp", false, device.Spec{Fabric: "tcp", MTU: 100}, "576"},
		{"RC over shm", false, device.Spec{Fabric: "shm", RC: true}, "use tcp, udp or xdp"},
		{"unknown device for xdp", true, device.Spec{Fabric: "xdp", Device: "nosuch0"}, "nosuch0"},
	} {
		if c.root {
			testenv.NeedRoot(t)
		}
		ctx, err := device.Open(c.spec)
		if err == nil {
			ctx.Close()
			t.Errorf("%s: opened", c.name)
		} else if !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("%s: %v, want a word on %s", c.name, err, c.want)
		}
	}
	first, err := device.Open(device.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := device.Open(device.Spec{Port: first.Addr().Port()})
	if err == nil {
		second.Close()
		t.Fatal("two contexts on one port")
	}
	if want := fmt.Sprint(first.Addr().Port()); !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("%v: does not name port %s", err, want)
	}
}
