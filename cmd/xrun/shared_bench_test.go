package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asPairs makes the test binary a rank that talks to the one that is half of the
// ranks further on, all pairs at once.
const asPairs = "as-mpi-pairs"

// pair is one such rank.
type pair struct {
	w       *mpi.Comm
	peer    int
	first   bool
	bufs    [][]byte
	pending []mpi.Request
}

// pairsMain prints, for each pair, the best of some rounds: half a round trip of
// 8 bytes and the time for one of many messages of 8 bytes in ns, and bandwidth
// in Gbit/s. The best tells most on a machine that does other work, too.
func pairsMain(w *mpi.Comm) error {
	const window, large, rounds = 64, 1 << 20, 9
	x := &pair{w: w, peer: (w.Rank() + w.Size()/2) % w.Size(), first: w.Rank() < w.Size()/2, pending: make([]mpi.Request, window)}
	for range window {
		b, err := mpi.Alloc[byte](w.Proc(), 8)
		if err != nil {
			return err
		}
		x.bufs = append(x.bufs, b)
	}
	big, err := mpi.Alloc[byte](w.Proc(), 4*large)
	if err != nil {
		return err
	}
	bigs := [][]byte{big[:large], big[large:][:large], big[2*large:][:large], big[3*large:]}
	lat, each, bw := math.Inf(1), math.Inf(1), 0.0
	for range rounds {
		t, err := x.timed(3000, x.pingPong)
		if err != nil {
			return err
		}
		lat = min(lat, t/2)
		if t, err = x.timed(300, func() error { return x.stream(x.bufs) }); err != nil {
			return err
		}
		each = min(each, t/window)
		if t, err = x.timed(12, func() error { return x.stream(bigs) }); err != nil {
			return err
		}
		bw = max(bw, 8*4*large/t)
	}
	if x.first {
		fmt.Println(lat, each, bw)
	}
	return nil
}

// timed returns how many ns fn takes, called n times by all ranks.
func (x *pair) timed(n int, fn func() error) (float64, error) {
	if err := x.w.Barrier(); err != nil {
		return 0, err
	}
	begin := mono.Real{}.Now()
	for range n {
		if err := fn(); err != nil {
			return 0, err
		}
	}
	return float64(mono.Real{}.Now().Sub(begin)) / float64(n), nil
}

func (x *pair) pingPong() error {
	if x.first {
		if err := mpi.Send(x.w, x.bufs[0], x.peer, 1); err != nil {
			return err
		}
	}
	if _, err := mpi.Recv(x.w, x.bufs[0], x.peer, 1); err != nil || x.first {
		return err
	}
	return mpi.Send(x.w, x.bufs[0], x.peer, 1)
}

// stream sends all of bufs one way, and a byte back.
func (x *pair) stream(bufs [][]byte) (err error) {
	for i, b := range bufs {
		if x.first {
			x.pending[i], err = mpi.Isend(x.w, b, x.peer, 2)
		} else {
			x.pending[i], err = mpi.Irecv(x.w, b, x.peer, 2)
		}
		if err != nil {
			return err
		}
	}
	if err := mpi.Waitall(x.pending[:len(bufs)]); err != nil {
		return err
	}
	var answer [1]byte
	if x.first {
		_, err = mpi.Recv(x.w, answer[:], x.peer, 3)
		return err
	}
	return mpi.Send(x.w, answer[:], x.peer, 3)
}

// BenchmarkQueues has four ranks on two hosts talk in pairs, with a NIC for each,
// with one queue for both of a host, and with queues of their own on one NIC, in
// turns. It reports what that costs against a NIC for each: 1.1 is a tenth more
// time, or less bandwidth. Give it some rounds: -benchtime 9x.
func BenchmarkQueues(b *testing.B) {
	testenv.NeedRoot(b)
	modes := []string{"per-rank", "shared", "steered"}
	figures := map[string][3][]float64{}
	for range b.N {
		for _, mode := range modes {
			cmd := command("-n", "4", "--testbed", "2", "--switch", "xdp", "--queues", mode, "--quiet", self, asPairs)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				b.Fatal(err)
			}
			all := figures[mode]
			for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				var f [3]float64
				if _, err := fmt.Sscan(line, &f[0], &f[1], &f[2]); err != nil {
					b.Fatalf("%q: %v", line, err)
				}
				for i := range f {
					all[i] = append(all[i], f[i])
				}
			}
			figures[mode] = all
		}
	}
	median := func(mode string, which int) float64 {
		f := figures[mode][which]
		slices.Sort(f)
		return f[len(f)/2]
	}
	for i, name := range []string{"latency", "message", "bandwidth"} {
		b.ReportMetric(median("per-rank", i), name)
		for _, mode := range modes[1:] {
			ratio := median(mode, i) / median("per-rank", i)
			if name == "bandwidth" {
				ratio = 1 / ratio
			}
			b.ReportMetric(ratio, name+"-"+mode+"/own")
		}
	}
	b.ReportMetric(0, "ns/op")
}
