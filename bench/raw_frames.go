package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/capture"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// rawPort is the UDP port of raw frames: the XDP program steers it to us.
const rawPort = 18516

// rawArena holds the frames of a port: 16 MiB by default, and what a foreign
// driver adds.
const rawArena = 20 << 20

// frameBurst is how many frames are sent before looking at what came in.
const frameBurst = 32

// frameBench sends prebuilt frames over a port, with nothing above it but the
// little protocol of stream.go. It enters the port as the engine does: Recv,
// Send, and one Flush per turn.
type frameBench struct {
	rawBench
	port   fabric.Port
	arena  *mem.Arena // when it is ours to close
	pool   *mem.Pool
	bytes  []byte // of the arena
	rx     [fabric.MaxBufs * 4]fabric.Desc
	tx     [fabric.MaxBufs]fabric.Desc
	ends   ends
	data   frame // what a burst sends
	answer frame // confirmations
	rcvr   streamReceiver
	limit  int // frames that the receiver has room for
}

// frame is the header of frames of one size.
type frame struct {
	head [inet.HeaderLen]byte
	size int // bytes of the whole frame
	bufs int
}

func openFrames(e *End) (Bench, error) {
	if len(e.Device.HardwareAddr) != 6 {
		return nil, fmt.Errorf("device %s is no Ethernet: raw tests over %s need one; name it with --device", e.Device.Name, e.Spec.Fabric)
	}
	f := &frameBench{rawBench: rawBench{End: e}}
	f.link = f
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.pool, f.bytes = f.port.Pool(), f.port.Arena().Bytes()
	if err := f.meet(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open opens the port. A port that could not be opened stays nil.
func (f *frameBench) open() (err error) {
	c := xdp.Config{
		Device: f.Device.Name, MTU: f.Spec.MTU, BusyPoll: f.Spec.BusyPoll,
		Steer: bpf.Config{PortBase: rawPort, LossPPM: int(f.Spec.Loss * bpf.LossPPMMax)},
	}
	c.Mode = device.ModeOf(f.Spec.Fabric)
	if f.arena, err = mem.New(mem.Config{Size: rawArena, Name: "xperf"}); err != nil {
		return err
	}
	c.Arena = f.arena
	port, err := openFramePort(f.Spec.Fabric, c)
	if err != nil {
		return err
	}
	f.port = port
	if f.Capture != "" {
		file, err := os.Create(f.Capture)
		if err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		f.port = capture.NewPort(port, file, capture.Config{Clock: f.Clock, Name: f.Device.Name})
	}
	return nil
}

func openFramePort(fabricName string, c xdp.Config) (fabric.Port, error) {
	if fabricName == "xdp:asavie" {
		return asavie.Open(c)
	}
	return xdp.Open(c)
}

// meet exchanges addresses and makes the headers.
func (f *frameBench) meet() error {
	caps := f.port.Caps()
	here := netip.AddrPortFrom(f.Addr, rawPort)
	err := errors.Join(
		f.Pair.Put("mac", f.Device.HardwareAddr.String()),
		f.Pair.Put("address", here.String()),
		f.Pair.Put("rx depth", strconv.Itoa(caps.RxDepth)))
	if err != nil {
		return err
	}
	if err := f.Pair.Fence(); err != nil {
		return err
	}
	mac, macErr := said(f.Pair, "mac", net.ParseMAC)
	to, toErr := said(f.Pair, "address", netip.ParseAddrPort)
	f.limit, err = said(f.Pair, "rx depth", strconv.Atoi)
	if err := errors.Join(macErr, toErr, err); err != nil {
		return err
	}
	if len(mac) != 6 || !to.Addr().Is4() {
		return fmt.Errorf("the other end gave %v and %v as its addresses", mac, to)
	}
	f.ends = ends{inet.MAC(f.Device.HardwareAddr), inet.MAC(mac), here, to}
	f.answer = f.ends.frame(minFrame)
	return nil
}

// ends are the addresses in the headers of raw frames.
type ends struct {
	src, dst inet.MAC
	from, to netip.AddrPort
}

// frame makes the header of frames of size bytes. There is no UDP checksum
// (RFC 768: 0 means none): the number in each frame changes.
func (a ends) frame(size int) frame {
	f := frame{size: size, bufs: (size + mem.FrameSize - 1) / mem.FrameSize}
	inet.PutEthernet(f.head[:], a.dst, a.src, inet.EtherIPv4)
	ip := f.head[inet.EthernetLen:]
	inet.PutIPv4(ip, inet.IPv4Fields{
		TotalLen: size - inet.EthernetLen, TTL: 64, Protocol: inet.ProtoUDP,
		Src: a.from.Addr().As4(), Dst: a.to.Addr().As4(),
	})
	inet.PutUDP(ip[inet.IPv4Len:], a.from.Port(), a.to.Port(), size-inet.EthernetLen-inet.IPv4Len)
	return f
}

func (f *frameBench) Carrier() string { return f.port.Caps().Driver }

func (f *frameBench) Close() error {
	var errs []error
	if f.port != nil {
		errs = append(errs, f.port.Close())
	}
	if f.arena != nil {
		errs = append(errs, f.arena.Close())
	}
	return errors.Join(errs...)
}

// Progress gives the port its turn.
func (f *frameBench) Progress() { f.port.Flush() }

func (f *frameBench) prepare(size int) { f.data = f.ends.frame(size) }

func (f *frameBench) window(int) int { return f.limit / 2 }

// send queues one frame whose payload begins with two words. It reports
// whether there was room.
func (f *frameBench) send(h *frame, word, second uint64) bool {
	if f.port.TxFree() < h.bufs || f.pool.Free() < h.bufs {
		return false
	}
	left := h.size
	for i := range h.bufs {
		addr, _ := f.pool.Get() // Free said that there is one
		n := min(left, mem.FrameSize)
		left -= n
		f.tx[i] = fabric.Desc{Addr: addr, Len: uint32(n), Flags: fabric.More}
	}
	f.tx[h.bufs-1].Flags = 0
	first := f.bytes[f.tx[0].Addr:][:inet.HeaderLen+confirmSize]
	copy(first, h.head[:])
	binary.LittleEndian.PutUint64(first[inet.HeaderLen:], word)
	binary.LittleEndian.PutUint64(first[inet.HeaderLen+8:], second)
	f.port.Send(f.tx[:h.bufs])
	return true
}

// payload returns the first bytes behind the headers of a received frame. The
// XDP program lets nothing shorter through than a UDP datagram.
func (f *frameBench) payload(d fabric.Desc) []byte {
	if d.Len < inet.HeaderLen+confirmSize {
		return nil
	}
	return f.bytes[d.Addr+inet.HeaderLen:][:confirmSize]
}

// each hands fn the payload of each frame that has arrived, which may be nil, and
// reports whether there was any.
func (f *frameBench) each(fn func(payload []byte)) bool {
	n := f.port.Recv(f.rx[:])
	first := true
	for _, d := range f.rx[:n] {
		if first {
			fn(f.payload(d))
		}
		first = d.Flags&fabric.More == 0
		f.pool.Put(d.Addr)
	}
	return n > 0
}

func (f *frameBench) ping(n uint64) error {
	f.send(&f.data, n, 0)
	f.port.Flush()
	return nil
}

func (f *frameBench) echoed(n uint64) (echoed bool, err error) {
	f.each(func(p []byte) { echoed = echoed || p != nil && binary.LittleEndian.Uint64(p) == n })
	if !echoed {
		f.port.Flush()
	}
	return echoed, nil
}

func (f *frameBench) echo(int) error {
	var turns spin
	for {
		got := f.each(func(p []byte) {
			if p != nil {
				f.send(&f.data, binary.LittleEndian.Uint64(p), 0)
			}
		})
		f.port.Flush()
		if !got && turns.idle() && f.Pair.Spoken() {
			return nil
		}
	}
}

func (f *frameBench) fill(s *streamSender, room int) (sent bool, err error) {
	for range min(room, frameBurst) {
		if !f.send(&f.data, s.word(0), 0) {
			break
		}
		s.sent(1)
		sent = true
	}
	return sent, nil
}

func (f *frameBench) repeat(word uint64) { f.send(&f.data, word, 0) }

func (f *frameBench) confirmed(s *streamSender) (bool, error) {
	got := f.each(func(p []byte) { s.confirm(p, f.Clock.Now()) })
	f.port.Flush()
	return got, nil
}

func (f *frameBench) swallow() error {
	var turns spin
	for {
		confirm := false
		got := f.each(func(p []byte) { confirm = f.rcvr.frame(p) || confirm })
		if confirm {
			f.send(&f.answer, f.rcvr.highest, f.rcvr.received)
		}
		f.port.Flush()
		if !got && turns.idle() && f.Pair.Spoken() {
			return nil
		}
	}
}
