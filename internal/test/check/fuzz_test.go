package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
	"github.com/xwarp/xwarp/verbs"
)

// stub is a carrier whose other end is a fuzzer: it delivers what is put into
// it, and keeps what the last datagrams sent said.
type stub struct {
	arena *mem.Arena
	pool  *mem.Pool
	in    [][]byte
	local netip.AddrPort
	from  fabric.Remote

	hello uint32   // source epoch of the last HelloAck that was sent
	names []uint32 // sink STags of the Read Requests that were sent, and numbers of atomics
}

func (s *stub) Caps() fabric.DatagramCaps {
	return fabric.DatagramCaps{Carrier: "fuzz", MaxPayload: 1472, MaxBufs: 4, Headroom: 64, RxDepth: 64}
}
func (s *stub) Arena() *mem.Arena                                      { return s.arena }
func (s *stub) Local() netip.AddrPort                                  { return s.local }
func (s *stub) Resolve(netip.AddrPort) (fabric.Path, error)            { return 0, nil }
func (s *stub) Back(fabric.Remote, fabric.Station) (fabric.Path, bool) { return 0, true }
func (s *stub) Drop(fabric.Path)                                       {}
func (s *stub) Trust(fabric.Path, fabric.Station)                      {}
func (s *stub) Doubt(fabric.Path)                                      {}
func (s *stub) Frame() (mem.Addr, bool)                                { return s.pool.Get() }
func (s *stub) Unframe(a mem.Addr)                                     { s.pool.Put(a) }
func (s *stub) TxRoom() int                                            { return 64 }
func (s *stub) Flush()                                                 {}
func (s *stub) FD() int                                                { return -1 }
func (s *stub) Stats() fabric.DatagramStats                            { return fabric.DatagramStats{} }
func (s *stub) Close() error                                           { return nil }

func (s *stub) Recv(b *fabric.Batch) int {
	b.Reset()
	for len(s.in) > 0 && len(b.Pkts) < cap(b.Pkts) {
		addr, ok := s.pool.Get()
		if !ok {
			break
		}
		n := copy(s.arena.At(addr, mem.FrameSize), s.in[0])
		b.Pkts = append(b.Pkts, fabric.Packet{First: int32(len(b.Descs)), Bufs: 1, Len: int32(n), From: s.from})
		b.Descs = append(b.Descs, fabric.Desc{Addr: addr, Len: uint32(n)})
		s.in = s.in[1:]
	}
	return len(b.Pkts)
}

func (s *stub) Release(b *fabric.Batch) {
	for _, d := range b.Descs {
		s.pool.Put(d.Addr)
	}
	b.Reset()
}

func (s *stub) Send(b *fabric.Batch) {
	for _, p := range b.Pkts {
		var bytes []byte
		for _, d := range b.Descs[p.First : p.First+p.Bufs] {
			bytes = append(bytes, s.arena.At(d.Addr, int(d.Len))...)
			s.pool.Put(d.Addr)
		}
		s.read(bytes)
	}
}

// read learns from a datagram that was sent what a peer would learn.
func (s *stub) read(b []byte) {
	var h dgram.Header
	if !h.Parse(b) {
		panic(fmt.Sprintf("sent what nobody can read: % x", b))
	}
	if h.Type == dgram.TypeHelloAck {
		s.hello = h.SrcEpoch
	}
	for b = b[dgram.HeaderLen:]; h.Type == dgram.TypeData && h.Count > 0; h.Count-- {
		n := int(binary.BigEndian.Uint16(b))
		u := b[dgram.LengthLen : dgram.LengthLen+n]
		b = b[dgram.LengthLen+n:]
		if d := (ddp.Header{}); d.Parse(u) && !d.Tagged && d.QN == iwarp.QNReadReq {
			name := u[ddp.UntaggedLen:] // of a Read
			if rdmap.Opcode(d.ULP&0xf) == rdmap.AtomicRequest {
				name = name[4:]
			}
			s.names = append(s.names, binary.BigEndian.Uint32(name))
		}
	}
}

// still is a clock that stands, and a parker that does not wait.
type still struct{ now mono.Time }

func (s *still) Now() mono.Time                     { return s.now }
func (s *still) Park(mono.Time, mono.Duration) bool { return true }

// target is a context that a fuzzer sends to.
type target struct {
	*stub
	clock  *still
	ctx    *verbs.Context
	qp, ud *verbs.QP
	cq     *verbs.CQ
	pd     *verbs.PD
	open   *chunk
	secret *chunk
	sink   *chunk
	src    uint32 // of the peer
	lsn    uint32
}

func newTarget(t testing.TB) *target {
	arena := mem.Over(make([]byte, 1<<19))
	pool, err := mem.NewPool(arena, 64, true)
	if err != nil {
		t.Fatal(err)
	}
	peer := netip.MustParseAddrPort("10.0.0.2:18700")
	x := &target{
		stub:  &stub{arena: arena, pool: pool, local: netip.MustParseAddrPort("10.0.0.1:18700"), from: fabric.RemoteOf(peer)},
		clock: &still{now: 1e9}, src: 0x1000,
	}
	ok := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	x.ctx, err = verbs.New(verbs.Config{Datagram: x.stub, Engine: progress.New(x.clock, x.clock), Key: attackKey, Epoch: 77, ZeroBased: true})
	ok(err)
	x.pd, _ = x.ctx.AllocPD()
	x.cq, _ = x.ctx.CreateCQ(verbs.CQInit{})
	x.qp, err = x.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: x.cq, RecvCQ: x.cq})
	ok(err)
	x.ud, err = x.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: x.cq, RecvCQ: x.cq})
	ok(err)
	rng := rand.New(rand.NewPCG(1, 1))
	x.open, err = newChunk(rng, x.pd, x.ctx, 1000, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic|verbs.RemoteInvalidate)
	ok(err)
	x.secret, err = newChunk(rng, x.pd, x.ctx, 1000, verbs.LocalWrite)
	ok(err)
	x.sink, err = newChunk(rng, x.pd, x.ctx, 4000, verbs.LocalWrite)
	ok(err)
	for i := range 16 {
		wr := &verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{x.sink.mr.SGE(100*i, 60)}}
		ok(x.qp.PostRecv(wr))
		ok(x.ud.PostRecv(wr))
	}
	x.put(hello(dgram.TypeHello, x.src, 0, 1232))
	x.step(2)
	if x.hello == 0 {
		t.Fatal("a Hello was not answered")
	}
	x.lsn = x.src
	ah, err := x.pd.CreateAH(peer)
	ok(err)
	sgl := [verbs.MaxSGE]verbs.SGE{x.sink.mr.SGE(2000, 200)}
	word := [verbs.MaxSGE]verbs.SGE{x.sink.mr.SGE(2400, 8)}
	for _, wr := range []verbs.SendWR{
		{Opcode: verbs.OpSend, NumSGE: 1, SGL: sgl}, {Opcode: verbs.OpRDMARead, NumSGE: 1, SGL: sgl, RKey: 5},
		{Opcode: verbs.OpRDMAWriteRecord, NumSGE: 1, SGL: sgl, RKey: 5}, {Opcode: verbs.OpAtomicSwap, NumSGE: 1, SGL: word, RKey: 5},
	} {
		wr.AH = ah
		ok(x.qp.PostSend(&wr))
	}
	x.step(3)
	return x
}

func (x *target) put(b []byte) { x.in = append(x.in, b) }

func (x *target) step(n int) {
	var wcs [16]verbs.WC
	for range n {
		x.clock.now += 10_000
		x.ctx.Engine().Step()
		for _, wc := range wcs[:x.cq.Poll(wcs[:])] {
			if wc.Record != nil {
				wc.Record.Release()
			}
		}
	}
}

// feed makes datagrams of the fuzzer's bytes and sends them: as they are, or
// with key, epochs and CRC put right, so that they get far.
func (x *target) feed(data []byte) {
	next := func() (b byte) {
		if len(data) > 0 {
			b, data = data[0], data[1:]
		}
		return b
	}
	for len(data) > 0 {
		how := next()
		n := min(int(next())*6, len(data))
		if how&0xf0 == 0xf0 {
			x.clock.now += mono.Time(n) * 1e7 // for timers
			x.step(1)
			continue
		}
		raw := bytes.Clone(data[:n])
		data = data[n:]
		switch {
		case how&0xf0 == 0xe0 || n < dgram.HeaderLen: // any ULPDUs at all, one datagram
			x.put(x.good(how, raw))
		case how&0xf0 == 0xd0: // any bytes at all
			x.put(raw)
		default: // any header
			binary.BigEndian.PutUint64(raw[8:], attackKey)
			raw[4] = dgram.Version<<4 | raw[4]&0xf
			raw[5] |= dgram.FlagCRC
			if how&1 == 0 {
				binary.BigEndian.PutUint32(raw[16:], x.src)
				binary.BigEndian.PutUint32(raw[20:], x.hello)
			}
			dgram.Seal(raw, dgram.CRC(0, raw[dgram.CRCLen:]))
			x.put(raw)
		}
		x.step(1)
	}
	x.step(20)
}

// good makes a datagram of the association whose ULPDUs have headers that make
// sense, for the most part.
func (x *target) good(how byte, raw []byte) []byte {
	h := dgram.Header{Type: dgram.TypeData, SrcEpoch: x.src, DstEpoch: x.hello, Ack: serialOf(x.hello), Window: 64, Credit: 20}
	if how&8 != 0 {
		h.Type, h.LSN, h.Ack, h.DstEpoch = dgram.TypeUD, 1, serialOf(x.ud.Num()), 0
	} else {
		h.LSN = serialOf(x.lsn + uint32(how&3))
		h.Ack += serialOf(uint32(how & 4))
	}
	var body []byte
	for len(raw) >= 8 && len(body) < 1000 {
		u := x.ulpdu(raw[:8], raw[8:])
		raw = raw[min(len(raw), 8+int(raw[7])):]
		body = binary.BigEndian.AppendUint16(body, uint16(len(u)))
		body = append(body, u...)
		h.Count++
	}
	if h.Type == dgram.TypeData && how&3 == 0 {
		x.lsn += uint32(h.Count)
	}
	return datagram(h, body[:min(len(body), 1472-dgram.HeaderLen)]...)
}

// ulpdu makes a segment from eight bytes of choices and a payload.
func (x *target) ulpdu(c, payload []byte) []byte {
	payload = payload[:min(len(payload), int(c[7]))]
	var name uint32
	if len(x.names) > 0 {
		name = x.names[int(c[2])%len(x.names)]
	}
	stag := []uint32{x.open.mr.RKey(), x.open.mr.RKey(), name, x.secret.mr.RKey(), uint32(c[2]) << 8, x.sink.mr.RKey()}[int(c[1])%6]
	to := uint64(int64(int8(c[3]))) * uint64(c[4])
	last, msn, mo := c[5]&1 != 0, uint32(c[5]>>1&7), uint32(c[6])
	op := rdmap.Opcode(c[0] & 0xf)
	switch op {
	case rdmap.ReadRequest:
		return readRequest(stag, to, uint32(c[6])*uint32(c[6]))
	case rdmap.AtomicRequest:
		return atomicRequest(rdmap.AtomicOp(c[6]&3), stag, to&^uint64(c[6]>>4&7))
	case rdmap.AtomicResponse:
		resp := rdmap.AtomicResp{ID: stag, Value: to}
		b := make([]byte, rdmap.AtomicRespLen)
		resp.Put(b)
		return untagged(op, iwarp.QNAtomicResp, msn, 0, true, b...)
	case rdmap.WriteRecord:
		return chunkOf(stag, to, record.Chunk{ID: msn, Length: uint32(c[6]) * 2, Offset: mo & uint32(c[2])}, payload...)
	case rdmap.Write, rdmap.ReadResponse:
		return tagged(op, stag, to, last, payload...)
	case rdmap.Terminate:
		return untagged(op, iwarp.QNTerminate, msn, 0, true, payload...)
	case rdmap.Immediate, rdmap.ImmediateSE:
		return untagged(op, iwarp.QNSend, msn, 0, true, c...)
	}
	u := untagged(op, iwarp.QN(c[1]&3), msn, mo, last, payload...)
	if op == rdmap.SendInv || op == rdmap.SendSEInv {
		binary.BigEndian.PutUint32(u[2:], stag)
	}
	return u
}

// check looks whether anything was written where nobody may write.
func (x *target) check(t testing.TB) {
	for name, c := range map[string]*chunk{"open": x.open, "secret": x.secret, "sink": x.sink} {
		if !c.intact() {
			t.Errorf("canaries around %q were overwritten", name)
		}
	}
	if !bytes.Equal(x.secret.bytes(), bytes.Repeat([]byte{canary}, len(x.secret.bytes()))) {
		t.Error("memory that nobody may write was written")
	}
	for i, b := range x.sink.bytes() {
		receives := i < 1600 && i%100 < 60
		if answers := i >= 2000 && i < 2200 || i >= 2400 && i < 2408; b != canary && !receives && !answers {
			t.Fatalf("byte %d of memory that peers may not choose was written", i)
		}
	}
	x.qp.Destroy()
	x.ud.Destroy()
	if err := x.ctx.Close(); err != nil {
		t.Error(err)
	}
	if x.pool.Free() != x.pool.Cap() {
		t.Errorf("%d of %d frames are missing", x.pool.Cap()-x.pool.Free(), x.pool.Cap())
	}
}

// FuzzReceive feeds the whole way of a datagram, from the carrier to memory and
// completions: no panic, and no byte written outside of what was granted.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{0xe0, 4, 0, 0, 0, 0, 0, 1, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte{0xe0, 2, 3, 0, 0, 0, 0, 3, 0, 4, 1, 2, 3, 4})
	f.Add([]byte{0xe0, 2, 1, 0, 0, 0, 0, 3, 9, 4, 1, 2, 3, 4, 0xe1, 2, 10, 0, 0, 0, 0, 3, 1, 0})
	f.Add([]byte{0xe0, 3, 2, 2, 0, 0, 0, 1, 0, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xf0, 200, 0xe0, 2, 11, 2, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{0xe8, 3, 12, 0, 0, 0, 0, 1, 4, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0xf0, 200, 0xe0, 2, 7, 0, 0, 0, 0, 3, 0, 4, 0x11, 0, 0x60, 0})
	f.Add(append([]byte{0x10, 10}, datagram(dgram.Header{Type: dgram.TypeAck, SackWords: 1, SrcEpoch: 1, DstEpoch: 1}, make([]byte, 24)...)...))
	f.Add(append([]byte{0x11, 10}, hello(dgram.TypeHello, 9, 0, 60)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			return
		}
		x := newTarget(t)
		x.feed(data)
		x.check(t)
	})
}
