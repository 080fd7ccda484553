package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs/device"
)

// runOnHosts runs body on one rank per host of a testbed, over real devices.
func runOnHosts(t *testing.T, bed testbed.Config, spec device.Spec, body func(*mpi.Proc) error) {
	t.Helper()
	testenv.NeedRoot(t)
	tb, err := testbed.New(bed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}()
	runOnEach(t, tb.Hosts, spec, mpi.Config{NoShared: true}, body) // hosts of a testbed share memory
}

// runOnEach runs body on one rank per host.
func runOnEach(t *testing.T, hosts []*testbed.Host, spec device.Spec, cfg mpi.Config, body func(*mpi.Proc) error) {
	t.Helper()
	jobs := boot.Local(len(hosts))
	errs := make([]error, len(jobs))
	var group sync.WaitGroup
	for rank, host := range hosts {
		group.Go(func() {
			if errs[rank] = runOn(host, jobs[rank], spec, cfg, body); errs[rank] != nil {
				jobs[rank].Abort(1, errs[rank].Error())
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func runOn(host *testbed.Host, job boot.Job, spec device.Spec, cfg mpi.Config, body func(*mpi.Proc) error) error {
	spec.Device, spec.Key = host.Dev, job.Key()
	spec.Poller.Ranks, spec.Poller.Goroutines = job.Size(), true
	spec.Faults.Seed += uint64(job.Rank())
	return host.Do(func() error { // connections are made when there is something to send
		ctx, err := device.Open(spec)
		if err != nil {
			return err
		}
		p, err := mpi.New(job, ctx, cfg)
		if err != nil {
			return err
		}
		if err := body(p); err != nil {
			return errors.Join(err, ctx.Close())
		}
		return p.Finalize()
	})
}

// TestRandom_messagesOverVeth is TestRandom_messagesOverBadNetwork on real
// devices. What is lost, doubled and held back is what our decorator does so;
// veth itself does it to nobody.
func TestRandom_messagesOverVeth(t *testing.T) {
	bad := fault.Config{Seed: 11, Loss: 0.05, Dup: 0.05, Reorder: 0.05}
	for _, c := range []struct {
		name string
		bed  testbed.Config
		spec device.Spec
	}{
		{"xdp", testbed.Config{}, device.Spec{Fabric: "xdp", Faults: bad}},
		{"xdp1500", testbed.Config{MTU: 1500}, device.Spec{Fabric: "xdp", Faults: bad}},
		{"udp", testbed.Config{Hosts: 3}, device.Spec{Fabric: "udp", Faults: bad}},
		{"quiet", testbed.Config{Hosts: 3}, device.Spec{Fabric: "xdp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runOnHosts(t, c.bed, c.spec, func(p *mpi.Proc) error {
				return exercise{seed: 1, messages: 10_000, maxLen: 4 << 20, tags: 5, wild: 0.3}.run(p)
			})
		})
	}
}

// Somebody on the same network says again and again, before each message, that the other rank
// has another Ethernet address, and the kernel believes it. Messages go on.
func TestNetwork_liesAboutNeighbours(t *testing.T) {
	testenv.NeedRoot(t)
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC} {
		t.Run(transport.String(), func(t *testing.T) {
			tb, err := testbed.New(testbed.Config{Hosts: 3, Switch: testbed.Bridge})
			if err != nil {
				t.Fatal(err)
			}
			defer tb.Close()
			ranks, forger := tb.Hosts[:2], tb.Hosts[2]
			if err := errors.Join(hosttest.Gullible(ranks[0]), hosttest.Gullible(ranks[1])); err != nil {
				t.Fatal(err)
			}
			nobodys := []byte{2, 6, 6, 6, 6, 6}
			lie := func() error {
				return errors.Join(hosttest.ForgeNeighbour(forger, ranks[0].Addr, nobodys), hosttest.ForgeNeighbour(forger, ranks[1].Addr, nobodys))
			}
			spec, cfg := device.Spec{Fabric: "xdp", RC: transport == mpi.RC}, mpi.Config{Transport: transport, NoShared: true}
			runOnEach(t, ranks, spec, cfg, func(p *mpi.Proc) error {
				for i := range 40 {
					if err := tell(p.World(), i%2, int64(i), lie); err != nil {
						return fmt.Errorf("message %d: %w", i, err)
					}
				}
				return nil
			})
		})
	}
}

// tell sends a number from one of two ranks to the other, behind a lie.
func tell(c *mpi.Comm, from int, number int64, lie func() error) error {
	word := []int64{number}
	if c.Rank() == from {
		if err := lie(); err != nil {
			return err
		}
		return mpi.Send(c, word, 1-from, 1)
	}
	word[0] = -1
	if _, err := mpi.Recv(c, word, from, 1); err != nil {
		return err
	}
	if word[0] != number {
		return fmt.Errorf("it is %d, want %d", word[0], number)
	}
	return nil
}

// TestRandomTraffic_bothPathsOverVeth runs over real devices that lose and reorder what is in datagrams, and what is
// in the connection beside them.
func TestRandomTraffic_bothPathsOverVeth(t *testing.T) {
	for _, share := range []float64{0.01, 0.05} {
		if slow && share < 0.05 {
			continue
		}
		tb := hosttest.New(t, testbed.Config{MTU: 1500})
		var bad []*hosttest.BadTCP
		for _, h := range tb.Hosts {
			bad = append(bad, hosttest.SpoilTCP(t, h, share, share))
		}
		var runs []*randomTraffic
		for seed := range uint64(2) {
			m := newRandomTraffic(seed, len(tb.Hosts), 0)
			m.longer(rand.New(rand.NewPCG(seed, 5)), seed == 0)
			runs = append(runs, m)
		}
		spec := device.Spec{Fabric: "xdp", Faults: fault.Config{Loss: share, Dup: share, Reorder: share}}
		spec.Beside(true)
		cfg := mpi.Config{NoShared: true, Transport: mpi.Hybrid, PromoteMessages: 1}
		runOnEach(t, tb.Hosts, spec, cfg, func(p *mpi.Proc) error {
			for i, m := range runs {
				if err := m.run(p); err != nil {
					return fmt.Errorf("seed %d: %w", i, err)
				}
			}
			if n := mpi.Linked(p); n < 10 {
				return fmt.Errorf("only %d messages went over the connection", n)
			}
			return nil
		})
		for i, b := range bad {
			if n, err := b.Done(); err != nil || n[0] == 0 || n[1] == 0 {
				t.Errorf("%v of what TCP sends: host %d has lost %d packets, and %d came later: %v", share, i, n[0], n[1], err)
			}
		}
	}
}
