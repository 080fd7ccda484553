package inet_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

// What is sent from any source port is from the endpoint's address, whole, and each number is
// another port, in the upper half.
func TestSource_ports(t *testing.T) {
	const first = 18700
	for _, ip := range [][2]string{{"10.77.0.1", "10.77.0.2"}, {"fd00::1", "fd00::2"}} {
		a, b := netip.AddrPortFrom(netip.MustParseAddr(ip[0]), first+511), netip.AddrPortFrom(netip.MustParseAddr(ip[1]), first)
		var wire []byte
		portA, portB, err := conform.NewPipe(conform.PipeConfig{Wire: func(f []byte) []byte { wire = f; return f }})
		if err != nil {
			t.Fatal(err)
		}
		hops := inet.Fixed{a.Addr(): {MAC: macA, MTU: 9000}, b.Addr(): {MAC: macB, MTU: 9000}}
		from, err := inet.New(inet.Config{Port: portA, Resolver: hops, Local: a, MAC: macA, FirstPort: first})
		if err != nil {
			t.Fatal(err)
		}
		to, err := inet.New(inet.Config{Port: portB, Resolver: hops, Local: b, MAC: macB, FirstPort: first})
		if err != nil {
			t.Fatal(err)
		}
		path, err := from.Resolve(b)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint16]bool{}
		tx, rx := fabric.NewBatch(2, fabric.MaxBufs), fabric.NewBatch(8, fabric.MaxBufs)
		at := from.Caps().Headroom
		for k := range 2 * fabric.SourcePorts {
			tx.Reset()
			for range 1 + k%2 { // one datagram takes another way than several
				f, _ := from.Frame()
				p := fabric.Packet{To: path, Source: uint8(k / 2), Sealed: k%3 == 0}
				tx.Add(p, fabric.Desc{Addr: f + mem.Addr(at), Len: 5})
				copy(from.Arena().At(f+mem.Addr(at), 5), "hello")
			}
			from.Send(tx)
			from.Flush()
			portAt := 34
			if a.Addr().Is6() {
				portAt = 54
			}
			port := binary.BigEndian.Uint16(wire[portAt:])
			seen[port] = true
			if (port >= 1<<15) != (k/2 != 0) {
				t.Errorf("%v: number %d is port %d", a, k/2, port)
			}
			if n := to.Recv(rx); n != 1+k%2 || rx.Pkts[0].From != fabric.RemoteOf(a) {
				t.Fatalf("%v: %d datagrams of number %d arrive, from %v: %+v", a, n, k/2, rx.Pkts, to.Stats())
			}
			to.Release(rx)
		}
		if len(seen) != fabric.SourcePorts {
			t.Errorf("%v: %d ports, want %d", a, len(seen), fabric.SourcePorts)
		}
		_, _ = from.Close(), to.Close()
	}
}
