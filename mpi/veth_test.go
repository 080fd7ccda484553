package mpi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
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
	jobs := boot.Local(len(tb.Hosts))
	errs := make([]error, len(jobs))
	var group sync.WaitGroup
	for rank, host := range tb.Hosts {
		group.Go(func() {
			if errs[rank] = runOn(host, jobs[rank], spec, body); errs[rank] != nil {
				jobs[rank].Abort(1, errs[rank].Error())
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func runOn(host *testbed.Host, job boot.Job, spec device.Spec, body func(*mpi.Proc) error) error {
	spec.Device, spec.Key = host.Dev, job.Key()
	spec.Poller.Ranks, spec.Poller.Goroutines = job.Size(), true
	spec.Faults.Seed += uint64(job.Rank())
	var ctx *verbs.Context
	err := host.Do(func() (err error) {
		ctx, err = device.Open(spec)
		return err
	})
	if err != nil {
		return err
	}
	p, err := mpi.New(job, ctx, mpi.Config{})
	if err != nil {
		return err
	}
	if err := body(p); err != nil {
		return errors.Join(err, ctx.Close())
	}
	return p.Finalize()
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
