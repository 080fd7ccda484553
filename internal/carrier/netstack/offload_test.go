package netstack

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/gso"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

const (
	virtioLen = 10 // of struct virtio_net_hdr
	needsSum  = 1
)

// device is what a packet socket leads to: it looks at the packets of a, and passes them on to b whole, as a veth does.
type device struct {
	p            *pair
	fd           int
	packets, big int
}

func offloading(p *pair) *device {
	p.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	p.a.out.offload, p.b.local = gso.To(fds[0]), true
	p.t.Cleanup(func() { unix.Close(fds[1]) })
	return &device{p: p, fd: fds[1]}
}

// carry passes on what a has sent.
func (d *device) carry() {
	t, port := d.p.t, d.p.ports[1]
	var b [1 << 17]byte
	for {
		n, err := unix.Read(d.fd, b[:])
		if err != nil {
			return
		}
		order, frame := binary.NativeEndian, b[virtioLen:n]
		head, from := int(order.Uint16(b[2:])), int(order.Uint16(b[6:]))
		size, kind := inet.EthernetLen+inet.IPv4Len, byte(gso.TCP4)
		if frame[inet.EthernetLen]>>4 == 6 {
			size, kind = inet.EthernetLen+inet.IPv6Len, byte(gso.TCP6)
		}
		rest := len(frame) - from
		if b[0] != needsSum || b[1] != kind || from != size || head != from+int(frame[from+12]>>4)*4 || order.Uint16(b[8:]) != tcpChecksumAt ||
			int(order.Uint16(b[4:]))+head > inet.EthernetLen+port.mtu || len(frame) <= inet.EthernetLen+port.mtu {
			t.Fatalf("a packet of %d bytes behind %x", len(frame), b[:virtioLen])
		}
		if sum := d.p.b.family.pseudo(frame[inet.EthernetLen:from], rest).Add(frame[from:]); d.packets == 0 && sum.Good() {
			t.Error("the checksum is complete: the device would add to it once more")
		}
		d.packets++
		d.big = max(d.big, len(frame))
		for len(frame) > 0 {
			buf := frame[:min(len(frame), mem.FrameSize-256)]
			frame = frame[len(buf):]
			desc := fabric.Desc{Addr: port.take(buf), Len: uint32(len(buf))}
			if len(frame) > 0 {
				desc.Flags = fabric.More
			}
			port.rx = append(port.rx, desc)
		}
	}
}

// What is more than a frame leaves as one packet, which says how it is to be cut, behind all that was sent before.
func TestSend_whole(t *testing.T) {
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			var clock looks // no segment is late because the machine was busy
			p := newPair(t, 1500, func(c *Config) {
				if c.Clock = &clock; family != nil {
					family(c)
				}
			})
			a, b := p.connect()
			d := offloading(p)
			said := make([]byte, 1<<20)
			for i := range said {
				said[i] = byte(i * 7 >> 3)
			}
			buf := make([]byte, len(said))
			sent, heard := a.Send([][]byte{said[:100]}), 0
			for heard < len(said) {
				sent += a.Send([][]byte{said[sent:]})
				p.a.Flush()
				d.carry()
				p.ready = p.b.Poll(clock.Now(), p.ready[:0])
				n, _ := b.Recv(buf[heard:])
				heard += n
				p.b.Flush()
				p.ready = p.a.Poll(clock.Now(), p.ready[:0])
			}
			if string(buf) != string(said) {
				t.Error("other bytes have arrived")
			}
			if d.packets == 0 || d.big < 1<<15 {
				t.Errorf("%d packets, the longest of %d bytes", d.packets, d.big)
			}
			if p.b.malformed > 0 {
				t.Errorf("%d were refused", p.b.malformed)
			}
		})
	}
}

// What the socket does not take goes in frames, at once.
func TestSend_cutsWhatTheSocketRefuses(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	p.a.out.offload = gso.To(-1)
	t.Cleanup(func() { p.a.out.offload = nil })
	const segments, payload = 8, 1500 - inet.IPv4Len - 20
	before := p.ports[0].stats.TxFrames
	sent := a.Send([][]byte{make([]byte, segments*payload)})
	p.a.Flush()
	if n := p.ports[0].stats.TxFrames - before; sent != segments*payload || n < segments {
		t.Fatalf("%d bytes have left in %d frames, want %d in %d at least", sent, n, segments*payload, segments)
	}
	buf := make([]byte, sent)
	heard := 0
	p.until(func() bool {
		n, _ := b.Recv(buf[heard:])
		heard += n
		return heard == sent
	})
	p.transfer(a, b, 1<<20)
}

// A checksum that the device was to complete is good where the frame may not have left the machine, and nowhere else.
func TestReceive_sumWithoutPayload(t *testing.T) {
	open := segment(addrA.As4(), func(b []byte) {
		inet.Sum(0).Add(b[26:34]).AddWord(protoTCP).AddWord(20).PutSum(b[34+tcpChecksumAt:])
	})
	damaged := append([]byte(nil), open...)
	damaged[34+tcpChecksumAt]++
	for _, local := range []bool{false, true} {
		for _, frame := range [][]byte{open, damaged} {
			p := newPair(t, 1500, nil)
			p.b.local = local
			p.ports[1].arrive(frame)
			p.b.Poll(mono.Real{}.Now(), nil)
			want := local && &frame[0] == &open[0]
			if got := p.b.malformed == 0; got != want {
				t.Errorf("local is %v: taken is %v, want %v", local, got, want)
			}
		}
	}
}
