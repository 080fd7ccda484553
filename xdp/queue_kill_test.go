package xdp_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// Tests with a process on each slot, which are stopped and killed.

// chat sends frames that are echoed and checks what comes back, a window at a
// time.
type chat struct {
	port  fabric.Port
	from  *testbed.Host
	to    *testbed.Host
	slot  int
	rng   *rand.Rand
	frame []byte
	back  int // echoes
	away  int // frames whose echo has not come
}

const (
	chatWindow = 24
	chatMark   = udpHeaderLen // a number is at this offset
)

func newChat(p fabric.Port, from, to *testbed.Host, slot int) *chat {
	c := &chat{port: p, from: from, to: to, slot: slot, rng: newRand(), frame: make([]byte, 9014)}
	for i := range c.frame {
		c.frame[i] = byte(c.rng.Uint32())
	}
	return c
}

// round sends what the window allows and takes what has come.
func (c *chat) round() error {
	for c.away < chatWindow && c.port.TxFree() >= fabric.MaxBufs && c.port.Pool().Free() >= fabric.MaxBufs {
		size := chatMark + 8 + c.rng.IntN(9014-chatMark-8+1)
		if c.rng.IntN(2) == 0 {
			size = chatMark + 8
		}
		putHeaders(c.frame, c.from, c.to, uint16(portBase+c.slot), size)
		binary.BigEndian.PutUint64(c.frame[chatMark:], uint64(c.slot))
		c.port.Send(cut(c.port, c.frame[:size]))
		c.away++
	}
	return c.take()
}

// take checks what has come.
func (c *chat) take() error {
	var bufs [4 * fabric.MaxBufs]fabric.Desc
	got := bufs[:c.port.Recv(bufs[:])]
	for len(got) > 0 {
		frame, n := gather(c.port.Arena(), got)
		if binary.BigEndian.Uint64(frame[chatMark:]) != uint64(c.slot) || !bytes.Equal(frame[chatMark+8:], c.frame[chatMark+8:len(frame)]) {
			return fmt.Errorf("slot %d: a frame of %d bytes is not what was sent", c.slot, len(frame))
		}
		for _, d := range got[:n] {
			c.port.Pool().Put(d.Addr)
		}
		got = got[n:]
		c.away--
		c.back++
	}
	c.port.Flush()
	return nil
}

// cut puts a frame into frames of the pool.
func cut(p fabric.Port, frame []byte) (bufs []fabric.Desc) {
	for len(frame) > 0 {
		chunk, ok := p.Pool().Get()
		if !ok {
			panic("the pool is empty")
		}
		n := copy(p.Arena().At(chunk, mem.FrameSize), frame)
		bufs = append(bufs, fabric.Desc{Addr: chunk, Len: uint32(n), Flags: fabric.More})
		frame = frame[n:]
	}
	bufs[len(bufs)-1].Flags = 0
	return bufs
}

// echo sends back to a what arrives at the ports of b, until stop is closed.
func echo(ends []end, to *testbed.Host, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	var bufs [8 * fabric.MaxBufs]fabric.Desc
	for {
		select {
		case <-stop:
			return
		default:
		}
		for slot, e := range ends {
			got := bufs[:e.Recv(bufs[:])]
			for len(got) > 0 {
				frame, n := gather(e.Arena(), got)
				for _, d := range got[:n] {
					e.Pool().Put(d.Addr)
				}
				got = got[n:]
				if e.TxFree() < fabric.MaxBufs || e.Pool().Free() < fabric.MaxBufs {
					panic("echo has no room: more comes than a window from each")
				}
				putHeaders(frame, e.host, to, uint16(portBase+slot), len(frame))
				e.Send(cut(e.Port, frame))
			}
			e.Flush()
		}
	}
}

// slotEnv makes a run of the test binary the process of a slot, or of one on each of
// several devices. It holds the slots; others hold the addresses of both hosts, and
// where it stops itself.
const slotEnv = "XWARP_TEST_Slot"

func TestHelper_slot(t *testing.T) {
	text, ok := os.LookupEnv(slotEnv)
	if !ok {
		t.Skip("run by tests of shared queues")
	}
	var at stops
	if _, err := fmt.Sscan(os.Getenv("STOP_AT"), &at.place, &at.times); err != nil {
		t.Fatal(err)
	}
	froms, tos := strings.Split(os.Getenv("FROM"), "\n"), strings.Split(os.Getenv("TO"), "\n")
	var slots []xdp.Slot
	var ways []way
	for i, line := range strings.Split(text, "\n") {
		s, err := xdp.ParseSlot(line)
		if err != nil {
			t.Fatal(err)
		}
		slots, ways = append(slots, s), append(ways, way{hostOf(t, froms[i]), hostOf(t, tos[i])})
	}
	if err := slotMain(slots, ways, at); err != nil {
		t.Fatal(err)
	}
}

// way is between two hosts, by one of their devices.
type way struct{ from, to *testbed.Host }

func hostOf(t *testing.T, text string) *testbed.Host {
	h := &testbed.Host{}
	var addr string
	if _, err := fmt.Sscanf(text, "%s %x", &addr, (*[]byte)(&h.MAC)); err != nil {
		t.Fatal(text, err)
	}
	if err := h.Addr.UnmarshalText([]byte(addr)); err != nil {
		t.Fatal(err)
	}
	return h
}

// stops says at which place a process stops itself, and how many times.
type stops struct{ place, times, calls int }

// stopEvery is how many times it comes by for each time that it stops.
const stopEvery = 3

// never is where nobody comes by.
var never = stops{place: -1}

// pass stops now and then when the process comes by the place.
func (s *stops) pass(place int) {
	if place != s.place || s.times == 0 {
		return
	}
	if s.calls++; s.calls%stopEvery == 0 {
		s.times--
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP) // this thread stops at once
	}
}

// slotMain talks until it is killed or its input ends.
func slotMain(slots []xdp.Slot, ways []way, at stops) error {
	arena, ports, err := openSlots(slots)
	if err != nil {
		return err
	}
	defer arena.Close()
	var chats []*chat
	for i, port := range ports {
		defer port.Close()
		xdp.SetInside(port, at.pass)
		chats = append(chats, newChat(port, ways[i].from, ways[i].to, slots[i].Number))
	}
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	for told := false; ; {
		talks := true
		for _, c := range chats {
			if err := c.round(); err != nil {
				return err
			}
			talks = talks && c.back >= 4*chatWindow
		}
		if !told && talks {
			fmt.Println("talks")
			told = true
		}
		select {
		case <-over:
			return nil
		default:
		}
	}
}

// openSlots opens ports on the slots of a process, one on each device, which share a
// pool.
func openSlots(slots []xdp.Slot) (*mem.Arena, []xdp.FramePort, error) {
	open := xdp.OpenSlot
	if len(slots[0].Pairs) > 0 {
		open = xdp.OpenPairSlot
	}
	arena, err := slots[0].MapArena()
	if err != nil {
		return nil, nil, err
	}
	frames := 0
	for _, s := range slots {
		frames += s.ToSend()
	}
	pool, err := mem.NewPool(arena, frames, true)
	var ports []xdp.FramePort
	for _, s := range slots {
		if err == nil {
			var p xdp.FramePort
			p, err = open(s, arena, pool, true)
			ports = append(ports, p)
		}
	}
	return arena, ports, err
}

// nobody is the user that overflown numbers become (/proc/sys/kernel/overflowuid).
const nobody = 65534

// process is one that has a slot.
type process struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	quit io.Closer
}

// startSlot starts a process on a slot of the first host, as a user without
// privileges.
func startSlot(t *testing.T, s *sharers, slot int, at stops) *process {
	t.Helper()
	return startSlots(t, []xdp.Slot{s.queues[0].Slot(slot)}, []way{{s.tb.Hosts[0], s.tb.Hosts[1]}}, at)
}

// startSlots starts a process that has a slot on each of some devices.
func startSlots(t *testing.T, slots []xdp.Slot, ways []way, at stops) *process {
	t.Helper()
	const firstExtra = 3
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestHelper_slot$")
	var lines, from, to []string
	for i, mine := range slots {
		text := func(h *testbed.Host) string { return fmt.Sprintf("%v %x", h.Addr, []byte(h.MAC)) }
		from, to = append(from, text(ways[i].from)), append(to, text(ways[i].to))
		lines = append(lines, mine.At(firstExtra+len(cmd.ExtraFiles)).Text())
		for _, fd := range mine.FDs() {
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(own), "slot")
			defer f.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	cmd.Env = append(os.Environ(), slotEnv+"="+strings.Join(lines, "\n"), fmt.Sprintf("STOP_AT=%d %d", at.place, at.times),
		"FROM="+strings.Join(from, "\n"), "TO="+strings.Join(to, "\n"))
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ways[0].from.Start(cmd); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, bufio.NewReader(out), in}
}

// expect waits for a line.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the process ended before it said %q: %v", want, err)
		}
		if line == want+"\n" {
			return
		}
	}
}

// awaitStop waits until the process has stopped.
func (p *process) awaitStop(t *testing.T) {
	t.Helper()
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process did not stop (status %#x, %v)", status, err)
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end has the process end in good order.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.quit.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed
}

// killRig is two hosts: an echo on the second, and slot 0 of the first in this
// process.
type killRig struct {
	*sharers
	mine *chat
	stop chan struct{}
	done chan struct{}
}

func newKillRig(t *testing.T, mode bpf.Mode, slots int) *killRig {
	t.Helper()
	r := &killRig{sharers: &sharers{tb: newTestbed(t, 9000)}, stop: make(chan struct{}), done: make(chan struct{})}
	for i, h := range r.tb.Hosts {
		c := queueConfig(slots, mode)
		if i == 0 {
			c.TxDepth = 64 // its COMPLETION ring is soon used up
		}
		r.queues[i] = openQueue(t, h, c)
	}
	for n := range slots {
		r.ends[1] = append(r.ends[1], end{sit(t, r.queues[1], n), r.tb.Hosts[1]})
	}
	r.mine = newChat(sit(t, r.queues[0], 0), r.tb.Hosts[0], r.tb.Hosts[1], 0)
	go echo(r.ends[1], r.tb.Hosts[0], r.stop, r.done)
	return r
}

// talk goes on until n more echoes have come.
func (r *killRig) talk(t *testing.T, n int) {
	t.Helper()
	for end := r.mine.back + n; r.mine.back < end; {
		if err := r.mine.round(); err != nil {
			t.Fatal(err)
		}
	}
}

// blindly sends as many frames as make another process stop that has to tell us
// about them, for we do not look whether they were sent.
func (r *killRig) blindly() {
	c := r.mine
	putHeaders(c.frame, c.from, c.to, uint16(portBase+c.slot), chatMark+8)
	binary.BigEndian.PutUint64(c.frame[chatMark:], uint64(c.slot))
	for range stopEvery {
		c.port.Send(cut(c.port, c.frame[:chatMark+8]))
		c.away++
	}
	c.port.(*xdp.Port).Transmit()
}

// settle ends all talk and checks that every frame to receive into is somewhere,
// but for lost ones at most.
func (r *killRig) settle(t *testing.T, lost int) {
	t.Helper()
	close(r.stop)
	<-r.done
	fill, received, held := r.queues[0].Accounted()
	sum := fill + received
	for slot, n := range held {
		if sum += n; slot > 0 && n > 0 {
			t.Errorf("slot %d holds %d frames and has nobody", slot, n)
		}
	}
	if all := r.queues[0].Frames(); sum > all || sum < all-lost {
		t.Errorf("%d frames in the FILL ring, %d in RX rings, %v held: that is %d, want %d, or less by up to %d", fill, received, held, sum, all, lost)
	}
	wantNoDrops(t, end{r.mine.port, r.tb.Hosts[0]})
}

// A process that is killed in the middle of traffic harms nobody, wherever it
// was: the others go on, and its frames come back.
func TestQueue_killedInTheMiddle(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const slots = 6
		r := newKillRig(t, mode, slots)
		rng := newRand()
		for slot := 1; slot < slots; slot++ {
			p := startSlot(t, r.sharers, slot, never)
			p.expect(t, "talks")
			r.talk(t, 100+rng.IntN(400))
			p.kill(t)
			r.talk(t, 100)
			if err := r.queues[0].Vacate(slot); err != nil {
				t.Fatal(err)
			}
		}
		r.talk(t, 3000)
		r.settle(t, slots-1)
	})
}

// The same for one that is killed at each place where it has begun something
// that others see.
func TestQueue_killedHalfWay(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const slots = 1 + xdp.Places
		r := newKillRig(t, mode, slots)
		for slot := 1; slot < slots; slot++ {
			p := startSlot(t, r.sharers, slot, stops{place: slot - 1, times: 1})
			r.blindly()
			p.awaitStop(t)
			r.talk(t, 100)
			if err := r.queues[0].Vacate(slot); !errors.Is(err, xdp.ErrSlotTaken) {
				t.Fatalf("a slot was vacated whose process is alive: %v", err)
			}
			p.kill(t)
			if (slot+int(mode))%2 == 0 { // who comes first: the other slots, or who made the queue
				r.talk(t, 300)
			}
			if err := r.queues[0].Vacate(slot); err != nil {
				t.Fatal(err)
			}
			r.talk(t, 100)
		}
		r.settle(t, 1) // of the one that was killed at the first place
	})
}

// A process that is stopped at such a place holds nobody up, however long it
// takes, and is none the worse when it goes on.
func TestQueue_stoppedHalfWay(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		r := newKillRig(t, mode, 1+xdp.Places)
		for place := range xdp.Places {
			p := startSlot(t, r.sharers, 1+place, stops{place: place, times: 2})
			for range 2 {
				r.blindly()
				p.awaitStop(t)
				r.talk(t, 200)
				p.signal(t, syscall.SIGCONT)
			}
			p.expect(t, "talks")
			p.end(t)
			if err := r.queues[0].Vacate(1 + place); err != nil {
				t.Fatal(err)
			}
		}
		r.settle(t, 0)
	})
}

// The same at any time.
func TestQueue_stoppedInTheMiddle(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		r := newKillRig(t, mode, 2)
		p := startSlot(t, r.sharers, 1, never)
		p.expect(t, "talks")
		for range 30 {
			p.signal(t, syscall.SIGSTOP)
			r.talk(t, 20+r.mine.rng.IntN(60))
			p.signal(t, syscall.SIGCONT)
			r.talk(t, 1+r.mine.rng.IntN(20))
		}
		p.end(t)
		r.settle(t, 0)
	})
}

// A process that ends in good order gives everything back, too.
func TestQueue_leaves(t *testing.T) {
	r := newKillRig(t, bpf.Generic, 3)
	p := startSlot(t, r.sharers, 2, never)
	p.expect(t, "talks")
	p.end(t)
	if err := r.queues[0].Vacate(2); err != nil {
		t.Fatal(err)
	}
	r.talk(t, 1000)
	r.settle(t, 0)
}
