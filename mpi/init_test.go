package mpi

import (
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/verbs/device"
)

// Other hosts cannot reach the loopback device.
func TestOutwardAddr(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		addr, err := outwardAddr(ipv6)
		switch {
		case err != nil && !strings.Contains(err.Error(), config.EnvDevice):
			t.Errorf("IPv6 %v: %v does not say what to do", ipv6, err)
		case err != nil:
			t.Logf("IPv6 %v: no default route here", ipv6)
		case addr.Is6() != ipv6 || addr.IsLoopback() || addr.IsUnspecified():
			t.Errorf("IPv6 %v: %v", ipv6, addr)
		}
	}
}

// Rows that are wrong are refused before anything is opened; those that are right
// are what every rank goes by.
func TestConfig_algorithms(t *testing.T) {
	err := RunWith(2, Config{Algorithms: "bcast=teleport"}, func(*Proc) error { return nil })
	if ClassOf(err) != ErrArg || !strings.Contains(err.Error(), EnvColl) {
		t.Errorf("an algorithm that there is not: %v", err)
	}
	err = RunWith(3, Config{Algorithms: "bcast:1k=chain,allreduce=ring allgather:0:2=linear"}, func(p *Proc) error {
		v := []int32{0, 0, 0}
		if p.World().Rank() == 1 {
			v = []int32{1, 2, 3}
		}
		if err := Bcast(p.World(), v, 1); err != nil {
			return err
		}
		sum := make([]int32, 3)
		if err := Allreduce(p.World(), v, sum, Sum); err != nil {
			return err
		}
		if v[2] != 3 || sum[2] != 9 {
			t.Errorf("Bcast %v, Allreduce %v", v, sum)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if cfg, spec, err := fromEnv(func(name string) (string, bool) {
		v, ok := map[string]string{
			EnvTransport: "ud", EnvRendezvous: "read", EnvThreads: "serialized", EnvBulk: "frames", EnvFaults: "dup=0.5", EnvPromote: "3",
			EnvShared: "0", EnvCalibrate: "0", EnvEager: "0", config.EnvMachine: "8/4", EnvPeerLost: "2s", config.EnvIPv6: "1",
		}[name]
		return v, ok
	}); err != nil || cfg.Transport != UD || cfg.Rendezvous != RendezvousRead || cfg.Threads != ThreadSerialized || cfg.PromoteMessages != 3 ||
		!cfg.NoShared || !cfg.NoCalibrate || cfg.EagerMax != -1 || spec.Bulk != device.BulkFrames || spec.Faults.Dup != 0.5 || !spec.IPv6 ||
		spec.Poller.Ranks != 8 || spec.Poller.Cores != 4 || spec.Dgram.PeerLost != 2*time.Second {
		t.Errorf("%+v, %+v, %v", cfg, spec, err)
	}
	if cfg, _, err := fromEnv(func(name string) (string, bool) { return "bcast=chain", name == EnvColl }); err != nil || cfg.Algorithms != "bcast=chain" {
		t.Errorf("%s: %q, %v", EnvColl, cfg.Algorithms, err)
	}
}
