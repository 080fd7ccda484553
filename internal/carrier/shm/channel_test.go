package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// newChannels makes the ends of n neighbours that know one another; rank i is
// number i.
func newChannels(t testing.TB, n int, c ChannelsConfig) []*Channels {
	t.Helper()
	ends := make([]*Channels, n)
	for i := range ends {
		c.Rank = i
		l, err := OpenChannels(c)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = l
		testenv.Closing(t, l)
	}
	for i, l := range ends {
		for k, peer := range ends {
			if k == i {
				continue
			}
			if _, err := l.Add(k, peer.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ends
}

// put puts a message, and lets both ends make progress until that works.
func put(t testing.TB, from, to *Channels, head, data []byte) {
	t.Helper()
	n := from.byRank[to.cfg.Rank]
	for !n.Put(head, data) {
		if n.Err() != nil {
			t.Fatal(n.Err())
		}
		if who, m := from.Next(); m != nil {
			t.Fatalf("a message of %d bytes from rank %d", len(m), who.Rank())
		}
		runtime.Gosched()
	}
}

// next waits for a message.
func next(l *Channels) (int, []byte) {
	for {
		if from, b := l.Next(); b != nil {
			return from.Rank(), b
		}
		runtime.Gosched()
	}
}

// The first neighbours that send have their rings on huge pages, each at a place of its own; the others have memory for
// themselves; and nothing of it is left.
func TestChannels_ringsOnHugePages(t *testing.T) {
	const senders = 17
	files := testenv.OpenFiles(t)
	ends := newChannels(t, senders+1, ChannelsConfig{})
	rx := ends[senders]
	whole := make([]byte, rx.MaxMessage())
	for lap := range 2 { // of more than a ring
		for i, tx := range ends[:senders] {
			for k := range 4 {
				for j := range whole {
					whole[j] = byte(i + k + lap)
				}
				put(t, tx, rx, nil, whole)
				if who, got := next(rx); who != i || !bytes.Equal(got, whole) {
					t.Fatalf("%d bytes of rank %d in place of those of rank %d", len(got), who, i)
				}
				rx.Release()
			}
		}
	}
	rings := 0
	for i, m := range rx.memory {
		want := 1
		if i < channelsHuge {
			want = 7
		}
		if m.rings != want || m.used != want {
			t.Errorf("memory %d has %d of %d rings, want %d", i, m.used, m.rings, want)
		}
		rings += m.used
	}
	if rings != senders {
		t.Errorf("there are %d rings for %d senders", rings, senders)
	}
	for _, l := range ends {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := testenv.OpenFiles(t); now > files {
		t.Errorf("%d files are open, there were %d", now, files)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte(memfdName)); n > 0 {
		t.Errorf("rings are mapped %d times still", n)
	}
}

// TestChannel_order moves messages of all lengths many times around the ring.
func TestChannel_order(t *testing.T) {
	for _, ring := range []int{ringMin, channelRing} {
		testOrder(t, ring)
	}
}

func testOrder(t *testing.T, ring int) {
	ends := newChannels(t, 2, ChannelsConfig{Ring: ring})
	tx, rx := ends[0], ends[1]
	out := tx.byRank[1]
	data := make([]byte, tx.MaxMessage())
	put(t, tx, rx, nil, nil)
	next(rx)
	rx.Release()
	sent, read, full := 0, 0, 0
	size := func(i int) int { return i * i * 37 % (tx.MaxMessage() - 8 + 1) }
	for sent < 20000 {
		n := size(sent)
		for i := range data[:n] {
			data[i] = byte(sent + i)
		}
		if out.Put(binary.BigEndian.AppendUint64(nil, uint64(sent)), data[:n]) {
			sent++
			continue
		}
		full++
		for {
			from, b := rx.Next()
			if b == nil {
				break
			}
			if from.Rank() != 0 || len(b) != 8+size(read) || binary.BigEndian.Uint64(b) != uint64(read) {
				t.Fatalf("message %d of rank %d has %d bytes, want %d", read, from.Rank(), len(b), 8+size(read))
			}
			for i, x := range b[8:] {
				if x != byte(read+i) {
					t.Fatalf("message %d differs at %d", read, i)
				}
			}
			rx.Release()
			read++
		}
		if read != sent {
			t.Fatalf("read %d messages of %d", read, sent)
		}
	}
	if full < 100 {
		t.Errorf("the channel was full %d times only", full)
	}
}

// Short messages go round in the first part of a ring, also behind long ones, which fill all of it.
func TestChannel_short(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{})
	put(t, ends[0], ends[1], nil, nil)
	next(ends[1])
	ends[1].Release()
	out := ends[0].byRank[1]
	for round := range 10 {
		long := 0
		for out.Put(nil, make([]byte, 20_000)) {
			long++
		}
		if want := channelRing/20_500 - 1; long < want {
			t.Errorf("round %d: the ring has room for %d long messages, want %d", round, long, want)
		}
		for range long {
			next(ends[1])
			ends[1].Release()
		}
		for i := range 500 * round {
			n := 100 + 900*(i%2)
			if !out.Put(nil, make([]byte, n)) {
				t.Fatalf("round %d: short message %d finds no room", round, i)
			}
			if at := out.out.start & out.out.mask; at > shortRecords+2*recordLen(1000) {
				t.Fatalf("round %d: short message %d is at %d", round, i, at)
			}
			if _, b := next(ends[1]); len(b) != n {
				t.Fatalf("round %d: message %d has %d bytes, want %d", round, i, len(b), n)
			}
			ends[1].Release()
		}
	}
}

// TestChannel_gone closes an end: what it has put is read, then its loss is told,
// once.
func TestChannel_gone(t *testing.T) {
	ends := newChannels(t, 3, ChannelsConfig{})
	for i := range byte(3) {
		put(t, ends[0], ends[1], []byte{i}, nil)
	}
	if err := ends[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i := range byte(3) {
		if n := ends[1].Lost(); n != nil {
			t.Fatalf("rank %d is lost before message %d is read", n.Rank(), i)
		}
		if from, b := next(ends[1]); from != 0 || b[0] != i {
			t.Fatalf("message %v from rank %d", b, from)
		}
		ends[1].Release()
	}
	lost := ends[1].Lost()
	for ; lost == nil; lost = ends[1].Lost() {
		ends[1].Next()
		runtime.Gosched()
	}
	if lost.Rank() != 0 || !errors.Is(lost.Err(), ErrGone) || ends[1].Lost() != nil {
		t.Errorf("lost rank %d: %v", lost.Rank(), lost.Err())
	}
	// Rank 2 had no channel to it, and finds out when it wants one.
	if n := ends[2].byRank[0]; n.Put(nil, nil) || ends[2].Lost() != n {
		t.Errorf("a message was put to one that is gone, or its loss not told: %v", n.Err())
	}
}

// TestChannel_pull copies from the memory of a process, here the own one, and tells
// when there is nothing to copy.
func TestChannel_pull(t *testing.T) {
	for _, c := range []ChannelsConfig{{}, {NoPull: true}} {
		ends := newChannels(t, 2, c)
		put(t, ends[0], ends[1], nil, nil)
		next(ends[1])
		ends[1].Release()
		from := ends[1].byRank[0]
		src, guard := []byte("some bytes that nobody has sent"), binary.NativeEndian.AppendUint64(nil, 42)
		dst := make([]byte, len(src))
		word, err := from.Pull(dst, mem.AddressOf(src), mem.AddressOf(guard))
		if may := ends[0].byRank[1].Pulls(); may != (err == nil) {
			t.Errorf("%+v: the sender is told %v, and then %v", c, may, err)
		}
		if c.NoPull {
			if err == nil {
				t.Error("pulled though that is switched off")
			}
			continue
		}
		if err != nil {
			t.Skip("process_vm_readv is not allowed here")
		}
		if word != 42 || !bytes.Equal(dst, src) {
			t.Errorf("pulled %q and guard %d", dst, word)
		}
		if word, err := from.Pull(nil, 0, mem.AddressOf(guard)); word != 42 || err != nil {
			t.Errorf("of nothing the guard is %d: %v", word, err)
		}
		for name, at := range map[string][2]uint64{"data": {8, mem.AddressOf(guard)}, "guard": {mem.AddressOf(src), 8}} {
			if _, err := from.Pull(dst, at[0], at[1]); !errors.Is(err, unix.EFAULT) {
				t.Errorf("pulling from nowhere (%s): %v", name, err)
			}
		}
		runtime.KeepAlive(src)
		runtime.KeepAlive(guard)
	}
}

// sleepUntil waits as a poller does until l has a message.
func sleepUntil(t testing.TB, l *Channels) (int, []byte) {
	t.Helper()
	for {
		if from, b := l.Next(); b != nil {
			return from.Rank(), b
		}
		fds := []unix.PollFd{{Fd: int32(l.FD()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// sleepyPut puts a message, and sleeps while there is no room or no answer.
func sleepyPut(t testing.TB, l *Channels, to int, data []byte) {
	t.Helper()
	for {
		if _, b := l.Next(); b != nil {
			t.Errorf("%d bytes came", len(b))
			l.Release()
		}
		if l.byRank[to].Put(data, nil) {
			return
		}
		if err := l.byRank[to].Err(); err != nil {
			t.Error(err)
			return
		}
		fds := []unix.PollFd{{Fd: int32(l.FD()), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, -1) // a signal may end it
	}
}

// TestChannels_sleep hands a token around among neighbours who all sleep when there
// is nothing to do, more of them than can be hot: a bell or a bit that is
// forgotten hangs it.
func TestChannels_sleep(t *testing.T) {
	const n, hops, stop = hotMax + 4, 3000, 1 << 31
	ends := newChannels(t, n, ChannelsConfig{})
	var group sync.WaitGroup
	for rank, l := range ends {
		group.Go(func() {
			for token := uint32(0); token != stop; {
				if rank != 0 || token > 0 {
					_, b := sleepUntil(t, l)
					token = binary.NativeEndian.Uint32(b)
					l.Release()
				}
				switch {
				case token == stop:
				case token == hops:
					token = stop
					for to := range n {
						if to != rank {
							sleepyPut(t, l, to, binary.NativeEndian.AppendUint32(nil, stop))
						}
					}
				default:
					to := (rank + 1 + int(token)%(n-1)) % n
					token++
					sleepyPut(t, l, to, binary.NativeEndian.AppendUint32(nil, token))
				}
			}
		})
	}
	group.Wait()
}

// TestChannels_sleepsForRoom fills a channel; its sender sleeps, and the reader wakes it.
func TestChannels_sleepsForRoom(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{Ring: ringMin})
	const messages = 2000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range messages {
			sleepyPut(t, ends[0], 1, bytes.Repeat([]byte{byte(i)}, 1+i%ends[0].MaxMessage()))
		}
	}()
	for i := range messages {
		if _, b := sleepUntil(t, ends[1]); b[0] != byte(i) || len(b) != 1+i%ends[0].MaxMessage() {
			t.Fatalf("message %d begins with %d and has %d bytes", i, b[0], len(b))
		}
		ends[1].Release()
	}
	<-done
}

// TestChannels_fair lets one neighbour fill its channel: another one is heard.
func TestChannels_fair(t *testing.T) {
	ends := newChannels(t, 3, ChannelsConfig{})
	for _, from := range ends[1:] {
		put(t, from, ends[0], nil, nil)
		next(ends[0])
		ends[0].Release()
	}
	for ends[1].byRank[0].Put(nil, nil) {
	}
	put(t, ends[2], ends[0], []byte{1}, nil)
	for i := 0; ; i++ {
		from, _ := next(ends[0])
		ends[0].Release()
		if from == 2 {
			break
		}
		if i > rowMax {
			t.Fatalf("%d messages of one neighbour while another one waits", i)
		}
	}
}

// TestChannels_bitmapIsNotTrusted lets a neighbour wipe the bitmap: messages come late
// but they come.
func TestChannels_bitmapIsNotTrusted(t *testing.T) {
	const n = hotMax + 3
	ends := newChannels(t, n, ChannelsConfig{})
	for round := range byte(3) {
		for _, from := range ends[1:] {
			put(t, from, ends[0], []byte{round}, nil)
			for _, w := range ends[0].bitmap.words {
				w.Store(0)
			}
			from.byRank[0].out.bitmap.set(60) // of nobody
		}
		for range n - 1 {
			if _, b := next(ends[0]); b[0] != round {
				t.Fatalf("round %d: got %d", round, b[0])
			}
			ends[0].Release()
		}
	}
}

// TestChannel_nonsense writes what no sender of ours writes. It ends that channel, the
// sender notices, and other neighbours do not.
func TestChannel_nonsense(t *testing.T) {
	for name, c := range map[string]struct {
		header uint64
		fill   int // messages before, to get near the end of the ring
	}{
		"too long":     {header: present | 1<<20},
		"over the end": {header: present | 3000, fill: ringMin/granule - 5},
		"unknown bits": {header: present | 1<<40 | 8},
		"not present":  {header: 8},
		"skips all":    {header: present | skip, fill: ringMin/granule - 1},
		"skip, length": {header: present | skip | 8},
	} {
		ends := newChannels(t, 3, ChannelsConfig{Ring: ringMin})
		put(t, ends[2], ends[0], []byte{1}, nil)
		put(t, ends[1], ends[0], nil, nil)
		for range 2 {
			next(ends[0])
			ends[0].Release()
		}
		out := ends[1].byRank[0]
		for range c.fill {
			put(t, ends[1], ends[0], nil, nil)
			next(ends[0])
			ends[0].Release()
		}
		out.out.header(out.out.next).Store(c.header)
		for ends[0].Lost() == nil {
			if from, b := ends[0].Next(); b != nil {
				t.Fatalf("%s: got %d bytes from rank %d", name, len(b), from.Rank())
			}
		}
		if err := ends[0].byRank[1].Err(); !errors.Is(err, errNonsense) {
			t.Errorf("%s: %v", name, err)
		}
		for n := ends[1].Lost(); n != out; n = ends[1].Lost() {
			ends[1].Next()
			runtime.Gosched()
		}
		put(t, ends[2], ends[0], []byte{2}, nil)
		if from, b := next(ends[0]); from != 2 || b[0] != 2 {
			t.Errorf("%s: rank %d says %v", name, from, b)
		}
		ends[0].Release()
	}
}

// TestChannel_liar is a receiver that has released what it never had.
func TestChannel_liar(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{Ring: ringMin})
	put(t, ends[0], ends[1], nil, nil)
	out := ends[0].byRank[1]
	out.out.head.Store(1 << 40)
	for out.Put(nil, nil) {
	}
	if ends[0].Lost() != out || !errors.Is(out.Err(), errLied) {
		t.Errorf("the liar is believed: %v", out.Err())
	}
}

func TestChannels_Add_errors(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{})
	far := ends[1].Name() + "0"
	if _, err := ends[0].Add(1, ends[1].Name()); err == nil {
		t.Error("a rank was added twice")
	}
	if _, err := ends[0].Add(0, ends[1].Name()); err == nil {
		t.Error("a channel to the own rank")
	}
	if _, err := ends[0].Add(5, far); err == nil || ends[0].Near(far) || ends[0].Near("") {
		t.Error("a channel to where none leads")
	}
	for _, c := range []ChannelsConfig{{Ring: 1000}, {Ring: 3 << 14}, {Ring: 1 << 40}, {Rank: -1}} {
		if _, err := OpenChannels(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// TestChannel_handshakes sends handshakes that make no sense, and one for a rank that has
// a channel already.
func TestChannel_handshakes(t *testing.T) {
	ends := newChannels(t, 3, ChannelsConfig{})
	put(t, ends[1], ends[0], nil, nil)
	good := bodyOf(&call{Rank: 1})
	for _, c := range []struct {
		call []byte
		fds  []int
	}{
		{nil, nil}, {[]byte("who is there?"), nil}, {good, nil}, {good[1:], []int{int(ends[2].bell)}},
		{good, []int{int(ends[2].bell)}},
	} {
		asked, err := ends[2].request(channelName(ends[0].Name()), c.call, c.fds...)
		if err != nil {
			t.Fatal(err)
		}
		fds := []unix.PollFd{{Fd: int32(asked), Events: unix.POLLIN}}
		for n := 0; n <= 0; { // a signal may end it
			if n, err = unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
				t.Fatal(err)
			}
		}
		l, err := receive(asked)
		var a answer
		if err == nil && len(l.body) > 0 && (!parse(l.body, &a) || a.Status == statusOK || len(l.fds) > 0) {
			t.Errorf("the answer to %q is %+v with %d descriptors", c.call, a, len(l.fds))
		}
		unix.Close(asked)
	}
	put(t, ends[2], ends[0], nil, nil) // the listener is open
}

// FuzzChannel_receive writes whatever there is into a ring: what is handed out lies
// inside of it and is no longer than a message may be.
func FuzzChannel_receive(f *testing.F) {
	f.Add([]byte{24, 0, 0, 0, 0, 0, 0, 0x80}, uint16(0))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0xc0}, uint16(ringMin-granule))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		memory := make([]uint64, (dataAt+ringMin)/8)
		mapped := mem.BytesOf(memory)
		in := &channelIn{reader: reader{ring: newRing(mapped[:dataAt:dataAt], mapped[dataAt:]), most: channelMost(ringMin)}}
		in.next = uint64(at) % ringMin &^ (granule - 1)
		in.told, in.dirtied = in.next, in.next
		for i := range min(len(b), ringMin) {
			in.data[(in.next+uint64(i))&in.mask] = b[i]
		}
		for range ringMin {
			m := in.take()
			if m == nil {
				break
			}
			if len(m) > in.most || in.next&(granule-1) != 0 {
				t.Fatalf("%d bytes at %d", len(m), in.next)
			}
			in.release()
		}
	})
}

func TestAllocs_channel(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{})
	head, data, dst := make([]byte, 16), make([]byte, 5000), make([]byte, 5000)
	for k, from := range ends {
		put(t, from, ends[1-k], nil, nil)
		next(ends[1-k])
		ends[1-k].Release()
	}
	guard := make([]byte, 8)
	pulls := ends[0].byRank[1].Pulls()
	if n := testing.AllocsPerRun(1000, func() {
		for k, from := range ends {
			if !from.byRank[1-k].Put(head, data) {
				panic("no room")
			}
			ends[1-k].FD()
			if _, b := ends[1-k].Next(); len(b) != 5016 {
				panic("wrong message")
			}
			ends[1-k].Release()
		}
		if pulls {
			if _, err := ends[1].byRank[0].Pull(dst, mem.AddressOf(data), mem.AddressOf(guard)); err != nil {
				panic(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}
