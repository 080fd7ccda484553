package conform

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// exchange is a fixed conversation in a world of two nodes: both ends connect,
// do every kind of operation to each other at once, say goodbye, and end the
// connection. Whatever happens to the stream, what each end sees must be true.
type exchange struct {
	t     testing.TB
	what  string // that is done to the stream, for people
	world *sim.World
	p     verbs.ConnParam
	ends  [2]*talker // dialer, acceptor
}

// talker is one end, in a task of its own.
type talker struct {
	x       *exchange
	i       int
	peer    *talker
	task    *sim.Task
	streams *sim.Streams
	ctx     *verbs.Context
	pd      *verbs.PD
	cq      *verbs.CQ
	cm      *verbs.CMChannel
	id      *verbs.CMID
	qp      *verbs.QP
	late    bool // it has waited long enough

	all   []*field // everything registered
	src   *field   // what is sent and written
	recv  *field   // what receives fill
	dst   *field   // what the peer writes
	pool  *field   // what the peer reads
	words *field   // what the peer's atomics change
	sink  *field   // what Reads and atomics bring
	keys  []uint32 // that the peer ends

	posted, done int            // requests
	status       []verbs.Status // of those that are complete
	got          int            // receives that are complete
	whole        int            // of them with success
	bye          bool           // the peer's goodbye is here
	open, over   bool
}

// field is registered memory with canaries around it.
type field struct {
	*verbs.MR
	all, b []byte
}

// slot is how much room each operation has in each field.
const slot = 320

// exchangeOps are what each end asks of the other, before it says goodbye.
var exchangeOps = []struct {
	op    verbs.Opcode
	n     int
	flags verbs.SendFlags
}{
	{verbs.OpSend, 5, 0},
	{verbs.OpRDMARead, 21, 0},
	{verbs.OpSend, 300, 0}, // two segments
	{verbs.OpSend, 1, verbs.Solicited},
	{verbs.OpRDMARead, 300, 0},
	{verbs.OpSendWithInv, 7, 0},
	{verbs.OpAtomicFetchAndAdd, 8, 0},
	{verbs.OpSendWithInv, 0, verbs.Solicited},
	{verbs.OpRDMAWrite, 33, 0},
	{verbs.OpRDMAWrite, 300, 0},
	{verbs.OpAtomicCmpAndSwp, 8, 0},
	{verbs.OpRDMAWriteWithImm, 9, 0},
	{verbs.OpRDMARead, 0, 0},
	{verbs.OpRDMAWrite, 0, 0},
	{verbs.OpRDMAWriteWithImm, 0, verbs.Solicited},
	{verbs.OpAtomicSwap, 8, 0},
	{verbs.OpSend, 0, verbs.Fence},
	{verbs.OpSend, 3, 0}, // goodbye: it is posted when all before it are complete, at both ends
}

const (
	exchangeKeys = 2
	goodbye      = 16 // the last but one comes only when all others are complete, so the last is the goodbye
)

// delivers reports whether an operation completes a receive.
func delivers(op verbs.Opcode) bool {
	return op == verbs.OpSend || op == verbs.OpSendWithInv || op == verbs.OpRDMAWriteWithImm
}

// isAtomic reports whether an operation changes a word.
func isAtomic(op verbs.Opcode) bool {
	return op >= verbs.OpAtomicCmpAndSwp && op <= verbs.OpAtomicSwap
}

// newExchange makes the conversation. c says what is done to what each end
// sends.
func newExchange(t testing.TB, what string, p verbs.ConnParam, c [2]sim.StreamConfig) *exchange {
	x := &exchange{t: t, what: what, p: p}
	x.p.Timeout = mono.Second
	x.world = sim.New(sim.Config{Seed: 1, ArenaSize: 1 << 12})
	for i := range x.ends {
		x.ends[i] = &talker{x: x, i: i}
	}
	x.ends[0].peer, x.ends[1].peer = x.ends[1], x.ends[0]
	for i, k := range x.ends {
		c[i].MSS, c[i].Timeout = 256, mono.Second
		n := x.world.Node()
		k.task = x.world.Go(n, []string{"dialer", "acceptor"}[i], func(*sim.Task) error {
			k.run(n, c[i])
			return nil
		})
	}
	return x
}

// run runs the conversation and checks all that must be true. orderly says that
// nothing but success is allowed.
func (x *exchange) run(orderly bool) {
	x.t.Helper()
	if err := x.world.Run(); err != nil {
		x.t.Fatalf("%s: %v", x.what, err)
	}
	for _, k := range x.ends {
		k.check(orderly)
	}
}

func (k *talker) fail(format string, args ...any) {
	k.x.t.Helper()
	k.x.t.Fatalf("%s: %s: %s", k.x.what, k.task.Name(), fmt.Sprintf(format, args...))
}

func (k *talker) must(err error) {
	if err != nil {
		k.x.t.Helper()
		k.fail("%v", err)
	}
}

// run is the body of the task.
func (k *talker) run(n *sim.Node, c sim.StreamConfig) {
	k.streams = n.Streams(c)
	ctx, err := verbs.New(verbs.Config{
		Streams: k.streams, Engine: progress.New(k.task, k.task), Key: 0x5eed, Epoch: uint32(k.i+1) * 0x10001, ZeroBased: true,
	})
	k.must(err)
	k.ctx = ctx
	k.pd, err = ctx.AllocPD()
	k.must(err)
	k.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: 64})
	k.must(err)
	k.cm, err = ctx.CreateCMChannel()
	k.must(err)
	k.memory()
	k.qp, err = k.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: k.cq, RecvCQ: k.cq, Cap: verbs.QPCap{MaxSendWR: 32, MaxRecvWR: 32}})
	k.must(err)
	k.receives()
	k.x.world.At(mono.Time(3*mono.Second), k.giveUp)
	if k.i == 0 {
		k.dial()
	} else {
		k.listen(n)
	}
	k.wait(func() bool { return k.open || k.over || k.late })
	if k.open {
		k.converse()
	}
	k.end()
	k.must(ctx.Close())
}

// giveUp is when an end that has heard nothing new for long ends the connection.
func (k *talker) giveUp() {
	k.late = true
	k.task.Wake()
}

// wait steps until something is so.
func (k *talker) wait(so func() bool) {
	for {
		work := k.ctx.Engine().Step()
		for {
			e, ok := k.cm.GetEvent()
			if !ok {
				break
			}
			k.hear(&e)
		}
		var wcs [16]verbs.WC
		for n := k.cq.Poll(wcs[:]); n > 0; n = k.cq.Poll(wcs[:]) {
			for i := range wcs[:n] {
				k.complete(&wcs[i])
			}
		}
		if so() {
			return
		}
		if work == 0 {
			k.ctx.Engine().Park()
		}
	}
}

// hear handles a connection event.
func (k *talker) hear(e *verbs.CMEvent) {
	switch e.Type {
	case verbs.CMAddrResolved:
		k.must(e.ID.ResolveRoute(0))
	case verbs.CMRouteResolved:
		p := k.x.p
		p.QP, p.PrivateData = k.qp, blob(10, 0)
		k.must(e.ID.Connect(p))
	case verbs.CMConnectRequest:
		if k.id != nil || !bytes.Equal(e.Param.PrivateData, blob(10, 0)) {
			k.fail("a request with %x", e.Param.PrivateData)
		}
		p := k.x.p
		p.QP, p.PrivateData = k.qp, blob(6, 1)
		k.id = e.ID
		k.must(e.ID.Accept(p))
	case verbs.CMEstablished:
		if k.i == 0 && !bytes.Equal(e.Param.PrivateData, blob(6, 1)) {
			k.fail("accepted with %x", e.Param.PrivateData)
		}
		if k.open || k.over || k.qp.State() != verbs.StateRTS {
			k.fail("established: open %v, over %v, state %v", k.open, k.over, k.qp.State())
		}
		k.open = true
	case verbs.CMDisconnected:
		if !k.open || k.over || k.qp.State() != verbs.StateErr {
			k.fail("disconnected: open %v, over %v, state %v, %v", k.open, k.over, k.qp.State(), e.Err)
		}
		k.over = true
	case verbs.CMConnectError, verbs.CMUnreachable, verbs.CMRejected:
		if k.open || k.over || e.Err == nil {
			k.fail("%v: open %v, over %v, %v", e.Type, k.open, k.over, e.Err)
		}
		k.over = true
	default:
		k.fail("event %v: %v", e.Type, e.Err)
	}
}

func (k *talker) dial() {
	k.task.Sleep(mono.Millisecond) // the other end listens by now
	var err error
	k.id, err = k.cm.CreateID()
	k.must(err)
	k.must(k.id.ResolveAddr(netip.AddrPortFrom(k.peer.task.Node().Addr(), 7), 0))
}

func (k *talker) listen(n *sim.Node) {
	listener, err := k.cm.CreateID()
	k.must(err)
	k.must(listener.BindAddr(netip.AddrPortFrom(n.Addr(), 7)))
	k.must(listener.Listen(1))
}

// memory registers everything.
func (k *talker) memory() {
	ops := len(exchangeOps)
	k.src = k.field(ops*slot, 0)
	k.recv = k.field(ops*slot, verbs.LocalWrite)
	k.dst = k.field(ops*slot, verbs.LocalWrite|verbs.RemoteWrite)
	k.pool = k.field(ops*slot, verbs.RemoteRead)
	k.words = k.field(ops*8, verbs.LocalWrite|verbs.RemoteAtomic)
	k.sink = k.field(ops*slot, verbs.LocalWrite)
	pattern(k.src.b, k.i)
	pattern(k.pool.b, k.i+2)
	for i := range ops {
		putWord(k.words.b[8*i:], uint64(100+i))
	}
	for range exchangeKeys {
		k.keys = append(k.keys, k.field(8, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteInvalidate).RKey())
	}
}

// pattern fills b with bytes that are not 0, and differ from place to place.
func pattern(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7+i>>8*3+seed*31) | 1
	}
}

func (k *talker) field(n int, access verbs.Access) *field {
	f, err := newField(k.pd, n, access)
	k.must(err)
	k.all = append(k.all, f)
	return f
}

// verge is how many canaries are at each end of a field.
const verge = 16

func newField(pd *verbs.PD, n int, access verbs.Access) (f *field, err error) {
	f = &field{all: bytes.Repeat([]byte{canary}, verge+n+verge)}
	f.b = f.all[verge : verge+n : verge+n]
	clear(f.b)
	f.MR, err = pd.RegMR(f.b, access)
	return f, err
}

// intact reports whether the canaries are.
func (f *field) intact() bool {
	for i, b := range f.all {
		if (i < verge || i >= len(f.all)-verge) && b != canary {
			return false
		}
	}
	return true
}

// receives posts what the peer's operations complete, in their order.
func (k *talker) receives() {
	n := 0
	for _, op := range exchangeOps {
		if delivers(op.op) {
			wr := verbs.RecvWR{WRID: uint64(1000 + n), NumSGE: 1}
			wr.SGL[0] = k.recv.SGE(n*slot, slot)
			k.must(k.qp.PostRecv(&wr))
			n++
		}
	}
}

// post posts the next request.
func (k *talker) post() {
	i, op := k.posted, exchangeOps[k.posted]
	wr := verbs.SendWR{WRID: uint64(i), Opcode: op.op, Flags: op.flags | verbs.Signaled, NumSGE: 1}
	wr.SGL[0] = k.src.SGE(i*slot, op.n)
	switch {
	case op.op == verbs.OpRDMARead:
		wr.SGL[0] = k.sink.SGE(i*slot, op.n)
		wr.RKey, wr.RemoteAddr = k.peer.pool.RKey(), k.peer.pool.Addr()+uint64(i*slot)
	case isAtomic(op.op):
		wr.SGL[0] = k.sink.SGE(i*slot, 8)
		wr.RKey, wr.RemoteAddr = k.peer.words.RKey(), k.peer.words.Addr()+uint64(i*8)
		wr.Atomic = verbs.Atomic{Add: 1000, Swap: 2000, Compare: uint64(100 + i)}
	case op.op == verbs.OpRDMAWrite, op.op == verbs.OpRDMAWriteWithImm:
		wr.RKey, wr.RemoteAddr = k.peer.dst.RKey(), k.peer.dst.Addr()+uint64(i*slot)
		wr.ImmData = uint64(i) * 0x0101010101
	case op.op == verbs.OpSendWithInv:
		wr.InvKey = k.peer.keys[i/7] // operations 5 and 7
	}
	k.must(k.qp.PostSend(&wr))
	k.posted++
}

// converse does the operations, and then says goodbye.
func (k *talker) converse() {
	for k.posted <= goodbye {
		k.post()
	}
	k.wait(func() bool { return k.over || k.late || k.done > goodbye })
	if k.over || k.late {
		return
	}
	k.post()
	k.wait(func() bool { return k.over || k.late || k.bye && k.done == k.posted })
}

// end ends the connection, from the dialer's end if all is well.
func (k *talker) end() {
	if k.i == 1 && k.open {
		k.wait(func() bool { return k.over || k.late })
	}
	if k.open && !k.over {
		k.must(k.id.Disconnect())
		k.wait(func() bool { return k.over })
	}
	if k.id != nil {
		k.must(k.id.Destroy())
	}
	k.qp.Destroy()
	k.wait(func() bool { return true })
}

// complete notes a completion, and checks it.
func (k *talker) complete(wc *verbs.WC) {
	if wc.QPNum != k.qp.Num() || wc.Src != nil {
		k.fail("completion %+v", wc)
	}
	if wc.WRID >= 1000 {
		k.received(wc)
		return
	}
	if int(wc.WRID) != k.done || k.done >= k.posted || wc.Opcode != exchangeOps[k.done].op {
		k.fail("completion %+v, and request %d is next of %d", wc, k.done, k.posted)
	}
	k.status = append(k.status, wc.Status)
	k.done++
}

// received checks that a receive holds what the peer has sent, and that what
// comes before that in its order is placed.
func (k *talker) received(wc *verbs.WC) {
	if int(wc.WRID) != 1000+k.got {
		k.fail("completion %+v, and receive %d is next", wc, k.got)
	}
	k.got++
	if wc.Status != verbs.Success {
		if wc.Status != verbs.WRFlushErr {
			k.fail("completion %+v of a receive", wc)
		}
		return
	}
	if k.whole++; k.whole != k.got {
		k.fail("completion %+v behind one that failed", wc)
	}
	i, n := 0, 0 // the operation that it is of
	for ; ; i++ {
		if delivers(exchangeOps[i].op) {
			if n++; n == k.got {
				break
			}
		}
	}
	op := exchangeOps[i]
	want, flags := verbs.OpRecv, verbs.WCFlags(0)
	data := k.peer.src.b[i*slot : i*slot+op.n]
	switch op.op {
	case verbs.OpSendWithInv:
		flags |= verbs.WCWithInv
		if wc.InvKey != k.keys[i/7] {
			k.fail("completion %+v, key %#x ends", wc, k.keys[i/7])
		}
	case verbs.OpRDMAWriteWithImm:
		want, flags, data = verbs.OpRecvRDMAWithImm, verbs.WCWithImm, nil
		if wc.ImmData != uint64(i)*0x0101010101 {
			k.fail("completion %+v of operation %d", wc, i)
		}
	}
	if op.flags&verbs.Solicited != 0 {
		flags |= verbs.WCWithSolicited
	}
	if wc.Opcode != want || wc.Flags != flags || want == verbs.OpRecv && int(wc.ByteLen) != op.n {
		k.fail("completion %+v of operation %d, want %v with flags %#x", wc, i, want, flags)
	}
	if !bytes.Equal(k.recv.b[(k.got-1)*slot:][:len(data)], data) {
		k.fail("operation %d brings %x, want %x", i, k.recv.b[(k.got-1)*slot:][:len(data)], data)
	}
	for j := range i {
		if o := exchangeOps[j]; o.op == verbs.OpRDMAWrite || o.op == verbs.OpRDMAWriteWithImm {
			if !bytes.Equal(k.dst.b[j*slot:][:o.n], k.peer.src.b[j*slot:][:o.n]) {
				k.fail("operation %d is delivered, and the Write before it, %d, is not there", i, j)
			}
		}
	}
	k.bye = i == len(exchangeOps)-1
}

// check checks what is left when all is over.
func (k *talker) check(orderly bool) {
	k.x.t.Helper()
	if k.done != k.posted {
		k.fail("%d of %d requests are complete", k.done, k.posted)
	}
	failed, blamed := false, false
	for i, s := range k.status {
		switch {
		case s == verbs.Success && !failed:
			k.checkDone(i)
		case s == verbs.RetryExcErr && !blamed:
			failed, blamed = true, true
		case s == verbs.WRFlushErr:
			failed = true
		default:
			k.fail("requests end with %v", k.status)
		}
	}
	if orderly && (!k.bye || k.posted != len(exchangeOps) || failed) {
		k.fail("%d of %d requests posted, they end with %v, goodbye %v", k.posted, len(exchangeOps), k.status, k.bye)
	}
	k.checkMemory()
}

// checkMemory checks all that the peer may have changed: an operation that has
// not ended may have placed some of its bytes.
func (k *talker) checkMemory() {
	k.x.t.Helper()
	recvs := 0
	for i, op := range exchangeOps {
		at := i * slot
		var sent, written, read []byte
		switch op.op {
		case verbs.OpSend, verbs.OpSendWithInv:
			sent = k.peer.src.b[at:][:op.n]
		case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
			written = k.peer.src.b[at:][:op.n]
		case verbs.OpRDMARead:
			read = k.peer.pool.b[at:][:op.n]
		}
		k.within(k.dst, at, written)
		if delivers(op.op) {
			k.within(k.recv, recvs*slot, sent)
			recvs++
		}
		if isAtomic(op.op) {
			k.checkWord(i)
		} else {
			k.within(k.sink, at, read)
		}
	}
	if k.got != recvs {
		k.fail("%d of %d receives are complete", k.got, recvs)
	}
	for _, f := range k.all {
		if !f.intact() {
			k.fail("memory around a region of %d bytes has changed", len(f.b))
		}
	}
}

// within checks that each byte of the slot at off is that of want, or untouched.
func (k *talker) within(f *field, off int, want []byte) {
	for i, x := range f.b[off : off+slot] {
		if x != 0 && (i >= len(want) || x != want[i]) {
			k.fail("byte %d of the slot at %d is %#x", i, off, x)
		}
	}
}

// checkDone checks what a request that has succeeded has brought.
func (k *talker) checkDone(i int) {
	switch op := exchangeOps[i]; {
	case op.op == verbs.OpRDMARead:
		if !bytes.Equal(k.sink.b[i*slot:][:op.n], k.peer.pool.b[i*slot:][:op.n]) {
			k.fail("Read %d has brought %x", i, k.sink.b[i*slot:][:op.n])
		}
	case isAtomic(op.op):
		if got := word(k.sink.b[i*slot:]); got != uint64(100+i) || word(k.peer.words.b[8*i:]) == got {
			k.fail("atomic %d has found %d, and left %d", i, got, word(k.peer.words.b[8*i:]))
		}
	}
}

// checkWord checks that the peer's atomic has changed a word as it should, once,
// or not at all.
func (k *talker) checkWord(i int) {
	got, before := word(k.words.b[8*i:]), uint64(100+i)
	after := map[verbs.Opcode]uint64{
		verbs.OpAtomicFetchAndAdd: before + 1000, verbs.OpAtomicSwap: 2000, verbs.OpAtomicCmpAndSwp: 2000,
	}[exchangeOps[i].op]
	if got != before && got != after {
		k.fail("word %d is %d", i, got)
	}
}
