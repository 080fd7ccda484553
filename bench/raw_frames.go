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
	"github.com/xwarp/xwarp/internal/base/mono"
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
	*End
	port   fabric.Port
	arena  *mem.Arena // when it is ours to close
	pool   *mem.Pool
	bytes  []byte // of the arena
	rx     [fabric.MaxBufs * 4]fabric.Desc
	tx     [fabric.MaxBufs]fabric.Desc
	ends   ends
	data   frame     // what a burst sends
	answer frame     // confirmations
	number uint64    // of the present ping
	asked  mono.Time // when it was sent
	sender streamSender
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
	f := &frameBench{End: e}
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
	peer := map[string]string{}
	for _, key := range []string{"mac", "address", "rx depth"} {
		if peer[key], err = f.Pair.peerValue(key); err != nil {
			return err
		}
	}
	mac, macErr := net.ParseMAC(peer["mac"])
	to, toErr := netip.ParseAddrPort(peer["address"])
	f.limit, err = strconv.Atoi(peer["rx depth"])
	if macErr != nil || toErr != nil || err != nil || len(mac) != 6 || !to.Addr().Is4() {
		return fmt.Errorf("the other end gave %q as its address", peer)
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

func (f *frameBench) Run(b Burst, rec *Recorder) error {
	pingPong := isPingPong(f.Spec.Test)
	f.data = f.ends.frame(b.Size)
	switch {
	case pingPong && f.Server:
		return f.echo()
	case pingPong:
		return f.ping(b, rec)
	case f.Server:
		return f.swallow()
	}
	return f.stream(b, rec)
}

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

func (f *frameBench) ping(b Burst, rec *Recorder) error {
	f.asked = f.Clock.Now()
	for i := -b.Warmup; i < b.Iters; i++ {
		f.number++
		f.send(&f.data, f.number, 0)
		f.port.Flush()
		if err := f.pong(rec); err != nil {
			return err
		}
		now := f.Clock.Now()
		if i >= 0 {
			rec.Add(now.Sub(f.asked))
		}
		f.asked = now
	}
	return nil
}

// pong waits for the echo of the present ping and repeats the ping when the
// echo does not come.
func (f *frameBench) pong(rec *Recorder) error {
	var turns spin
	for {
		if f.heard() {
			return nil
		}
		f.port.Flush()
		if !turns.idle() {
			continue
		}
		if f.Pair.Over() {
			return errOver
		}
		if now := f.Clock.Now(); now.Sub(f.asked) > tailTimeout {
			f.asked = now // what was lost took no time that means anything
			rec.Lost(1)
			f.send(&f.data, f.number, 0)
		}
	}
}

// heard takes what has arrived and reports whether the echo was among it.
func (f *frameBench) heard() (echo bool) {
	n := f.port.Recv(f.rx[:])
	first := true
	for _, d := range f.rx[:n] {
		if first {
			if p := f.payload(d); p != nil && binary.LittleEndian.Uint64(p) == f.number {
				echo = true
			}
		}
		first = d.Flags&fabric.More == 0
		f.pool.Put(d.Addr)
	}
	return echo
}

// echo answers every frame with one of the same size, until the client says
// stop.
func (f *frameBench) echo() error {
	var turns spin
	for {
		n := f.port.Recv(f.rx[:])
		first := true
		for _, d := range f.rx[:n] {
			if first {
				if p := f.payload(d); p != nil {
					f.send(&f.data, binary.LittleEndian.Uint64(p), 0)
				}
			}
			first = d.Flags&fabric.More == 0
			f.pool.Put(d.Addr)
		}
		f.port.Flush()
		if n == 0 && turns.idle() && f.Pair.Spoken() {
			return nil
		}
	}
}

func (f *frameBench) stream(b Burst, rec *Recorder) error {
	window := min(max(f.limit/2, 1), MaxWindow)
	if err := f.push(b.Warmup, window); err != nil {
		return err
	}
	start := f.Clock.Now()
	if err := f.push(b.Iters, window); err != nil {
		return err
	}
	lost := f.sender.lost()
	rec.Stream(b.Iters-lost, f.Clock.Now().Sub(start))
	rec.Lost(lost)
	return nil
}

// push sends n frames and waits until all are confirmed or lost.
func (f *frameBench) push(n, window int) error {
	s := &f.sender
	s.start(n, window, f.Clock.Now())
	var turns spin
	for !s.done() {
		sent := 0
		for room := min(s.room(), frameBurst); sent < room && f.send(&f.data, s.word(0), 0); sent++ {
			s.sent(1)
		}
		got := f.confirmations()
		f.port.Flush()
		if got || sent > 0 || !turns.idle() {
			continue
		}
		if f.Pair.Over() {
			return errOver
		}
		if word, late := s.repeat(f.Clock.Now()); late {
			f.send(&f.data, word, 0)
		}
	}
	return nil
}

// confirmations takes the answers that have arrived.
func (f *frameBench) confirmations() bool {
	n := f.port.Recv(f.rx[:])
	for _, d := range f.rx[:n] {
		if p := f.payload(d); p != nil {
			f.sender.confirm(p, f.Clock.Now())
		}
		f.pool.Put(d.Addr)
	}
	return n > 0
}

// swallow counts what comes and answers, until the client says stop.
func (f *frameBench) swallow() error {
	var turns spin
	for {
		n := f.port.Recv(f.rx[:])
		first, confirm := true, false
		for _, d := range f.rx[:n] {
			if first {
				confirm = f.rcvr.frame(f.payload(d)) || confirm
			}
			first = d.Flags&fabric.More == 0
			f.pool.Put(d.Addr)
		}
		if confirm {
			f.send(&f.answer, f.rcvr.highest, f.rcvr.received)
		}
		f.port.Flush()
		if n == 0 && turns.idle() && f.Pair.Spoken() {
			return nil
		}
	}
}
