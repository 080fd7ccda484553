package llp

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestHelloSize_path: what the path carries is found, and raised soon after the
// path gets better, be there traffic or not.
func TestHelloSize_path(t *testing.T) {
	for _, c := range []struct {
		path, want int // bytes of payload
		within     mono.Duration
		busy       bool
	}{
		{1472, 1472, 300 * ms, false},
		{1472, 1472, 300 * ms, true},
		{1232, 1232, 2500 * ms, false},
		{4000, 1472, 300 * ms, false},
	} {
		t.Run(fmt.Sprintf("%d busy %v", c.path, c.busy), func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair()
			r.path = c.path
			pa := a.to(b)
			r.run(c.within, ms)
			pb := b.peer(a)
			if pa.most != uint16(c.want) || pb.most != uint16(c.want) || !pa.measured {
				t.Fatalf("payload is %d and %d after %v, want %d", pa.most, pb.most, c.within, c.want)
			}
			r.run(20*mono.Second, ms)
			if pa.Closed() || pb.Closed() || pa.most != uint16(c.want) {
				t.Fatal("the association did not last")
			}
			r.path = 1 << 16
			for i := range 70 {
				if c.busy {
					a.send(pa, uint64(i))
				}
				r.run(100*ms, ms)
			}
			if pa.most != 8972 || pb.most != 8972 {
				t.Errorf("payload is %d and %d after the path got better", pa.most, pb.most)
			}
			from := r.now
			r.run(20*mono.Second, ms)
			for i := range r.seen {
				if x := &r.seen[i]; x.at > from && len(x.payload) > shortHello {
					t.Fatalf("a datagram of %d bytes, type %d, though all is known", len(x.payload), x.h.Type)
				}
			}
		})
	}
}

// TestHelloSize_late: a peer that comes late is talked to in full datagrams at
// once all the same.
func TestHelloSize_late(t *testing.T) {
	r := newRig(t)
	a := r.open(1, 1, 0, dgram.Config{})
	b := &side{rig: r, addr: addrOf(2)}
	pa := a.to(b)
	r.run(10*mono.Second, ms)
	b = r.open(2, 2, 0, dgram.Config{})
	r.run(1100*ms, ms) // a asks once a second by now
	if !pa.Open() || pa.most != 8972 || b.peer(a).most != 8972 {
		t.Errorf("open %v, payload %d", pa.Open(), pa.most)
	}
}

// TestAnswered_smallerPeer: no side sends more than the other takes.
func TestAnswered_smallerPeer(t *testing.T) {
	r := newRig(t)
	r.path = 1472 // between MTU 9000 and MTU 1500
	a, b := r.open(1, 1, 8972, dgram.Config{}), r.open(2, 2, 1472, dgram.Config{})
	pa := a.to(b)
	r.run(mono.Second, ms)
	pb := b.peer(a)
	if pa.most != 1472 || pb.most != 1472 || pa.goal != 1472 {
		t.Fatalf("payload %d and %d, goal %d", pa.most, pb.most, pa.goal)
	}
	from := r.now
	r.run(30*mono.Second, 10*ms)
	for i := range r.seen {
		if x := &r.seen[i]; x.at > from && len(x.payload) > 1472 {
			t.Fatalf("a datagram of %d bytes", len(x.payload))
		}
	}
	if pa.MaxULPDU() != 1472-dgram.HeaderLen-dgram.LengthLen {
		t.Errorf("ULPDUs of %d bytes", pa.MaxULPDU())
	}
}

// TestNew_tooSmall: a carrier that cannot carry what every path does is refused.
func TestNew_tooSmall(t *testing.T) {
	r := newRig(t)
	if _, err := New(r.net.Open(addrOf(1), basePayload-1), Config{Epoch: 1}, 0); err == nil {
		t.Error("no error")
	}
	if _, err := New(r.net.Open(addrOf(1), basePayload), Config{}, 0); err == nil {
		t.Error("no error without an epoch")
	}
}
