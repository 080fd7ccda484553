package verbs_test

import (
	"testing"

	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
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
