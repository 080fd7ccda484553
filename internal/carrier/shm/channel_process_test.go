package shm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// neighbourEnv has what a neighbour does, and the name of the channels that it
// does it to.
const neighbourEnv = "XWARP_TEST_NEIGHBOUR"

// neighbour is rank 1 in a process of its own.
func neighbour(role string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	what, name, _ := strings.Cut(role, " ")
	l, err := OpenChannels(ChannelsConfig{Rank: 1})
	fail(err)
	n, err := l.Add(0, name)
	fail(err)
	fmt.Println(l.Name())
	switch what {
	case "serve": // memory to pull from
		memory := make([]byte, 4<<20)
		for i := range memory {
			memory[i] = byte(i % 251)
		}
		for !n.Put(binary.NativeEndian.AppendUint64(nil, mem.AddressOf(memory)), nil) {
			l.Next()
		}
		for l.Lost() == nil {
			l.Next()
		}
		runtime.KeepAlive(memory)
	case "flood": // until it is killed, with messages in whose middle it may be
		data := make([]byte, l.MaxMessage())
		for i := uint64(0); ; l.Next() {
			for n.Put(data[:floodLen(i, l.MaxMessage())], nil) {
				i++
				binary.NativeEndian.PutUint64(data, i)
				for k := 8; k < len(data); k += 509 {
					data[k] = byte(i)
				}
			}
		}
	case "segment": // of rank 0, filled, and held until it is killed
		for b := []byte(nil); b == nil; _, b = l.Next() {
		}
		s, err := n.OpenSegment(1, segmentTestLen)
		fail(err)
		fail(s.Populate(0, segmentTestLen))
		for i := range s.Bytes() {
			s.Bytes()[i] = byte(i % 251)
		}
		for !n.Put([]byte("filled"), nil) {
			l.Next()
		}
		for { // until it is killed
			l.Next()
		}
	case "race": // see TestChannels_settle
		race(l, n)
	case "echo":
		for !n.Put(nil, nil) { // opens the way back
			l.Next()
		}
		for l.Lost() == nil {
			if _, b := l.Next(); b != nil {
				n.Put(b, nil) // there is room: one message is under way
				l.Release()
			}
		}
	}
	os.Exit(0)
}

// startNeighbour starts rank 1, which ends when l does.
func startNeighbour(t testing.TB, what string) (l *Channels, n *Channel, child *exec.Cmd) {
	t.Helper()
	l, err := OpenChannels(ChannelsConfig{Rank: 0})
	if err != nil {
		t.Fatal(err)
	}
	v := exec.Command(os.Args[0])
	v.Env = append(os.Environ(), neighbourEnv+"="+what+" "+l.Name())
	v.Stderr = os.Stderr
	out, err := v.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		_ = v.Wait() // it may have been killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the neighbour says %q: %v", line, err)
	}
	if n, err = l.Add(1, strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return l, n, v
}

// floodLen is the length of message i of a flood.
func floodLen(i uint64, most int) int { return 8 + int(i*i*7919)%(most-8+1) }

// TestChannel_killed kills a neighbour while it puts messages. What it has put is
// whole and in order, its loss is told behind that, and nothing of it is left.
func TestChannel_killed(t *testing.T) {
	files := 0
	for round := range uint64(5) {
		l, n, child := startNeighbour(t, "flood")
		count := uint64(0)
		for gone := false; !gone; gone = l.Lost() != nil {
			from, b := l.Next()
			if b == nil {
				continue
			}
			if from != n || len(b) != floodLen(count, l.MaxMessage()) || binary.NativeEndian.Uint64(b) != count {
				t.Fatalf("round %d: message %d has %d bytes and number %d", round, count, len(b), binary.NativeEndian.Uint64(b))
			}
			for k := 8; k < len(b); k += 509 {
				if b[k] != byte(count) {
					t.Fatalf("round %d: message %d differs at %d", round, count, k)
				}
			}
			l.Release()
			if count++; count == 100+37*round {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !errors.Is(n.Err(), ErrGone) || n.Put(nil, nil) {
			t.Errorf("round %d: the error is %v, and messages are taken", round, n.Err())
		}
		_ = child.Wait() // it was killed, and says so
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if now := testenv.OpenFiles(t); round == 0 {
			files = now
		} else if now != files {
			t.Errorf("round %d: %d files are open, there were %d", round, now, files)
		}
	}
}

// BenchmarkChannel_pingPong8 is a message of 24 bytes there and back between two
// processes, which is what 8 bytes of MPI are: half of an operation is the
// latency of a channel.
func BenchmarkChannel_pingPong8(b *testing.B) {
	l, n, _ := startNeighbour(b, "echo")
	msg := make([]byte, 24)
	next(l) // it is there
	l.Release()
	for b.Loop() {
		for !n.Put(msg, nil) {
			l.Next()
		}
		for {
			if _, m := l.Next(); m != nil {
				break
			}
		}
		l.Release()
	}
}

// BenchmarkChannel_pull copies from another process.
func BenchmarkChannel_pull(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l, n, _ := startNeighbour(b, "serve")
			_, m := next(l)
			at := binary.NativeEndian.Uint64(m)
			l.Release()
			dst := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := n.Pull(dst, at, at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
