package verbs_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

func sge(s ...verbs.SGE) (n uint8, l [verbs.MaxSGE]verbs.SGE) {
	copy(l[:], s)
	return uint8(len(s)), l
}

func send(t *testing.T, e *end, flags verbs.SendFlags, s ...verbs.SGE) {
	t.Helper()
	wr := verbs.SendWR{WRID: 77, Opcode: verbs.OpSend, Flags: flags, AH: e.ah}
	wr.NumSGE, wr.SGL = sge(s...)
	must(t, e.qp.PostSend(&wr))
}

func fillRandom(b []byte) []byte {
	for i := range b {
		b[i] = byte(i*i>>3 ^ i)
	}
	return b
}

func TestSend_sizesAndGather(t *testing.T) {
	const max = 60000
	for _, mtu := range []int{1500, 4000, 9000} {
		a, b := newPair(t, mtu, max)
		fillRandom(a.mr.Bytes())
		seg := a.ctx.Attr().MaxSeg
		for _, n := range []int{0, 1, 8, 255, 256, 257, seg - 1, seg, seg + 1, 2*seg - 1, 2 * seg, 2*seg + 1, 4096, 8192, max} {
			clear(b.mr.Bytes())
			third := n / 3
			b.recv(t, 0, max)
			send(t, a, verbs.Signaled, a.mr.SGE(0, third), a.mr.SGE(third, 0), a.mr.SGE(third, n-third))
			wc := wait(a, b, b.rcq)
			if wc.Status != verbs.Success || wc.ByteLen != uint32(n) || wc.Opcode != verbs.OpRecv || wc.Src != b.ah {
				t.Fatalf("MTU %d, %d bytes: %+v", mtu, n, wc)
			}
			if !bytes.Equal(b.mr.Bytes()[:n], a.mr.Bytes()[:n]) {
				t.Fatalf("MTU %d, %d bytes: wrong data", mtu, n)
			}
			if wc := wait(a, b, a.scq); wc.Status != verbs.Success || wc.WRID != 77 || wc.ByteLen != uint32(n) {
				t.Fatalf("MTU %d, %d bytes: send completion %+v", mtu, n, wc)
			}
		}
	}
}

func TestSend_scattersAcrossReceiveBuffers(t *testing.T) {
	a, b := newPair(t, 1500, 8000)
	fillRandom(a.mr.Bytes())
	wr := verbs.RecvWR{}
	wr.NumSGE, wr.SGL = sge(b.mr.SGE(100, 10), b.mr.SGE(0, 0), b.mr.SGE(2000, 3000), b.mr.SGE(6000, 1000))
	must(t, b.qp.PostRecv(&wr))
	send(t, a, 0, a.mr.SGE(0, 3500))
	wait(a, b, b.rcq)
	got := bytes.Join([][]byte{b.mr.Bytes()[100:110], b.mr.Bytes()[2000:5000], b.mr.Bytes()[6000:6490]}, nil)
	if !bytes.Equal(got, a.mr.Bytes()[:3500]) {
		t.Error("wrong data")
	}
	if b.mr.Bytes()[110] != 0 || b.mr.Bytes()[6490] != 0 {
		t.Error("wrote outside of the buffers")
	}
}

func TestSend_manySmallShareFrames(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	for range 64 {
		b.recv(t, 0, 64)
	}
	msg := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: make([]byte, 8), AH: a.ah}
	for range 64 {
		must(t, a.qp.PostSend(&msg))
	}
	for range 64 {
		wait(a, b, b.rcq)
	}
	if s, _ := a.ctx.Stats(); s.TxDatagrams-s.TxHellos > 4 {
		t.Errorf("64 messages of 8 bytes took %d datagrams", s.TxDatagrams-s.TxHellos)
	}
}

func write(t *testing.T, e *end, src verbs.SGE, addr uint64, rkey uint32) {
	t.Helper()
	wr := verbs.SendWR{WRID: 5, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, AH: e.ah, RemoteAddr: addr, RKey: rkey}
	wr.NumSGE, wr.SGL = sge(src)
	must(t, e.qp.PostSend(&wr))
}

func TestRDMAWrite_thenSendIsOrdered(t *testing.T) {
	a, b := newPair(t, 1500, 100000)
	fillRandom(a.mr.Bytes())
	b.recv(t, 0, 1)
	write(t, a, a.mr.SGE(0, 90000), b.mr.Addr()+10000, b.mr.RKey())
	send(t, a, 0, a.mr.SGE(0, 1))
	if wc := wait(a, b, b.rcq); wc.Status != verbs.Success {
		t.Fatalf("%+v", wc)
	}
	if !bytes.Equal(b.mr.Bytes()[10000:], a.mr.Bytes()[:90000]) {
		t.Error("the Send was delivered before the Write was placed, or it is wrong")
	}
	if wc := wait(a, b, a.scq); wc.Opcode != verbs.OpRDMAWrite || wc.Status != verbs.Success {
		t.Errorf("%+v", wc)
	}
}

// What was not granted is refused, changes nothing, and is reported to the
// peer that asked; canaries stand around the region.
func TestRDMAWrite_refused(t *testing.T) {
	for _, c := range []struct {
		name   string
		target func(t *testing.T, b *end, mr *verbs.MR) (addr uint64, rkey uint32)
	}{
		{"guessed key", func(_ *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) { return mr.Addr(), mr.RKey() + 0x100 }},
		{"guessed key", func(_ *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) { return mr.Addr(), mr.RKey() ^ 0x5a5a5a5a }},
		{"one byte before", func(_ *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) { return mr.Addr() - 1, mr.RKey() }},
		{"one byte behind", func(_ *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) {
			return mr.Addr() + uint64(mr.Len()) - 99, mr.RKey()
		}},
		{"address wraps", func(_ *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) { return ^uint64(0) - 50, mr.RKey() }},
		{"deregistered", func(t *testing.T, _ *end, mr *verbs.MR) (uint64, uint32) {
			addr, key := mr.Addr(), mr.RKey()
			must(t, mr.Dereg())
			return addr, key
		}},
		{"registered again", func(t *testing.T, b *end, mr *verbs.MR) (uint64, uint32) {
			addr, key, buf := mr.Addr(), mr.RKey(), mr.Bytes()
			must(t, mr.Dereg())
			again, err := b.pd.RegMR(buf, verbs.LocalWrite|verbs.RemoteWrite)
			must(t, err)
			if again.RKey() == key {
				t.Error("a key was used twice in a row")
			}
			return addr, key
		}},
		{"no remote write", func(t *testing.T, b *end, mr *verbs.MR) (uint64, uint32) {
			local, err := b.pd.RegMR(mr.Bytes(), verbs.LocalWrite)
			must(t, err)
			return local.Addr(), local.RKey()
		}},
		{"another domain", func(t *testing.T, b *end, mr *verbs.MR) (uint64, uint32) {
			pd, err := b.ctx.AllocPD()
			must(t, err)
			other, err := pd.RegMR(mr.Bytes(), verbs.LocalWrite|verbs.RemoteWrite)
			must(t, err)
			return other.Addr(), other.RKey()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, 1500, 4096)
			memory := bytes.Repeat([]byte{0xc5}, 3000)
			mr, err := b.pd.RegMR(memory[1000:2000], verbs.LocalWrite|verbs.RemoteWrite)
			must(t, err)
			addr, rkey := c.target(t, b, mr)
			write(t, a, a.mr.SGE(0, 100), addr, rkey)
			if wc := wait(a, b, a.scq); wc.Status != verbs.RemAccessErr {
				t.Errorf("the writer was told %v", wc.Status)
			}
			if !bytes.Equal(memory, bytes.Repeat([]byte{0xc5}, 3000)) {
				t.Error("memory changed")
			}
			if b.qp.Stats.Refused == 0 {
				t.Error("the refusal was not counted")
			}
		})
	}
}

func TestSend_tooLongForTheReceive(t *testing.T) {
	for _, n := range []int{101, 5000} { // one segment, several
		a, b := newPair(t, 1500, 8192)
		fillRandom(a.mr.Bytes())
		b.recv(t, 0, 100)
		send(t, a, 0, a.mr.SGE(0, n))
		wc := wait(a, b, b.rcq)
		if wc.Status != verbs.LocLenErr {
			t.Errorf("%d bytes: %+v", n, wc)
		}
		if b.mr.Bytes()[100] != 0 {
			t.Errorf("%d bytes: wrote behind the buffer", n)
		}
	}
}

func TestSend_waitsForAReceiveToBePosted(t *testing.T) {
	a, b := newPair(t, 9000, 8192)
	for i := range 10 {
		msg := []byte{byte(i)}
		must(t, a.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: msg, AH: a.ah}))
	}
	for range 100 {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
	for i := range 10 {
		b.recv(t, 0, 10)
		if wait(a, b, b.rcq); b.mr.Bytes()[0] != byte(i) {
			t.Fatalf("message %d is message %d", i, b.mr.Bytes()[0])
		}
	}
	if b.qp.Stats.RecvStalls == 0 {
		t.Error("no stall was counted")
	}
}

func TestPostSend_queueFull(t *testing.T) {
	a, b := newPair(t, 9000, 64)
	wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, AH: a.ah}
	n := 0
	for ; n < 10000; n++ {
		if err := a.qp.PostSend(&wr); err != nil {
			if !errors.Is(err, verbs.ErrQueueFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if n != 512 {
		t.Errorf("%d requests fitted a queue of 512", n)
	}
	for range 64 {
		b.recv(t, 0, 1)
	}
	wait(a, b, a.scq)
	must(t, a.qp.PostSend(&wr)) // a completion was polled: there is room
}

func TestDestroy_flushesEverything(t *testing.T) {
	a, b := newPair(t, 9000, 64)
	a.recv(t, 0, 10)
	a.recv(t, 10, 10)
	send(t, a, 0, a.mr.SGE(0, 1))
	send(t, a, verbs.Signaled, a.mr.SGE(0, 1))
	a.qp.Destroy()
	var wcs [8]verbs.WC
	if n := a.scq.Poll(wcs[:]); n != 2 || wcs[0].Status != verbs.WRFlushErr || wcs[1].Status != verbs.WRFlushErr {
		t.Errorf("sends: %+v", wcs[:n])
	}
	if n := a.rcq.Poll(wcs[:]); n != 2 || wcs[0].Status != verbs.WRFlushErr {
		t.Errorf("receives: %+v", wcs[:n])
	}
	if err := a.qp.PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("PostRecv afterwards: %v", err)
	}
	_ = b
}

func TestErrors_sayWhatToDo(t *testing.T) {
	a, _ := newPair(t, 9000, 64)
	pd2, err := a.ctx.AllocPD()
	must(t, err)
	foreign, err := pd2.RegMR(make([]byte, 8), 0)
	must(t, err)
	post := func(edit func(*verbs.SendWR)) error {
		wr := verbs.SendWR{Opcode: verbs.OpSend, AH: a.ah, NumSGE: 1}
		wr.SGL[0] = a.mr.SGE(0, 8)
		edit(&wr)
		return a.qp.PostSend(&wr)
	}
	recv := func(s verbs.SGE) error {
		return a.qp.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{s}})
	}
	readOnly, err := a.pd.RegMR(make([]byte, 8), 0)
	must(t, err)
	_, regErr := a.pd.RegMR(nil, verbs.RemoteWrite)
	_, rcErr := a.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: a.scq, RecvCQ: a.rcq})
	_, cqErr := pd2.CreateQP(verbs.QPInit{Type: verbs.RD})
	_, twoErr := a.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: a.scq, RecvCQ: a.rcq})
	_, ahErr := a.pd.CreateAH(netip.MustParseAddrPort("[::1]:5"))
	_, depthErr := a.ctx.CreateCQ(verbs.CQInit{Depth: -1})
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no address handle", post(func(w *verbs.SendWR) { w.AH = nil }), "address handle"},
		{"opcode", post(func(w *verbs.SendWR) { w.Opcode = verbs.OpRecv }), "RECV"},
		{"too much inline", post(func(w *verbs.SendWR) { w.Flags, w.InlineData = verbs.Inline, make([]byte, 257) }), "at most 256"},
		{"too many elements", post(func(w *verbs.SendWR) { w.NumSGE = verbs.MaxSGE + 1 }), "at most 4"},
		{"unknown key", post(func(w *verbs.SendWR) { w.SGL[0].LKey = 0xdead00 }), "0xdead00"},
		{"another domain's key", post(func(w *verbs.SendWR) { w.SGL[0] = foreign.SGE(0, 8) }), "protection domain"},
		{"outside of the region", post(func(w *verbs.SendWR) { w.SGL[0].Length = 65 }), "not inside"},
		{"receive into read-only memory", recv(readOnly.SGE(0, 8)), "LocalWrite"},
		{"remote write without local", regErr, "LocalWrite"},
		{"RC", rcErr, "RC one of streams"},
		{"no completion queue", cqErr, "completion queue"},
		{"second queue pair", twoErr, "one talks to all peers"},
		{"IPv6", ahErr, "IPv4"},
		{"negative depth", depthErr, "1 to"},
		{"deregistered twice", errors.Join(foreign.Dereg(), foreign.Dereg()), "deregistered before"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want a word on %q", c.name, c.err, c.want)
		}
	}
	// Nothing of that took a place in a queue.
	for range 512 {
		must(t, post(func(*verbs.SendWR) {}))
	}
}

// All datagrams of a Send leave before a step; those of one with More leave with the next one,
// or with a step.
func TestRD_leavesAtOnce(t *testing.T) {
	a, b := newPair(t, 1500, 1<<16)
	sent := func() uint64 {
		s, _ := a.ctx.Stats()
		return s.TxDatagrams - s.TxHellos - s.TxAcks
	}
	send := func(n int, flags verbs.SendFlags) {
		t.Helper()
		must(t, a.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled | flags, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{a.mr.SGE(0, n)}, AH: a.ah}))
	}
	for range 8 {
		b.recv(t, 0, 1<<15)
	}
	send(8, 0) // which opens the association, and brings the credit of the receives
	wait(a, b, b.rcq)
	wait(a, b, a.scq)
	for _, c := range []struct {
		name  string
		sends func()
		leave uint64 // before a step
	}{
		{"4 KiB", func() { send(4096, 0) }, 3},
		{"what follows it", func() { send(8<<10, 0); send(8<<10, 0) }, 6},
		{"More", func() { send(4096, verbs.More) }, 0},
		{"a Send behind one with More", func() { send(4096, verbs.More); send(4096, 0) }, 6},
	} {
		before := sent()
		c.sends()
		if n := sent() - before; n != c.leave {
			t.Errorf("%s: %d datagrams leave before a step, want %d", c.name, n, c.leave)
		}
		for range 100 {
			a.ctx.Engine().Step()
			b.ctx.Engine().Step()
		}
	}
	var wcs [16]verbs.WC
	if n := b.rcq.Poll(wcs[:]); n != 6 {
		t.Errorf("%d messages have arrived, want 6", n)
	}
}
