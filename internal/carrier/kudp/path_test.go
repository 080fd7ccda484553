package kudp

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// TestPieces_verdicts plays cards that cut rightly and wrongly: what was sent in pieces
// is lost always, never, or for a while.
func TestPieces_verdicts(t *testing.T) {
	for _, c := range []struct {
		name           string
		lost           func(sent int) bool // an aggregate that goes out when so many datagrams had
		leastCut, most int                 // of 100,000 datagrams, those that went in pieces
	}{
		{"good", func(int) bool { return false }, 100_000, 100_000},
		{"bad", func(int) bool { return true }, 64, 2000},
		{"bad for a while", func(sent int) bool { return sent < 10_000 }, 70_000, 95_000},
		{"every third aggregate is lost", func(sent int) bool { return sent/16%3 == 0 }, 100_000, 100_000},
	} {
		var p pieces
		cut := 0
		for sent := 0; sent < 100_000; sent += 16 {
			if p.alone > 0 {
				for range 16 {
					p.sent(1)
				}
				continue
			}
			cut += 16
			p.sent(16)
			if c.lost(sent) {
				for range 16 {
					p.again++
					p.sent(1)
				}
			}
		}
		if cut < c.leastCut || cut > c.most {
			t.Errorf("%s: %d of 100,000 datagrams went in pieces, want %d to %d", c.name, cut, c.leastCut, c.most)
		}
	}
}

// TestGroup_again: what is sent again goes by itself, and so does all to a destination
// whose card is at fault; others are not affected.
func TestGroup_again(t *testing.T) {
	first := fabric.Packet{Len: 10, Bufs: 1}
	again, other := first, first
	again.Again, other.To = true, 1
	for _, c := range []struct {
		pkts  []fabric.Packet
		alone int32 // of destination 0
		want  []int
	}{
		{[]fabric.Packet{first, first, again, again, first, first}, 0, []int{2, 1, 1, 2}},
		{[]fabric.Packet{first, first, other, other}, 9, []int{1, 1, 2}},
	} {
		s := queue(t, nil)
		s.states[0].pieces.alone = c.alone
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
