package shm

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// TestMain lets the test binary be the process that TestCrash kills, and the
// neighbour of the tests of channels.
func TestMain(m *testing.M) {
	if role := os.Getenv(neighbourEnv); role != "" {
		neighbour(role)
	}
	if to := os.Getenv(victimEnv); to != "" {
		victim(to)
	}
	os.Exit(m.Run())
}

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func newArena(t testing.TB, size int) *mem.Arena {
	t.Helper()
	a, err := mem.New(mem.Config{Size: size, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, a)
	return a
}

func open(t testing.TB, c Config) *Datagram {
	t.Helper()
	if c.Arena == nil {
		c.Arena = newArena(t, 16<<20)
	}
	if !c.Local.IsValid() {
		c.Local = loopback
	}
	c.Track = true
	e, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, e)
	return e
}

func resolve(t testing.TB, e *Datagram, to netip.AddrPort) fabric.Path {
	t.Helper()
	p, err := e.Resolve(to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends one datagram of n bytes that begins with number.
func send(e *Datagram, to fabric.Path, number uint64, n int) {
	b := fabric.NewBatch(1, fabric.MaxBufs)
	b.Pkts = append(b.Pkts, fabric.Packet{Len: int32(n), To: to})
	for left := n; left > 0 || len(b.Descs) == 0; left -= mem.FrameSize {
		f, ok := e.Frame()
		if !ok {
			panic("no frame")
		}
		b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: uint32(min(left, mem.FrameSize))})
		for i := range e.arena.At(f, mem.FrameSize) {
			e.arena.At(f, mem.FrameSize)[i] = byte(number)
		}
	}
	binary.BigEndian.PutUint64(e.arena.At(b.Descs[0].Addr, 8), number)
	b.Pkts[0].Bufs = int32(len(b.Descs))
	e.Send(b)
	e.Flush()
}

// got is a datagram that arrived.
type got struct {
	number uint64
	size   int
	from   netip.AddrPort
	whole  bool // all bytes behind the number are as send made them
}

// poll takes what is there.
func poll(e *Datagram) []got {
	var all []got
	b := fabric.NewBatch(64, 1)
	for e.Recv(b) > 0 {
		for i, p := range b.Pkts {
			data := e.arena.At(b.Descs[i].Addr, int(b.Descs[i].Len))
			g := got{size: len(data), from: p.From.AddrPort(), whole: true}
			if len(data) >= 8 {
				g.number = binary.BigEndian.Uint64(data)
				for _, x := range data[8:] {
					g.whole = g.whole && x == byte(g.number)
				}
			}
			all = append(all, g)
		}
		e.Release(b)
	}
	return all
}

// await waits for n datagrams.
func await(e *Datagram, n int) []got {
	var all []got
	for len(all) < n {
		all = append(all, poll(e)...)
		runtime.Gosched()
	}
	return all
}
