package launch

import (
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// Of several network devices it is said which one has a problem, and when that is over.
func TestWatchLinks_several(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{Second: true})
	var sent safeBuffer
	h := tb.Hosts[0]
	a := &agent{out: newOutbox(nopCloser{&sent}), start: &startOrder{Device: h.Dev + "," + h.Second.Dev}}
	err := h.Do(func() error {
		a.links = a.watchLinks()
		return nil
	})
	if err != nil || len(a.links) != 2 {
		t.Fatalf("%d watches, %v", len(a.links), err)
	}
	defer func() {
		for _, l := range a.links {
			l.close()
		}
		a.out.close()
		<-a.out.done
	}()
	await := func(text string) {
		for !strings.Contains(sent.String(), text) {
			time.Sleep(time.Millisecond)
		}
	}
	for _, dev := range []*testbed.Host{h, h.Second} {
		if err := dev.SetUp(false); err != nil {
			t.Fatal(err)
		}
		await("ip link set " + dev.Dev + " up")
		if err := dev.SetUp(true); err != nil {
			t.Fatal(err)
		}
		await(dev.Dev + " is in order again")
	}
}
