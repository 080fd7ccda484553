package kudp

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// TestGroup_again: what is sent again goes by itself, and so does all to a destination
// whose card is at fault; others are not affected.
func TestGroup_again(t *testing.T) {
	first := fabric.Packet{Len: 10, Bufs: 1}
	again, other := first, first
	again.Again, other.To = true, 1
	for _, c := range []struct {
		pkts  []fabric.Packet
		alone bool // all to destination 0
		want  []int
	}{
		{[]fabric.Packet{first, first, again, again, first, first}, false, []int{2, 1, 1, 2}},
		{[]fabric.Packet{first, first, other, other}, true, []int{1, 1, 2}},
	} {
		s := queue(t, nil)
		if p := &s.states[0].pieces; c.alone {
			for range 64 {
				p.Again()
			}
			p.Sent(64)
		}
		b := &fabric.Batch{Pkts: c.pkts}
		for i := range c.pkts {
			f, _ := s.Frame()
			c.pkts[i].First = int32(i)
			b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: 10})
		}
		s.Send(b)
		msgs := s.tx.group(s.paths)
		if msgs != len(c.want) {
			t.Fatalf("%d messages, want %v", msgs, c.want)
		}
		for i, n := range c.want {
			if s.tx.count[i] != n {
				t.Errorf("message %d has %d datagrams, want %d", i, s.tx.count[i], n)
			}
		}
	}
}

// TestBack_bounded: strangers take no more places than there are at a time, and what is
// queued for one that is dropped goes to nobody else.
func TestBack_bounded(t *testing.T) {
	s := open(t, Config{})
	local := s.Local()
	known, err := s.Resolve(local)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, 1)
	for i := range 10_000 {
		p, ok := s.Back(fabric.RemoteOf(netip.AddrPortFrom(local.Addr(), uint16(1+i))), 0)
		if !ok {
			t.Fatal("no path back")
		}
		if p == known {
			continue
		}
		f, _ := s.Frame()
		b.Reset()
		b.Add(fabric.Packet{To: p}, fabric.Desc{Addr: f, Len: 1})
		s.Send(b)
		s.Drop(p)
		q, _ := s.Back(fabric.RemoteOf(netip.MustParseAddrPort("127.0.0.9:9")), 0)
		if q == p {
			t.Fatal("the number of a path is used again while something is queued for it")
		}
		s.Flush()
		s.Drop(q)
	}
	if len(s.paths) > 4 || len(s.byAddr) != 1 {
		t.Errorf("%d paths, %d addresses", len(s.paths), len(s.byAddr))
	}
	s.Drop(known)
	if p, _ := s.Back(fabric.RemoteOf(local), 0); p != known {
		t.Error("a path that was resolved is dropped")
	}
	p, _ := s.Back(fabric.RemoteOf(netip.MustParseAddrPort("127.0.0.9:9")), 0)
	s.Trust(p, 0)
	s.Drop(p)
	if q, err := s.Resolve(netip.MustParseAddrPort("127.0.0.9:9")); err != nil || q != p {
		t.Errorf("a path that is trusted is dropped: %d, %v", q, err)
	}
	for _, bad := range []string{"[::1]:9", "0.0.0.0:9", "224.0.0.1:9", "127.0.0.1:0"} {
		if _, ok := s.Back(fabric.RemoteOf(netip.MustParseAddrPort(bad)), 0); ok {
			t.Errorf("there is a way to %s", bad)
		}
	}
}
