package sim_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/sim"
)

// udp opens a UDP endpoint on every node.
func udp(t *testing.T, nodes []*sim.Node, mtu int) []*inet.Datagram {
	t.Helper()
	hops := inet.Fixed{}
	for _, n := range nodes {
		hops[n.Addr()] = inet.Hop{MAC: n.MAC(), Source: n.Addr(), MTU: mtu}
	}
	ends := make([]*inet.Datagram, len(nodes))
	for i, n := range nodes {
		port, err := n.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		ends[i], err = inet.New(inet.Config{Port: port, Resolver: hops, MAC: n.MAC(), Local: netip.AddrPortFrom(n.Addr(), 4791)})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// sendNumber sends a datagram of size bytes that all follow from its number.
func sendNumber(e *inet.Datagram, to fabric.Path, b *fabric.Batch, number uint32, size int) bool {
	b.Reset()
	for off := 0; off < size; {
		addr, ok := e.Frame()
		if !ok {
			for _, d := range b.Descs {
				e.Unframe(d.Addr)
			}
			return false
		}
		addr += inet.Headroom
		buf := e.Arena().At(addr, min(size-off, mem.FrameSize-inet.Headroom))
		for i := range buf {
			buf[i] = byte(number + uint32(off+i))
		}
		if off == 0 {
			binary.BigEndian.PutUint32(buf, number)
		}
		off += len(buf)
		b.Descs = append(b.Descs, fabric.Desc{Addr: addr, Len: uint32(len(buf)), Flags: fabric.More})
	}
	b.Descs[len(b.Descs)-1].Flags = 0
	b.Pkts = append(b.Pkts, fabric.Packet{Bufs: int32(len(b.Descs)), Len: int32(size), To: to})
	e.Send(b)
	return true
}

// readNumber checks the i-th datagram of b and returns its number.
func readNumber(e *inet.Datagram, b *fabric.Batch, i int) (uint32, error) {
	p := b.Pkts[i]
	var payload []byte
	for _, d := range b.Descs[p.First : p.First+p.Bufs] {
		payload = append(payload, e.Arena().At(d.Addr, int(d.Len))...)
	}
	number := binary.BigEndian.Uint32(payload)
	for j, got := range payload[4:] {
		if got != byte(number+uint32(j+4)) {
			return number, fmt.Errorf("datagram %d of %d bytes is wrong at %d", number, len(payload), j+4)
		}
	}
	return number, nil
}

func TestPort_carriesUDP(t *testing.T) {
	const count, mtu = 2000, 9000
	w := sim.New(sim.Config{Seed: 6, MTU: mtu, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.1, Dup: 0.1, Reorder: 0.1}}})
	nodes := w.Nodes(2)
	ends := udp(t, nodes, mtu)
	seen := make([]int, count)
	w.Go(nodes[0], "sender", func(task *sim.Task) error {
		to, err := ends[0].Resolve(ends[1].Local())
		if err != nil {
			return err
		}
		b := fabric.NewBatch(1, fabric.MaxBufs)
		for i := uint32(0); i < count; {
			if ends[0].TxRoom() > 0 && sendNumber(ends[0], to, b, i, 4+task.Rand().IntN(mtu-32)) {
				i++
			} else {
				task.Park(task.Now().Add(mono.Microsecond), 0)
			}
			ends[0].Flush()
		}
		task.Sleep(mono.Second)
		return ends[0].Close()
	})
	w.Go(nodes[1], "receiver", func(task *sim.Task) error {
		b := fabric.NewBatch(16, fabric.MaxBufs)
		for task.Now() < mono.Time(mono.Second) {
			for ends[1].Recv(b) > 0 {
				for i := range b.Pkts {
					number, err := readNumber(ends[1], b, i)
					if err != nil {
						return err
					}
					seen[number]++
				}
				ends[1].Release(b)
			}
			ends[1].Flush()
			task.Park(mono.Time(mono.Second), 0)
		}
		return ends[1].Close()
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	checkCounts(t, nodes[0].Up.Stats(), ends[1].Stats(), seen)
}

// checkCounts compares what arrived with what the link says it did.
func checkCounts(t *testing.T, link sim.LinkStats, end fabric.DatagramStats, seen []int) {
	missing, twice := 0, 0
	for _, n := range seen {
		switch n {
		case 0:
			missing++
		case 1:
		case 2:
			twice++
		default:
			t.Fatalf("a datagram arrived %d times", n)
		}
	}
	if missing == 0 || missing > int(link.Lost) {
		t.Errorf("%d datagrams are missing; %d were lost", missing, link.Lost)
	}
	if twice == 0 || twice > int(link.Dup) {
		t.Errorf("%d datagrams arrived twice; %d were doubled", twice, link.Dup)
	}
	if end.RxChecksum+end.RxMalformed+end.RxDropped != 0 {
		t.Errorf("the endpoint threw datagrams away: %+v", end)
	}
}
