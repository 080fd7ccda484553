package mpi

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/verbs/device"
)

// A rank with another secret is lost to the others, and they to it: both are told that
// something came that was not encrypted with theirs.
func TestRun_otherSecret(t *testing.T) {
	t.Setenv(config.EnvShared, "0")
	cfg, spec, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	spec.Fabric, spec.Device, spec.Arena = "udp", "", localArena
	spec.Poller.Ranks, spec.Poller.Goroutines = 2, true
	spec.Dgram.PeerLost = 300 * mono.Millisecond
	for _, cfg.Transport = range []Transport{RD, UD, RC} {
		spec := spec
		if cfg.Transport == RC {
			spec.Fabric = "tcp"
		}
		t.Run(cfg.Transport.String(), func(t *testing.T) { withSecrets(t, cfg, spec) })
	}
}

// withSecrets runs two ranks with secrets that differ.
func withSecrets(t *testing.T, cfg Config, spec device.Spec) {
	var group sync.WaitGroup
	for i, job := range boot.Local(2) {
		cfg := cfg
		cfg.secret = bytes.Repeat([]byte{byte(i + 1)}, boot.SecretLen)
		group.Go(func() {
			var why error
			runRank(job, spec, cfg, func(p *Proc) error {
				_, err := Sendrecv(p.World(), []byte("ours"), 1-i, 0, make([]byte, 10), 1-i, 0)
				return err
			}, func(err error) { why = err })
			if ClassOf(why) != ErrProcFailed || !strings.Contains(why.Error(), "not encrypted with the secret of this job") {
				t.Errorf("rank %d: %v", i, why)
			}
		})
	}
	group.Wait()
}
