package shm

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

const segmentTestLen = 5 << 12

// segmentMaps returns how often this process has mapped segments.
func segmentMaps(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte(segmentName))
}

// All ends map the same memory, as often as they like, and of none that was closed
// anything is left.
func TestSegment(t *testing.T) {
	ends := newChannels(t, 20, ChannelsConfig{}) // more than a socket holds calls
	files := testenv.OpenFiles(t)
	for _, size := range []int{segmentTestLen, segmentHuge - 1, segmentHuge, mem.HugePage - 1, 2*mem.HugePage + 1} {
		s, err := ends[0].NewSegment(size)
		if err != nil {
			t.Fatal(err)
		}
		mapped := make([]*Segment, len(ends))
		mapped[0] = s
		var group sync.WaitGroup
		for i, l := range ends[1:] {
			group.Go(func() {
				var err error
				if mapped[1+i], err = l.byRank[0].OpenSegment(s.ID(), size); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		s.Withdraw()
		if _, err := ends[1].byRank[0].OpenSegment(s.ID(), size); err == nil {
			t.Error("a segment that was withdrawn was mapped")
		}
		for i, m := range mapped {
			if err := m.Populate(100*i, 100); err != nil {
				t.Error(err)
			}
			m.Bytes()[100*i] = byte(i + 1)
		}
		for i := range mapped {
			if got := s.Bytes()[100*i]; got != byte(i+1) {
				t.Errorf("end %d has written %d", i, got)
			}
		}
		for _, m := range mapped {
			for range 2 {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if n := segmentMaps(t); n != 0 {
		t.Errorf("segments are mapped %d times still", n)
	}
	// The listener closes what the latest call came with after its answer; of a leak there were
	// three at least.
	if now := testenv.OpenFiles(t); now > files+1 {
		t.Errorf("%d files are open, there were %d", now, files)
	}
}

// Segments that would waste a part of a huge page are one as long as there are few, and neighbours open all of them.
func TestSegment_hugePages(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{})
	var all []*Segment
	for i := range segmentsHuge + 2 {
		s, err := ends[0].NewSegment(segmentHuge)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := ends[1].byRank[0].OpenSegment(s.ID(), segmentHuge)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s, peer)
		if n := len(s.Bytes()); (n == mem.HugePage) != (i < segmentsHuge) || n != len(peer.Bytes()) {
			t.Fatalf("segment %d has %d bytes, and %d at its neighbour", i, n, len(peer.Bytes()))
		}
		s.Bytes()[segmentHuge-1] = byte(i)
		if got := peer.Bytes()[segmentHuge-1]; got != byte(i) {
			t.Fatalf("segment %d has %d", i, got)
		}
	}
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if s, err := ends[0].NewSegment(segmentHuge); err != nil || len(s.Bytes()) != mem.HugePage || s.Close() != nil {
		t.Errorf("none is one after all are closed: %v", err)
	}
	long, err := ends[0].NewSegment(3*mem.HugePage - 1)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if mem.Collapse(long.Bytes()[:mem.HugePage]) == 0 {
		t.Skip("this kernel, or its memory, has no huge pages for a memfd (Linux 6.1)")
	}
	if err := long.Populate(1, 3*mem.HugePage-2); err != nil { // a page before the second huge one, and not all of the third
		t.Fatal(err)
	}
	if n := testenv.HugeKiB(t, segmentName); n != 4096 {
		t.Errorf("%d KiB are on huge pages, want those of two", n)
	}
}

// What cannot be had is an error: no segment of that number, another size, no neighbour any
// more. Whoever closes its channels withdraws what it offers.
func TestSegment_errors(t *testing.T) {
	ends := newChannels(t, 3, ChannelsConfig{})
	if _, err := ends[0].NewSegment(0); err == nil {
		t.Error("a segment of no bytes")
	}
	if _, err := ends[0].NewSegment(1 << 62); err == nil {
		t.Error("a segment of more memory than there is")
	}
	odd, err := ends[0].NewSegment(os.Getpagesize() + 2)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(odd.Populate(0, os.Getpagesize()+2), odd.Close()); err != nil {
		t.Errorf("a segment that ends soon behind the beginning of a page: %v", err)
	}
	s, err := ends[0].NewSegment(segmentTestLen)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := ends[1].byRank[0]
	for _, size := range []int{1, segmentTestLen - 1, segmentTestLen + 1} {
		if _, err := to.OpenSegment(s.ID(), size); err == nil {
			t.Errorf("%d bytes of a segment of %d were mapped", size, segmentTestLen)
		}
	}
	if _, err := to.OpenSegment(s.ID()+1, segmentTestLen); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a segment that nobody has made: %v", err)
	}
	if _, err := ends[1].byRank[2].OpenSegment(s.ID(), segmentTestLen); err == nil {
		t.Error("a segment of somebody else")
	}
	fd, err := to.fetchSegment(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("a neighbour cuts the segment off: %v", err)
	}
	unix.Close(fd)
	files := testenv.OpenFiles(t)
	if err := ends[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := to.OpenSegment(s.ID(), segmentTestLen); !errors.Is(err, ErrGone) {
		t.Errorf("a segment of who is gone: %v", err)
	}
	if now := testenv.OpenFiles(t); now >= files {
		t.Errorf("%d files are open, there were %d", now, files)
	}
	s.Bytes()[0] = 1 // its maker has it still
}

// A process that is killed takes nothing with it, and leaves nothing.
func TestSegment_killed(t *testing.T) {
	files := 0
	for round := range 3 {
		l, n, child := startNeighbour(t, "segment")
		s, err := l.NewSegment(segmentTestLen)
		if err != nil {
			t.Fatal(err)
		}
		for !n.Put([]byte("there"), nil) {
			l.Next()
		}
		if _, b := next(l); string(b) != "filled" {
			t.Fatalf("the neighbour says %q", b)
		}
		l.Release()
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed, and says so
		for i, b := range s.Bytes() {
			if b != byte(i%251) {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
		if err := errors.Join(s.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if now := testenv.OpenFiles(t); round == 0 {
			files = now
		} else if now != files {
			t.Errorf("round %d: %d files are open, there were %d", round, now, files)
		}
	}
	if n := segmentMaps(t); n != 0 {
		t.Errorf("segments are mapped %d times still", n)
	}
}

// An answer is not missed where the other end closes behind it, though it does both between two looks of one
// receive: at the messages, and whether there will be more. That is so once in some thousand times.
func TestReceiveAnswer_closed(t *testing.T) {
	lines := make(chan int)
	var group sync.WaitGroup
	group.Go(func() {
		for line := range lines {
			reply(line, bodyOf(&segmentAnswer{}))
			unix.Close(line)
		}
	})
	missed := 0
	for range 20_000 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		lines <- pair[1]
		got, err := receiveAnswer(pair[0])
		for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			got, err = receiveAnswer(pair[0])
		}
		var a segmentAnswer
		if err != nil || len(got.body) > 0 && !parse(got.body, &a) {
			t.Fatalf("%d bytes: %v", len(got.body), err)
		}
		if len(got.body) == 0 {
			missed++
		}
		unix.Close(pair[0])
	}
	close(lines)
	group.Wait()
	if missed > 0 {
		t.Errorf("%d answers were missed", missed)
	}
}
