package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// allocated returns n bytes of Alloc, which must be such as it promises.
func allocated(p *mpi.Proc, n int) ([]byte, error) {
	b, err := mpi.Alloc[byte](p, n)
	if err != nil {
		return nil, err
	}
	if len(b) != n || mem.AddressOf(b)%64 != 0 {
		return nil, fmt.Errorf("%d bytes at %#x, want %d at a multiple of 64", len(b), mem.AddressOf(b), n)
	}
	for i, v := range b {
		if v != 0 {
			return nil, fmt.Errorf("byte %d of %d is %d", i, n, v)
		}
	}
	return b, nil
}

// segmentsMapped returns how often this process, all simulated ones together, has mapped memory that processes have in common.
func segmentsMapped(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("xwarp-segment"))
}

// Memory of Alloc that a ghost may send from takes pages when they are touched.
func TestAlloc_takesNoPages(t *testing.T) {
	const size = 256 << 20
	w := newHostedWorld(sim.Config{Seed: 1}, 2, 2, 1)
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		before := sharedResident(t)
		b, err := mpi.Alloc[byte](p, size)
		if err != nil {
			return err
		}
		b[size/2] = 1
		took := sharedResident(t) - before
		if segmentsMapped(t) == 0 || took >= size/4 {
			err = fmt.Errorf("%d segments are mapped, and %d bytes were taken by one that was touched once", segmentsMapped(t), took)
		}
		return errors.Join(err, mpi.Free(p, b), p.World().Barrier())
	})
	if err := w.Run(); err != nil {
		t.Error(err)
	}
}

// sharedResident returns how many bytes of memory this process has that others may map.
func sharedResident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	var kib int
	_, line, found := bytes.Cut(text, []byte("\nRssShmem:"))
	if _, scan := fmt.Sscanf(string(line), "%d kB", &kib); err != nil || !found || scan != nil {
		t.Fatal(err, scan)
	}
	return kib << 10
}

// A large message that lies in memory of Alloc, and whose sender computes, is there before the sender calls MPI
// again if it has a ghost that may send it, each time that the memory is made anew. Nothing of what was freed is left.
func TestAlloc_whileSenderComputes(t *testing.T) {
	oneGoroutine(t)
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC, mpi.Hybrid} {
		for _, way := range []struct {
			ghosts, hosts int
			async         mpi.Async
			want          bool
		}{{1, 2, mpi.AsyncOn, true}, {2, 2, mpi.AsyncAuto, true}, {1, 2, mpi.AsyncOff, false}, {0, 2, mpi.AsyncOn, false}, {1, 1, mpi.AsyncOn, false}} {
			what := fmt.Sprintf("%v, %+v", transport, way)
			w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, way.hosts, way.ghosts)
			w.mpi.Transport, w.mpi.Async = transport, way.async
			const turns, size = 2, 1 << 20
			mapped := segmentsMapped(t)
			var called, ended [turns]mono.Time
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				c := p.World()
				for turn := range turns {
					memory, err := allocated(p, size+10)
					if err = errors.Join(err, c.Barrier()); err != nil { // ranks that are connected
						return err
					}
					data := memory[3:][:size]
					if c.Rank() == 1 {
						if _, err = mpi.Recv(c, data, 0, 5); err == nil {
							ended[turn], err = task.Now(), checkPattern(data, turn)
						}
					} else {
						pattern(data, turn)
						var r mpi.Request
						if r, err = mpi.Isend(c, data, 1, 5); err != nil {
							return err
						}
						task.Sleep(300 * mono.Millisecond)
						called[turn] = task.Now()
						_, err = r.Wait()
						clear(data)
					}
					part := wantClass(mpi.Free(p, memory[:size]), mpi.ErrBase)
					if err = errors.Join(err, part, mpi.Free(p, memory), wantClass(mpi.Free(p, memory), mpi.ErrBase), c.Barrier()); err != nil {
						return err
					}
				}
				if n := p.Stats().Delegated; c.Rank() == 0 && (n == turns) != way.want {
					return fmt.Errorf("%d messages were delegated", n)
				}
				return nil
			})
			if err := w.Run(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if n := segmentsMapped(t); n != mapped {
				t.Errorf("%s: %d segments are mapped, and %d before", what, n, mapped)
			}
			for turn := range turns {
				if (ended[turn] < called[turn]) != way.want {
					t.Errorf("%s: the message was there at %v, and its sender called MPI at %v", what, ended[turn], called[turn])
				}
			}
		}
	}
}

// Memory is made and freed all the time, more of it than a ghost maps, while frames are lost and a ghost dies: what
// Alloc returns is as good as ever.
func TestAlloc_losesGhost(t *testing.T) {
	delegated := uint64(0)
	for seed := range seeds(t, 20) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 8))
		m := mortalsOf(newHostedWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05, Dup: 0.02}}, Limit: 60 * mono.Second}, 2, 2, 1))
		m.mpi.Transport, m.mpi.Ghosts.Failure = mpi.Transport(seed%4), mpi.GhostFallback
		m.tells = true
		kept, at := []int{1, 5, 300}[seed%3], mono.Duration(rnd.IntN(int(10*mono.Millisecond)))
		m.play(t, func(task *sim.Task, p *mpi.Proc) error {
			c, own := p.World(), rand.New(rand.NewPCG(uint64(seed), uint64(p.World().Rank())))
			if c.Rank() == 0 && seed%4 != 3 {
				m.killed[2] = task.Now().Add(at)
			}
			var all [][]byte
			for turn := range 2 * kept {
				memory, err := allocated(p, 20_000+own.IntN(20_000))
				if err != nil {
					return err
				}
				if all = append(all, memory); turn%10 == 9 || turn+1 == 2*kept {
					data := all[own.IntN(len(all))][:20_000]
					pattern(data, turn)
					into := make([]byte, len(data))
					if _, err = mpi.Sendrecv(c, data, 1-c.Rank(), 1, into, 1-c.Rank(), 1); err != nil {
						return err
					}
					r, failed := mpi.Isend(c, data, 1-c.Rank(), 2)
					_, got := mpi.Recv(c, into, 1-c.Rank(), 2)
					if err = errors.Join(failed, got, checkPattern(into, turn)); err == nil {
						_, err = r.Wait()
					}
				}
				pattern(memory, 1)
				if len(all) > kept && err == nil {
					i := own.IntN(len(all))
					err = mpi.Free(p, all[i])
					all[i] = all[len(all)-1]
					all = all[:len(all)-1]
				}
				if err != nil {
					return err
				}
			}
			delegated += p.Stats().Delegated
			for _, memory := range all {
				if err := mpi.Free(p, memory); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if delegated == 0 {
		t.Error("no message was delegated")
	}
}
