package verbs_test

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
)

// A peer that ends one message twice, and both before what comes before them,
// gets one completion: more would overrun the completion queue.
func TestSend_endsOnceWhateverThePeerSays(t *testing.T) {
	x := newBench(t, 1500, 1, 4096)
	for i := range 4 {
		x.a.recv(t, i*100, 100)
	}
	l := newLiar(t, x)
	seg := func(last bool, mo uint32) ddp.Header {
		return ddp.Header{Last: last, ULP: rdmap.Control(rdmap.Send), MSN: 5, MO: mo}
	}
	l.say(1, seg(false, 0), make([]byte, 10))
	for i := range 20 {
		l.say(2+i, seg(true, 10), make([]byte, 10))
	}
	l.move()
	l.say(0, ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Send), MSN: 4}, nil)
	l.move()
	x.a.qp.Destroy()
	if n := x.a.rcq.Len(); n != 4 {
		t.Errorf("4 receives made %d completions", n)
	}
}

// What is read of memory that is not granted any more is not sent, also when
// the answer shares a datagram with another one.
func TestRDMARead_revokedInASharedDatagram(t *testing.T) {
	x := newBench(t, 1500, 2, 1<<20)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	small := remote(t, b, 64)
	secret := remote(t, b, 64)
	read := func(dst verbs.SGE, mr *verbs.MR) {
		wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: a.ah, RemoteAddr: mr.Addr(), RKey: mr.RKey()}
		wr.NumSGE, wr.SGL = sge(dst)
		must(t, a.qp.PostSend(&wr))
	}
	read(a.mr.SGE(4096, 1<<19), b.mr)
	read(a.mr.SGE(0, 64), small)
	read(a.mr.SGE(64, 64), secret)
	a.ctx.Engine().Step()
	b.ctx.Engine().Step() // the answers wait in line behind the long one
	mem := secret.Bytes()
	must(t, secret.Dereg())
	copy(mem, bytes.Repeat([]byte{0xee}, 64))
	x.run(100 * mono.Millisecond)
	if bytes.Contains(a.mr.Bytes()[:256], []byte{0xee}) {
		t.Error("memory was read after its registration had ended")
	}
}
