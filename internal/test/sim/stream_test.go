package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// talk is one end of a conversation over a stream, in a task.
type talk struct {
	task *Task
	s    *Streams
	st   fabric.Stream
	got  []byte
	eof  bool
	ids  []fabric.StreamID
}

// wait steps until so is true or the task's time is until.
func (k *talk) wait(until mono.Time, so func() bool) {
	for !so() && k.task.Now() < until {
		k.s.Flush()
		k.task.Park(until, 0)
		k.ids = k.s.Poll(k.task.Now(), k.ids[:0])
		k.pull()
	}
}

func (k *talk) pull() {
	var b [3000]byte
	for k.st != nil {
		n, eof := k.st.Recv(b[:])
		k.got = append(k.got, b[:n]...)
		if k.eof = eof; n == 0 {
			return
		}
	}
}

// send sends all of b, or gives up when the stream fails or at until.
func (k *talk) send(b []byte, until mono.Time) {
	for len(b) > 0 {
		n := k.st.Send([][]byte{b[:len(b)/2], b[len(b)/2:]})
		b = b[n:]
		if k.st.State() == fabric.StreamFailed || k.task.Now() >= until {
			return
		}
		if len(b) > 0 {
			k.s.Flush()
			k.task.Park(until, 0)
			k.ids = k.s.Poll(k.task.Now(), k.ids[:0])
			k.pull()
		}
	}
	k.s.Flush()
}

func payload(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// outcome is what two ends saw of a conversation.
type outcome struct {
	dialer, acceptor *talk
	hash             uint64
}

const (
	toAcceptor = 20000 // bytes of the conversation
	toDialer   = 15000
)

// converse lets two nodes send to each other, end in order if they can, and
// returns what each saw.
func converse(t *testing.T, seed uint64, v6 bool, c, d StreamConfig) *outcome {
	t.Helper()
	w := New(Config{Seed: seed})
	n := w.Nodes(2)
	o := &outcome{dialer: &talk{s: n[0].Streams(c)}, acceptor: &talk{s: n[1].Streams(d)}}
	addr := n[1].Addr()
	if v6 {
		addr = n[1].Addr6()
	}
	end := mono.Time(30 * mono.Second)
	body := func(k *talk, b []byte) {
		k.send(b, end)
		k.st.CloseWrite()
		k.wait(end, func() bool { return k.eof || k.st.State() == fabric.StreamFailed })
		if k.st.State() == fabric.StreamOpen && k.st.MSS() != 1448 {
			t.Errorf("MSS %d", k.st.MSS())
		}
		k.st.Close(false)
	}
	w.Go(n[0], "dialer", func(task *Task) (err error) {
		k := o.dialer
		k.task = task
		if k.st, err = k.s.Dial(netip.AddrPortFrom(addr, 7), netip.AddrPort{}); err != nil {
			return err
		}
		k.wait(end, func() bool { return k.st.State() != fabric.StreamConnecting })
		body(k, payload(toAcceptor))
		return nil
	})
	l, err := o.acceptor.s.Listen(netip.AddrPortFrom(netip.IPv6Unspecified(), 7), 1)
	if err != nil {
		t.Fatal(err)
	}
	w.Go(n[1], "acceptor", func(task *Task) error {
		k := o.acceptor
		k.task = task
		var st fabric.Stream
		k.wait(end, func() bool { st = l.Accept(); return st != nil })
		if k.st = st; st == nil {
			return errors.New("nobody came")
		}
		if st.Remote() != o.dialer.st.Local() || st.Local() != o.dialer.st.Remote() || st.Local().Addr() != addr {
			return fmt.Errorf("addresses: %v %v", st.Local(), st.Remote())
		}
		body(k, payload(toDialer))
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	o.hash = w.TraceHash()
	return o
}

// whole checks that all arrived.
func (o *outcome) whole(t *testing.T) {
	t.Helper()
	if !bytes.Equal(o.acceptor.got, payload(toAcceptor)) || !bytes.Equal(o.dialer.got, payload(toDialer)) || !o.acceptor.eof || !o.dialer.eof {
		t.Errorf("%d and %d bytes arrived, ends %v %v", len(o.acceptor.got), len(o.dialer.got), o.acceptor.eof, o.dialer.eof)
	}
}

func TestStreams_segmentation(t *testing.T) {
	random := func(seed uint64) func(int, int64, int) int {
		r := rand.New(rand.NewPCG(seed, 0))
		return func(_ int, _ int64, n int) int { return 1 + r.IntN(3000) }
	}
	for name, c := range map[string]func() StreamConfig{
		"plain":  func() StreamConfig { return StreamConfig{} },
		"bytes":  func() StreamConfig { return StreamConfig{Segment: func(int, int64, int) int { return 1 }} },
		"gap":    func() StreamConfig { return StreamConfig{Gap: 3 * mono.Microsecond} },
		"all":    func() StreamConfig { return StreamConfig{Segment: func(_ int, _ int64, n int) int { return n }} },
		"random": func() StreamConfig { return StreamConfig{Segment: random(3)} },
		"window": func() StreamConfig { return StreamConfig{SendBuffer: 10, RecvBuffer: 7} },
		"narrow": func() StreamConfig { return StreamConfig{SendBuffer: 1, RecvBuffer: 1} },
		"healed": func() StreamConfig {
			return StreamConfig{Faults: []StreamFault{{Offset: 5000, Kind: StreamSilence, Heal: mono.Second}, {Kind: StreamSilence, Heal: mono.Second}}}
		},
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " v6=", v6), func(t *testing.T) {
				o := converse(t, 1, v6, c(), c())
				o.whole(t)
				if again := converse(t, 1, v6, c(), c()); again.hash != o.hash {
					t.Error("another trace for the same seed")
				}
			})
		}
	}
}

// Each fault, in each direction, at each end of a segment and in its middle:
// exactly the bytes before it arrive, and each end sees what it shall.
func TestStreams_faults(t *testing.T) {
	type view struct {
		err error
		eof bool
	}
	for _, kind := range []StreamFaultKind{StreamReset, StreamResetSender, StreamResetReceiver, StreamFIN, StreamSilence} {
		for _, offset := range []int64{0, 1, 1447, 1448, 1449, 14999} {
			for back := range 2 {
				t.Run(fmt.Sprint(kind, " at ", offset, " of ", back), func(t *testing.T) {
					var c [2]StreamConfig
					c[back].Faults = []StreamFault{{Offset: offset, Kind: kind}}
					c[0].Timeout, c[1].Timeout = mono.Second, mono.Second
					o := converse(t, 2, false, c[0], c[1])
					from, to := o.dialer, o.acceptor
					if back == 1 {
						from, to = to, from
					}
					if want := payload([]int{toAcceptor, toDialer}[back])[:offset]; !bytes.Equal(to.got, want) {
						t.Errorf("%d bytes arrived, want %d", len(to.got), offset)
					}
					want := map[StreamFaultKind][2]view{
						StreamReset:         {{err: syscall.ECONNRESET}, {err: syscall.ECONNRESET}},
						StreamResetSender:   {{err: syscall.ECONNRESET}, {err: syscall.ETIMEDOUT}},
						StreamResetReceiver: {{err: syscall.ETIMEDOUT}, {err: syscall.ECONNRESET}},
						StreamFIN:           {{eof: true}, {eof: true}},
						StreamSilence:       {{err: syscall.ETIMEDOUT}, {err: syscall.ETIMEDOUT}},
					}[kind]
					for i, k := range []*talk{from, to} {
						got := view{k.st.Err(), k.eof}
						if got.eof == want[i].eof && errors.Is(got.err, want[i].err) {
							continue
						}
						// An end to which all had come, and from which all had gone, when
						// the fault struck may be content, or waits in vain.
						if got.err == nil {
							other := []int{toDialer, toAcceptor}[back]
							if i == 0 && len(k.got) == other || i == 1 && len(from.got) == other {
								continue
							}
						}
						t.Errorf("end %d: %v, eof %v; want %+v", i, got.err, got.eof, want[i])
					}
				})
			}
		}
	}
}

// handWorld is a world with two ends that are used outside of tasks; pass lets
// time pass.
func handWorld(t *testing.T, c StreamConfig) (w *World, a, b *Streams, pass func(mono.Duration)) {
	t.Helper()
	w = New(Config{Seed: 3})
	n := w.Nodes(2)
	var pause mono.Duration
	pass = func(d mono.Duration) {
		pause = d
		w.Go(n[0], "time", func(task *Task) error { task.Sleep(pause); return nil })
		if err := w.Run(); err != nil {
			t.Fatal(err)
		}
	}
	return w, n[0].Streams(c), n[1].Streams(c), pass
}

func TestStreams_refused(t *testing.T) {
	w, a, b, pass := handWorld(t, StreamConfig{})
	to := netip.AddrPortFrom(b.Addr(), 9)
	dial := func(to netip.AddrPort) fabric.Stream {
		st, err := a.Dial(to, netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := dial(to)
	if st.State() != fabric.StreamConnecting || st.MSS() != 0 || st.Send([][]byte{{1}}) != 0 {
		t.Error("open before time has passed")
	}
	pass(mono.Millisecond)
	if !errors.Is(st.Err(), syscall.ECONNREFUSED) || st.State() != fabric.StreamFailed {
		t.Error(st.Err())
	}
	st.Close(false)
	if st = dial(netip.MustParseAddrPort("10.9.9.9:9")); st.ID() != 0 {
		t.Error("the number is not used again:", st.ID())
	}
	pass(mono.Millisecond)
	if !errors.Is(st.Err(), syscall.EHOSTUNREACH) {
		t.Error(st.Err())
	}
	w.Partition(mono.Never, w.nodes[0])
	st = dial(to)
	pass(11 * mono.Second)
	if !errors.Is(st.Err(), syscall.ETIMEDOUT) {
		t.Error(st.Err())
	}
	for _, bad := range []struct {
		to, from string
		want     error
	}{
		{"10.0.0.2:0", "0.0.0.0:0", syscall.EINVAL},
		{"10.0.0.2:9", "10.0.0.2:0", syscall.EADDRNOTAVAIL},
		{"10.0.0.2:9", "[fd00::1]:0", syscall.EAFNOSUPPORT},
	} {
		if _, err := a.Dial(netip.MustParseAddrPort(bad.to), netip.MustParseAddrPort(bad.from)); !errors.Is(err, bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestStreams_listen(t *testing.T) {
	_, a, b, pass := handWorld(t, StreamConfig{})
	l, err := b.Listen(netip.AddrPort{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Listen(l.Local(), 2); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if _, err := b.Listen(netip.MustParseAddrPort("10.0.0.1:0"), 2); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Error(err)
	}
	to := netip.AddrPortFrom(b.Addr(), l.Local().Port())
	var all []fabric.Stream
	for range 3 {
		st, err := a.Dial(to, netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, st)
	}
	count := func() (open int) {
		for _, st := range all {
			if st.State() == fabric.StreamOpen {
				open++
			}
		}
		return open
	}
	pass(mono.Millisecond)
	if n := count(); n != 2 {
		t.Errorf("%d streams are open with a backlog of 2", n)
	}
	if ready := b.Poll(0, nil); len(ready) != 1 || ready[0] != l.ID() {
		t.Error("ready:", ready)
	}
	st := l.Accept()
	pass(2 * mono.Second) // the one that found no room asks again
	if n := count(); n != 3 {
		t.Errorf("%d streams are open after one was accepted", n)
	}
	st.Close(true)
	l.Close()
	if _, err := b.Listen(l.Local(), 2); err != nil {
		t.Error("the port is still taken:", err)
	}
	pass(mono.Millisecond)
	for i, st := range all {
		if !errors.Is(st.Err(), syscall.ECONNRESET) {
			t.Errorf("stream %d: %v", i, st.Err())
		}
	}
	if s := a.Stats(); s.Opened != 3 || s.Failed != 3 {
		t.Errorf("%+v", s)
	}
}

// joined connects two ends that are stepped by hand.
func joined(t *testing.T, c StreamConfig) (w *World, a, b *Streams, sa, sb fabric.Stream, pass func(mono.Duration)) {
	t.Helper()
	w, a, b, pass = handWorld(t, c)
	l, err := b.Listen(netip.MustParseAddrPort("0.0.0.0:5"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if sa, err = a.Dial(netip.AddrPortFrom(b.Addr(), 5), netip.MustParseAddrPort("0.0.0.0:6")); err != nil {
		t.Fatal(err)
	}
	pass(mono.Millisecond)
	if sb = l.Accept(); sb == nil || sb.Remote().Port() != 6 {
		t.Fatal("not connected")
	}
	a.Poll(0, nil)
	b.Poll(0, nil)
	return w, a, b, sa, sb, pass
}

// News is told once, and again only when there is more.
func TestStreams_edgeTriggered(t *testing.T) {
	_, a, b, sa, sb, pass := joined(t, StreamConfig{SendBuffer: 10})
	if n := sa.Send([][]byte{make([]byte, 6), make([]byte, 6)}); n != 10 {
		t.Fatalf("took %d bytes", n)
	}
	pass(mono.Millisecond)
	if b.Poll(0, nil) != nil {
		t.Error("bytes move before Flush")
	}
	a.Flush()
	pass(mono.Millisecond)
	if got := b.Poll(0, nil); len(got) != 1 || got[0] != sb.ID() {
		t.Error("readable:", got)
	}
	if got := a.Poll(0, nil); len(got) != 1 || got[0] != sa.ID() {
		t.Error("writable:", got)
	}
	pass(mono.Millisecond)
	if a.Poll(0, nil) != nil || b.Poll(0, nil) != nil {
		t.Error("told twice")
	}
}

func TestStreams_segmentsAreSeen(t *testing.T) {
	sizes := map[int64]int{0: 3, 3: 1, 4: 100}
	_, a, _, sa, sb, pass := joined(t, StreamConfig{Segment: func(_ int, off int64, n int) int { return sizes[off] }})
	sa.Send([][]byte{payload(10)})
	a.Flush()
	pass(mono.Millisecond)
	var b [20]byte
	for _, want := range []int{3, 1, 6, 0} {
		if n, _ := sb.Recv(b[:]); n != want {
			t.Errorf("Recv returns %d bytes, want %d", n, want)
		}
	}
}

func TestStream_closeUnreadResets(t *testing.T) {
	_, a, _, sa, sb, pass := joined(t, StreamConfig{})
	sa.Send([][]byte{{1}})
	a.Flush()
	pass(mono.Millisecond)
	sb.Close(false)
	pass(mono.Millisecond)
	if !errors.Is(sa.Err(), syscall.ECONNRESET) {
		t.Error(sa.Err())
	}
}

// What was taken before an orderly Close arrives; what comes for a closed end
// is answered by a reset.
func TestStream_closeDelivers(t *testing.T) {
	_, a, b, sa, sb, pass := joined(t, StreamConfig{SendBuffer: 100 << 10, RecvBuffer: 1000})
	sa.Send([][]byte{payload(50000)})
	sa.Close(false)
	k := &talk{s: b, st: sb}
	for range 200 {
		pass(100 * mono.Microsecond)
		k.pull()
	}
	if !bytes.Equal(k.got, payload(50000)) || !k.eof {
		t.Errorf("%d bytes, end %v", len(k.got), k.eof)
	}
	sb.Send([][]byte{{1}})
	b.Flush()
	pass(mono.Millisecond)
	if !errors.Is(sb.Err(), syscall.ECONNRESET) {
		t.Error(sb.Err())
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestStreams_closeAborts(t *testing.T) {
	_, a, _, _, sb, pass := joined(t, StreamConfig{})
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	pass(mono.Millisecond)
	if n, eof := sb.Recv(make([]byte, 1)); n != 0 || eof || !errors.Is(sb.Err(), syscall.ECONNRESET) {
		t.Error(n, eof, sb.Err())
	}
	if _, err := a.Dial(netip.MustParseAddrPort("10.0.0.2:5"), netip.AddrPort{}); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
}

func TestStreams_mssChanges(t *testing.T) {
	w, a, _, sa, _, pass := joined(t, StreamConfig{})
	events := func() uint64 { return uint64(w.pushed) }
	send := func() uint64 {
		before := events()
		sa.Send([][]byte{payload(14480)})
		a.Flush()
		pass(mono.Millisecond)
		return events() - before
	}
	large := send()
	a.SetMSS(100)
	if sa.MSS() != 100 {
		t.Error(sa.MSS())
	}
	if small := send(); small < 5*large {
		t.Errorf("%d events at MSS 100, %d at 1448", small, large)
	}
}

// A partition holds bytes back, and lets them go.
func TestStreams_partition(t *testing.T) {
	w, a, b, sa, sb, pass := joined(t, StreamConfig{})
	w.Partition(w.Now().Add(3*mono.Second), w.nodes[1])
	sa.Send([][]byte{{7}})
	a.Flush()
	pass(2 * mono.Second)
	var buf [2]byte
	if n, _ := sb.Recv(buf[:]); n != 0 {
		t.Error("arrived in spite of it")
	}
	pass(2 * mono.Second)
	if n, _ := sb.Recv(buf[:]); n != 1 || buf[0] != 7 || len(b.Poll(0, nil)) != 1 {
		t.Error("did not arrive after it")
	}
}

func TestStreams_throughput(t *testing.T) {
	w := New(Config{Seed: 1})
	n := w.Nodes(2)
	a, b := n[0].Streams(StreamConfig{}), n[1].Streams(StreamConfig{})
	l, err := b.Listen(netip.MustParseAddrPort("0.0.0.0:5"), 1)
	if err != nil {
		t.Fatal(err)
	}
	const total = 4 << 20
	w.Go(n[0], "sender", func(task *Task) (err error) {
		k := &talk{task: task, s: a}
		if k.st, err = a.Dial(netip.AddrPortFrom(b.Addr(), 5), netip.AddrPort{}); err != nil {
			return err
		}
		k.wait(mono.Never, func() bool { return k.st.State() == fabric.StreamOpen })
		k.send(payload(total), mono.Never)
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error {
		k := &talk{task: task, s: b}
		k.wait(mono.Never, func() bool { st := l.Accept(); k.st = st; return st != nil })
		start := task.Now()
		k.wait(mono.Never, func() bool { return len(k.got) == total })
		rate := float64(total) * 8 / float64(task.Now()-start)
		if rate < 8 || rate > 10 {
			return fmt.Errorf("%.2f Gbit/s on a link of 10", rate)
		}
		if !bytes.Equal(k.got, payload(total)) {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// A fault may strike when the end that would hear of it has closed, and its
// number is somebody else's.
func TestStreams_faultAfterClose(t *testing.T) {
	for _, kind := range []StreamFaultKind{StreamReset, StreamResetSender, StreamResetReceiver, StreamFIN, StreamSilence} {
		_, a, b, sa, sb, pass := joined(t, StreamConfig{Faults: []StreamFault{{Offset: 1, Kind: kind}}})
		sa.Send([][]byte{{1}})
		a.Flush()
		sb.Close(false)
		l, err := b.Listen(netip.AddrPort{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		pass(mono.Millisecond)
		if got := b.Poll(0, nil); l.ID() != sb.ID() || len(got) != 0 {
			t.Errorf("%v: %v is named", kind, got)
		}
	}
}
