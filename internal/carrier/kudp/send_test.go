package kudp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// queue makes a sender with datagrams of the given sizes, each to the path and
// in the number of buffers given.
func queue(t *testing.T, pkts []fabric.Packet) *Socket {
	t.Helper()
	s := open(t, Config{})
	for range 4 { // paths to anywhere
		s.paths = append(s.paths, rawAddrOf(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
		s.states = append(s.states, pathState{})
	}
	for _, p := range pkts {
		b := fabric.Batch{Pkts: []fabric.Packet{p}}
		for range p.Bufs {
			f, _ := s.Frame()
			b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: uint32(p.Len / p.Bufs)})
		}
		s.Send(&b)
	}
	return s
}

func TestGroup(t *testing.T) {
	pkt := func(n, to, bufs int) fabric.Packet {
		return fabric.Packet{Len: int32(n), To: fabric.Path(to), Bufs: int32(bufs)}
	}
	repeat := func(n int, p fabric.Packet) []fabric.Packet {
		list := make([]fabric.Packet, n)
		for i := range list {
			list[i] = p
		}
		return list
	}
	for _, c := range []struct {
		name string
		pkts []fabric.Packet
		want string // datagrams x segment size of each message
	}{
		{"nothing", nil, ""},
		{"one", repeat(1, pkt(100, 0, 1)), "1"},
		{"equal", repeat(5, pkt(100, 0, 1)), "5x100"},
		{"shorter at the end", []fabric.Packet{pkt(100, 0, 1), pkt(100, 0, 1), pkt(7, 0, 1)}, "3x100"},
		{"shorter in the middle", []fabric.Packet{pkt(100, 0, 1), pkt(7, 0, 1), pkt(100, 0, 1)}, "2x100 1"},
		{"longer", []fabric.Packet{pkt(7, 0, 1), pkt(100, 0, 1), pkt(100, 0, 1)}, "1 2x100"},
		{"other path", []fabric.Packet{pkt(9, 0, 1), pkt(9, 0, 1), pkt(9, 1, 1), pkt(9, 0, 1)}, "2x9 1 1"},
		{"empty", []fabric.Packet{pkt(0, 0, 1), pkt(0, 0, 1), pkt(9, 0, 1), pkt(0, 0, 1)}, "1 1 1 1"},
		{"64 KiB at most", repeat(10, pkt(9000, 0, 3)), "7x9000 3x9000"},
		{"64 segments at most", repeat(64, pkt(1, 0, 1)), "64x1"},
	} {
		s := queue(t, c.pkts)
		for _, gso := range []bool{true, false} {
			s.tx.gso = gso
			var got []string
			at := 0
			for i := range s.tx.group(s.paths) {
				m, n := &s.tx.msgs[i], s.tx.count[i]
				if n == 1 {
					got = append(got, "1")
				} else {
					got = append(got, fmt.Sprintf("%dx%d", n, int(s.tx.ctrls[i].value[0])|int(s.tx.ctrls[i].value[1])<<8))
				}
				if (n > 1) != (m.Controllen > 0) {
					t.Errorf("%s: message %d of %d datagrams has a control message of %d bytes", c.name, i, n, m.Controllen)
				}
				bufs := 0
				for range n {
					bufs += int(s.tx.pkts[at].bufs)
					at++
				}
				if bufs != int(m.Iovlen) {
					t.Errorf("%s: message %d has %d buffers, want %d", c.name, i, m.Iovlen, bufs)
				}
			}
			want := c.want
			if !gso {
				want = strings.TrimSpace(strings.Repeat("1 ", len(c.pkts)))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s, GSO %v: messages %q, want %q", c.name, gso, s, want)
			}
		}
	}
}

func TestBlame(t *testing.T) {
	for _, c := range []struct {
		errno               unix.Errno
		gso                 bool
		goOn                bool
		unreachable, errors uint64
		left                int
	}{
		{unix.EAGAIN, true, false, 0, 0, 3},
		{unix.ENOBUFS, true, false, 0, 0, 3},
		{unix.EINTR, true, true, 0, 0, 3},
		{unix.EHOSTUNREACH, true, true, 3, 0, 0},
		{unix.ENETUNREACH, false, true, 1, 0, 2},
		{unix.EMSGSIZE, false, true, 0, 1, 2},
		{unix.EPERM, true, true, 0, 3, 0},
		{unix.EIO, true, true, 0, 0, 3}, // go on without GSO
		{unix.EIO, false, true, 0, 1, 2},
	} {
		p := fabric.Packet{Len: 10, Bufs: 2}
		s := queue(t, []fabric.Packet{p, p, p})
		free := s.pool.Free()
		s.tx.gso = c.gso
		s.tx.group(s.paths)
		goOn := s.blame(c.errno)
		left := s.tx.end - s.tx.next
		if goOn != c.goOn || s.stats.TxUnreachable != c.unreachable || s.stats.TxErrors != c.errors || left != c.left {
			t.Errorf("%v, GSO %v: go on %v, stats %+v, %d datagrams left", c.errno, c.gso, goOn, s.stats, left)
		}
		if back := s.pool.Free() - free; back != 2*(3-left) {
			t.Errorf("%v: %d frames came back for %d datagrams", c.errno, back, 3-left)
		}
		if c.errno == unix.EIO && s.tx.gso {
			t.Error("EIO leaves GSO on")
		}
	}
}

func TestFlush_unreachable(t *testing.T) {
	hosts := newHosts(t)
	s := openOn(t, hosts[0], Config{})
	to, err := s.Resolve(netip.AddrPortFrom(hosts[1].Addr, 4791))
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(5, 1)
	send(s, b, to, 5, 100)
	if err := hosts[0].SetUp(false); err != nil {
		t.Fatal(err)
	}
	send(s, b, to, 5, 100)
	if st := s.Stats(); st.TxPackets != 5 || st.TxUnreachable != 5 {
		t.Errorf("5 sent while the link was up, 5 while it was down: %+v", st)
	}
	if free := s.pool.Free(); free != s.pool.Cap() {
		t.Errorf("%d frames are missing", s.pool.Cap()-free)
	}
}

func TestSend_refuses(t *testing.T) {
	s := open(t, Config{MTU: 1500})
	to, err := s.Resolve(s.Local())
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(70, 1)
	send(s, b, to, 1, 1473) // larger than a packet
	send(s, b, to, 70, 10)  // more than TxRoom
	if st := s.Stats(); st.TxErrors != 7 || st.TxPackets != txDepth {
		t.Errorf("stats %+v, want 7 errors and %d sent", st, txDepth)
	}
	if free := s.pool.Free(); free != s.pool.Cap() {
		t.Errorf("%d frames are missing", s.pool.Cap()-free)
	}
}

func TestAllocs_socket(t *testing.T) {
	s := open(t, Config{})
	to, err := s.Resolve(s.Local())
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(16, 1)
	n := testing.AllocsPerRun(100, func() {
		send(s, b, to, 16, 100)
		for got := 0; got < 16; {
			got += s.Recv(b)
			s.Release(b)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}
