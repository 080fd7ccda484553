package hosttest

import (
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// New makes hosts for a test, which is left out where the user may not, and removes them
// when it ends.
func New(t testing.TB, c testbed.Config) *testbed.Testbed {
	t.Helper()
	testenv.NeedRoot(t)
	tb, err := testbed.New(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, tb)
	return tb
}
