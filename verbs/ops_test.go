package verbs_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// remote registers memory at e that peers may do everything to.
func remote(t testing.TB, e *end, n int) *verbs.MR {
	t.Helper()
	buf := make([]byte, n+8)
	for i := range 8 { // atomics need 8 bytes on a boundary
		if mr, err := e.pd.RegMR(buf[i:i+n], verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic); err == nil && mr.Addr()%8 == 0 {
			return mr
		}
	}
	t.Fatal("no boundary of 8 bytes")
	return nil
}

// post posts wr to e's peer, signalled, and waits for its completion.
func post(t testing.TB, e, peer *end, wr verbs.SendWR, sges ...verbs.SGE) verbs.WC {
	t.Helper()
	wr.Flags |= verbs.Signaled
	wr.AH = e.ah
	wr.NumSGE, wr.SGL = sge(sges...)
	must(t, e.qp.PostSend(&wr))
	return wait(e, peer, e.scq)
}

func TestRDMARead_sizesAndBuffers(t *testing.T) {
	a, b := newPair(t, 1500, 1<<17)
	src := remote(t, b, 1<<17)
	fillRandom(src.Bytes())
	for _, n := range []int{0, 1, 100, 1300, 1500, 5000, 1 << 16} {
		half := n / 2
		wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpRDMARead, RKey: src.RKey(), RemoteAddr: src.Addr() + 3}, a.mr.SGE(1, half), a.mr.SGE(70000, n-half))
		if wc.Status != verbs.Success || wc.ByteLen != uint32(n) || wc.Opcode != verbs.OpRDMARead {
			t.Fatalf("%d bytes: %+v", n, wc)
		}
		got := append(bytes.Clone(a.mr.Bytes()[1:1+half]), a.mr.Bytes()[70000:70000+n-half]...)
		if !bytes.Equal(got, src.Bytes()[3:3+n]) {
			t.Errorf("%d bytes: wrong data", n)
		}
	}
}

func TestAtomics(t *testing.T) {
	a, b := newPair(t, 1500, 4096)
	mr := remote(t, b, 64)
	word := mr.Bytes()[8:16]
	binary.NativeEndian.PutUint64(word, 40)
	for _, c := range []struct {
		op    verbs.Opcode
		at    verbs.Atomic
		after uint64
	}{
		{verbs.OpAtomicFetchAndAdd, verbs.Atomic{Add: 2}, 42},
		{verbs.OpAtomicCmpAndSwp, verbs.Atomic{Compare: 41, Swap: 7}, 42},
		{verbs.OpAtomicCmpAndSwp, verbs.Atomic{Compare: 42, Swap: 7}, 7},
		{verbs.OpAtomicSwap, verbs.Atomic{Swap: 0xffff}, 0xffff},
		{verbs.OpAtomicSwap, verbs.Atomic{Swap: 0, Mask: 0xff}, 0xff00},
		{verbs.OpAtomicFetchAndAdd, verbs.Atomic{Add: 0x100, Mask: 1 << 15}, 0x0000},
	} {
		before := binary.NativeEndian.Uint64(word)
		wc := post(t, a, b, verbs.SendWR{Opcode: c.op, Atomic: c.at, RKey: mr.RKey(), RemoteAddr: mr.Addr() + 8}, a.mr.SGE(16, 8))
		if wc.Status != verbs.Success || wc.ByteLen != 8 {
			t.Fatalf("%v: %+v", c.op, wc)
		}
		if got := binary.NativeEndian.Uint64(a.mr.Bytes()[16:]); got != before {
			t.Errorf("%v returned %#x, want %#x", c.op, got, before)
		}
		if got := binary.NativeEndian.Uint64(word); got != c.after {
			t.Errorf("%v %+v: %#x, want %#x", c.op, c.at, got, c.after)
		}
	}
}

func TestWriteWithImm(t *testing.T) {
	a, b := newPair(t, 1500, 8192)
	fillRandom(a.mr.Bytes())
	for _, n := range []int{0, 8, 4000} {
		b.recv(t, 0, 16)
		wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpRDMAWriteWithImm, Flags: verbs.Solicited, ImmData: 1<<40 + uint64(n), RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 100}, a.mr.SGE(0, n))
		got := wait(a, b, b.rcq)
		if wc.Status != verbs.Success || got.Opcode != verbs.OpRecvRDMAWithImm || got.ImmData != 1<<40+uint64(n) || got.Flags != verbs.WCWithImm|verbs.WCWithSolicited {
			t.Fatalf("%d bytes: %+v, %+v", n, wc, got)
		}
		if !bytes.Equal(b.mr.Bytes()[100:100+n], a.mr.Bytes()[:n]) {
			t.Errorf("%d bytes: wrong data", n)
		}
	}
}

func TestSendWithInv_endsTheKey(t *testing.T) {
	a, b := newPair(t, 1500, 4096)
	mr, err := b.pd.RegMR(make([]byte, 64), verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteInvalidate)
	must(t, err)
	key, addr := mr.RKey(), mr.Addr()
	b.recv(t, 0, 16)
	post(t, a, b, verbs.SendWR{Opcode: verbs.OpSendWithInv, InvKey: key}, a.mr.SGE(0, 4))
	if wc := wait(a, b, b.rcq); wc.Flags != verbs.WCWithInv || wc.InvKey != key || wc.ByteLen != 4 {
		t.Fatalf("%+v", wc)
	}
	wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpRDMAWrite, RKey: key, RemoteAddr: addr}, a.mr.SGE(0, 4))
	if wc.Status != verbs.RemAccessErr || !a.ah.Lost() {
		t.Errorf("a write with the key that was ended: %v", wc.Status)
	}
	// The association is over; the hosts are not.
	again, err := a.pd.CreateAH(b.ctx.Addr())
	must(t, err)
	a.ah = again
	b.recv(t, 0, 16)
	if wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpSend}, a.mr.SGE(0, 4)); wc.Status != verbs.Success {
		t.Errorf("after a new handle: %+v", wc)
	}
}

func TestFence_waitsForReads(t *testing.T) {
	a, b := newPair(t, 1500, 1<<16)
	src := remote(t, b, 1<<15)
	fillRandom(src.Bytes())
	read := verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: a.ah, RKey: src.RKey(), RemoteAddr: src.Addr()}
	read.NumSGE, read.SGL = sge(a.mr.SGE(0, 1<<15))
	must(t, a.qp.PostSend(&read))
	write := verbs.SendWR{WRID: 2, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled | verbs.Fence, AH: a.ah, RKey: src.RKey(), RemoteAddr: src.Addr()}
	write.NumSGE, write.SGL = sge(a.mr.SGE(0, 1<<15)) // what the read brings
	must(t, a.qp.PostSend(&write))
	want := bytes.Clone(src.Bytes())
	for i := range uint64(2) {
		if wc := wait(a, b, a.scq); wc.WRID != i+1 || wc.Status != verbs.Success {
			t.Fatalf("%+v", wc)
		}
	}
	if !bytes.Equal(src.Bytes(), want) {
		t.Error("the fenced write went before the read")
	}
}

// udPair adds a queue pair of type UD to each end of a pair.
func udPair(t testing.TB, mtu int, rec verbs.RecordConfig) (a, b *end) {
	a, b = newPair(t, mtu, 1<<17)
	for _, e := range []*end{a, b} {
		qp, err := e.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: e.scq, RecvCQ: e.rcq, Record: rec})
		must(t, err)
		e.qp = qp
	}
	return a, b
}

func TestUD_send(t *testing.T) {
	a, b := udPair(t, 1500, verbs.RecordConfig{})
	fillRandom(a.mr.Bytes())
	most := a.ctx.Attr().MaxSeg
	for _, n := range []int{0, 1, 256, most} {
		b.recv(t, 0, 2000)
		if wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpSend, RemoteQPN: b.qp.Num()}, a.mr.SGE(0, n)); wc.Status != verbs.Success {
			t.Fatalf("%+v", wc)
		}
		wc := wait(a, b, b.rcq)
		if wc.ByteLen != uint32(n) || wc.SrcQP != a.qp.Num() || wc.SrcAddr.AddrPort() != a.ctx.Addr() || wc.Status != verbs.Success {
			t.Fatalf("%+v", wc)
		}
		if !bytes.Equal(b.mr.Bytes()[:n], a.mr.Bytes()[:n]) {
			t.Errorf("%d bytes: wrong data", n)
		}
		if back, err := b.pd.CreateAHFromWC(&wc); err != nil || back.Remote() != a.ctx.Addr() {
			t.Errorf("handle of the sender: %v, %v", back, err)
		}
	}
	wr := verbs.SendWR{Opcode: verbs.OpSend, AH: a.ah, RemoteQPN: b.qp.Num()}
	wr.NumSGE, wr.SGL = sge(a.mr.SGE(0, most+1))
	if a.qp.PostSend(&wr) == nil {
		t.Error("a message of more than one datagram was taken")
	}
	// Nobody is there for it, or it is too long: nothing happens to others.
	post(t, a, b, verbs.SendWR{Opcode: verbs.OpSend, RemoteQPN: 77}, a.mr.SGE(0, 5))
	post(t, a, b, verbs.SendWR{Opcode: verbs.OpSend, RemoteQPN: b.qp.Num()}, a.mr.SGE(0, 5))
	b.recv(t, 0, 4)
	post(t, a, b, verbs.SendWR{Opcode: verbs.OpSend, RemoteQPN: b.qp.Num()}, a.mr.SGE(0, 5))
	if wc := wait(a, b, b.rcq); wc.Status != verbs.LocLenErr {
		t.Errorf("%+v", wc)
	}
}

func TestWriteRecord(t *testing.T) {
	for _, kind := range []verbs.QPType{verbs.RD, verbs.UD} {
		a, b := newPair(t, 1500, 1<<17)
		if kind == verbs.UD {
			a, b = udPair(t, 1500, verbs.RecordConfig{})
		}
		fillRandom(a.mr.Bytes())
		for _, n := range []int{0, 9, 1400, 50000} {
			wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, RemoteQPN: b.qp.Num(), RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 7}, a.mr.SGE(0, n))
			got := wait(a, b, b.rcq)
			r := got.Record
			if wc.Status != verbs.Success || got.Opcode != verbs.OpRecvRDMAWriteRecord || r == nil || !r.Whole || r.Len != uint32(n) || r.Addr != b.mr.Addr()+7 || r.RKey != b.mr.RKey() {
				t.Fatalf("%v, %d bytes: %+v, %+v, %+v", kind, n, wc, got, r)
			}
			r.Release()
			if !bytes.Equal(b.mr.Bytes()[7:7+n], a.mr.Bytes()[:n]) {
				t.Errorf("%v, %d bytes: wrong data", kind, n)
			}
		}
	}
}

// A record that is written again under its number is not placed again.
func TestWriteRecord_numbered(t *testing.T) {
	a, b := udPair(t, 1500, verbs.RecordConfig{})
	write := func(id uint32, value byte) {
		t.Helper()
		a.mr.Bytes()[0] = value
		wc := post(t, a, b, verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, Flags: verbs.Numbered, RecordID: id, RemoteQPN: b.qp.Num(), RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}, a.mr.SGE(0, 1))
		if wc.Status != verbs.Success {
			t.Fatalf("%+v", wc)
		}
	}
	for i, id := range []uint32{7, 0, 8} {
		write(id, byte(10+i))
		got := wait(a, b, b.rcq)
		if got.Record == nil || got.Record.ID != id || b.mr.Bytes()[0] != byte(10+i) {
			t.Fatalf("record %d: %+v, byte %d", id, got.Record, b.mr.Bytes()[0])
		}
		got.Record.Release()
	}
	write(7, 99)
	write(9, 13)
	if got := wait(a, b, b.rcq); got.Record == nil || got.Record.ID != 9 || b.qp.Stats.RecordDrops != 1 {
		t.Fatalf("%+v, %d dropped", got.Record, b.qp.Stats.RecordDrops)
	}
}
