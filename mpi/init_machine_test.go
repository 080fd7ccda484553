package mpi

import (
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/verbs/device"
)

func TestFromLauncher(t *testing.T) {
	read := func(transport p2p.Transport, env map[string]string) (device.Spec, error) {
		var spec device.Spec
		err := fromLauncher(func(name string) (string, bool) { s, ok := env[name]; return s, ok }, &Config{Transport: transport}, &spec)
		return spec, err
	}
	spec, err := read(p2p.RD, map[string]string{boot.EnvBulkQueue: "1", boot.EnvMachine: "8/4"})
	if err != nil || spec.BulkQueue != 1 || spec.Poller.Ranks != 8 || spec.Poller.Cores != 4 {
		t.Errorf("%+v, %v", spec, err)
	}
	if spec, err = read(p2p.RC, map[string]string{boot.EnvBulkQueue: "1"}); err != nil || spec.BulkQueue != 0 {
		t.Errorf("connections keep to one queue: %d, %v", spec.BulkQueue, err)
	}
	for name, value := range map[string]string{boot.EnvBulkQueue: "-1", boot.EnvMachine: "8"} {
		if _, err := read(p2p.RD, map[string]string{name: value}); ClassOf(err) != ErrArg {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, value := range []string{"0/4", "4/0", "a/b", ""} {
		if _, err := read(p2p.RD, map[string]string{boot.EnvMachine: value}); ClassOf(err) != ErrArg {
			t.Errorf("machine %q: %v", value, err)
		}
	}
}
