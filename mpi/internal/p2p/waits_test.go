package p2p

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// A rank that waits for segments of a neighbour whose listener does not run tells so, and how often it has
// tried to ask it. When the neighbour is gone the wait is over.
func TestWaiting_segment(t *testing.T) {
	w := newCrew(t, 2, near)
	ep := w.eps[0]
	own := ep.near.segments.Name()
	site := own[strings.Index(own, "-"):]
	name := strings.Repeat("f", len(own)-len(site)) + site
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@xwarp-channel/" + name, Net: "unixgram"})
	must(t, err)
	way, err := ep.near.segments.Add(2, name)
	must(t, err)
	ep.peers[1].lends = way
	open := ep.Inside().Segments().Opener(1)
	var group sync.WaitGroup
	for range 20 { // more than its socket holds calls
		group.Go(func() {
			if _, err := open(1, 4096); !errors.Is(err, shm.ErrGone) {
				t.Error(err)
			}
		})
	}
	for told, last := 0, 0; told < 2; {
		if wait, ok := ep.Waiting(); ok && wait.For == ForSegment && wait.Peer == 1 && wait.Tries > last {
			told, last = told+1, wait.Tries
		}
	}
	must(t, deaf.Close())
	group.Wait()
	if wait, ok := ep.Waiting(); ok && wait.For == ForSegment {
		t.Errorf("it waits for %+v", wait)
	}
}
