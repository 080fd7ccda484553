package device_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// TestBulk_whichWay writes a megabyte several times and looks which way it went.
func TestBulk_whichWay(t *testing.T) {
	for _, c := range []struct {
		name   string
		mtu    int
		spec   device.Spec
		kernel bool
	}{
		{"auto", 9000, device.Spec{Fabric: "xdp"}, true},
		{"auto/1500", 1500, device.Spec{Fabric: "xdp"}, true},
		{"auto/32000", 32000, device.Spec{Fabric: "xdp"}, false},
		{"auto with a capture", 9000, device.Spec{Fabric: "xdp", Capture: filepath.Join(t.TempDir(), "x")}, false},
		{"auto with RC", 9000, device.Spec{Fabric: "xdp", RC: true}, true},
		{"frames", 9000, device.Spec{Fabric: "xdp", Bulk: device.BulkFrames}, false},
		{"kernel", 32000, device.Spec{Fabric: "xdp", Bulk: device.BulkKernel}, true},
		{"no carrier of frames", 9000, device.Spec{Fabric: "udp"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t, true, c.mtu, c.spec)
			sent, _ := b.ctx.Stats()
			for i := 0; i < 8 || c.kernel && sent.TxBulk < 8; i++ { // that it leads there takes a moment to find out
				testWrite(t, a, b)
				sent, _ = b.ctx.Stats()
			}
			got, _ := a.ctx.Stats()
			if !c.kernel && sent.TxBulk > 0 || c.kernel != (got.RxBulk > 0) {
				t.Errorf("%d of %d datagrams were sent through the kernel, %d received", sent.TxBulk, sent.TxDatagrams, got.RxBulk)
			}
		})
	}
}

// TestBulk_streams: TCP of the kernel is there for who wants it, and chosen where frames are
// copied.
func TestBulk_streams(t *testing.T) {
	for _, c := range []struct {
		name string
		spec device.Spec
		want string
	}{
		{"auto", device.Spec{Fabric: "xdp"}, ""},
		{"auto for MPI", device.Spec{Fabric: "xdp", BulkStreams: true}, "tcp"},
		{"frames for MPI", device.Spec{Fabric: "xdp", BulkStreams: true, Bulk: device.BulkFrames}, ""},
		{"with a capture", device.Spec{Fabric: "xdp", BulkStreams: true, Capture: filepath.Join(t.TempDir(), "x")}, ""},
		{"tcp", device.Spec{Fabric: "xdp", Bulk: device.BulkTCP}, "tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := open(t, true, 1500, c.spec)
			if got := a.ctx.Attr().StreamCarrier; got != c.want {
				t.Errorf("connections go over %q, want %q", got, c.want)
			}
		})
	}
}

// TestBulk_oneSide: a peer that has no second path is sent to in frames. What goes the
// other way are Hellos, ever fewer of them; 8 MiB would be 128 datagrams.
func TestBulk_oneSide(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000})
	var ends [2]*host
	for i, bulk := range []device.Bulk{device.BulkKernel, device.BulkFrames} {
		var err error
		if ends[i], err = openHost(tb.Hosts[i], device.Spec{Fabric: "xdp", Bulk: bulk}); err != nil {
			t.Fatal(err)
		}
		defer ends[i].ctx.Close()
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		testWrite(t, ends[0], ends[1])
		testWrite(t, ends[1], ends[0])
	}
	for i := range ends {
		if s, _ := ends[i].ctx.Stats(); s.TxBulk > 32 {
			t.Errorf("end %d sent %d datagrams through the kernel", i, s.TxBulk)
		}
	}
}

// TestAllocs_bulk: nothing is allocated for large data on either way.
func TestAllocs_bulk(t *testing.T) {
	a, b := open(t, true, 9000, device.Spec{Fabric: "xdp", Bulk: device.BulkKernel})
	for range 8 {
		testWrite(t, a, b)
	}
	var wc [1]verbs.WC
	once := func() {
		post(t, b, verbs.OpRDMAWrite, b.mr.SGE(0, 1<<20), a.mr)
		step(a, b, func() bool { return b.scq.Poll(wc[:]) == 1 })
	}
	if n := testing.AllocsPerRun(20, once); n != 0 {
		t.Errorf("%v allocations per megabyte, want none", n)
	}
}

func TestOpen_bulkKernelRefused(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000})
	for _, c := range []struct {
		spec device.Spec
		want string
	}{
		{device.Spec{Capture: filepath.Join(t.TempDir(), "x")}, "leave Capture away"},
		{device.Spec{Port: 0xffff - dgram.BulkPort + 1}, "choose a lower one"},
	} {
		c.spec.Fabric, c.spec.Bulk = "xdp", device.BulkKernel
		e, err := openHost(tb.Hosts[0], c.spec)
		if err == nil {
			e.ctx.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want a word on %q", c.spec, err, c.want)
		}
	}
}

func TestParseBulk(t *testing.T) {
	for text, want := range map[string]device.Bulk{"auto": device.BulkAuto, "frames": device.BulkFrames, "kernel": device.BulkKernel} {
		if got, err := device.ParseBulk(text); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "queue", "Kernel"} {
		if _, err := device.ParseBulk(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestBulk_unreliable: an unreliable Send takes by the second path when it is told to, a
// Write-Record too, and both come from the address that their sender is known by.
func TestBulk_unreliable(t *testing.T) {
	a, b := open(t, true, 9000, device.Spec{Fabric: "xdp", Bulk: device.BulkKernel})
	if !a.ctx.Attr().Bulk {
		t.Fatal("there is no second path")
	}
	qps := map[*host]*verbs.QP{}
	for _, e := range []*host{a, b} {
		q, err := e.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: e.scq, RecvCQ: e.rcq})
		if err != nil {
			t.Fatal(err)
		}
		qps[e] = q
	}
	recv := verbs.RecvWR{NumSGE: 1}
	recv.SGL[0] = b.mr.SGE(0, 8000)
	if err := qps[b].PostRecv(&recv); err != nil {
		t.Fatal(err)
	}
	for _, op := range []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWriteRecord} {
		before, _ := b.ctx.Stats()
		wr := verbs.SendWR{Opcode: op, Flags: verbs.Signaled | verbs.Bulk, AH: a.ah, RemoteQPN: qps[b].Num(), RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr(), NumSGE: 1}
		wr.SGL[0] = a.mr.SGE(0, 8000)
		if err := qps[a].PostSend(&wr); err != nil {
			t.Fatal(err)
		}
		wc := poll(a, b, b.rcq)
		if wc.Status != verbs.Success || wc.ByteLen != 8000 || wc.SrcAddr != verbs.RemoteOf(a.ctx.Addr()) || wc.SrcEpoch != a.ctx.Epoch() {
			t.Errorf("%v: %+v", op, wc)
		}
		if after, _ := b.ctx.Stats(); after.RxBulk == before.RxBulk {
			t.Errorf("%v came by the first path", op)
		}
		poll(a, b, a.scq)
	}
}
