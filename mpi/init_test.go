package mpi

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
)

// Other hosts cannot reach the loopback device.
func TestOutwardAddr(t *testing.T) {
	addr, err := outwardAddr()
	if err != nil {
		if !strings.Contains(err.Error(), boot.EnvDevice) {
			t.Errorf("%v does not say what to do", err)
		}
		t.Skip("no default route here")
	}
	if !addr.Is4() || addr.IsLoopback() || addr.IsUnspecified() {
		t.Errorf("%v", addr)
	}
}
