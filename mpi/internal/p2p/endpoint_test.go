package p2p

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// spin is a parker that never waits.
type spin struct{}

func (spin) Park(mono.Time, mono.Duration) bool { return false }

// newEnd makes rank 0 of 3 at the end of a cable that nobody listens to.
func newEnd(t testing.TB) *Endpoint {
	t.Helper()
	port, _, err := conform.NewPipe(conform.PipeConfig{})
	must(t, err)
	return newRank(t, port, 0)
}

// newEnds makes the ranks 0 and 1 of 3, joined by a cable in memory.
func newEnds(t testing.TB) (a, b *Endpoint) {
	t.Helper()
	left, right, err := conform.NewPipe(conform.PipeConfig{})
	must(t, err)
	return newRank(t, left, 0), newRank(t, right, 1)
}

func newRank(t testing.TB, port *conform.Pipe, rank int) *Endpoint {
	t.Helper()
	ep := newRankOn(t, port, spin{}, Config{Rank: rank, Size: 3, Receives: 8, Sends: 4})
	ep.Inside().Register(0, []int32{0, 1, 2}, 8)
	must(t, ep.Connect(cardsOf(ep, 3), nil))
	return ep
}

// cardsOf makes those of all ranks, which are like ep.
func cardsOf(ep *Endpoint, size int) (cards []string) {
	for i := range size {
		cards = append(cards, fmt.Sprintf("v=%d eager=%d addr=%s later=?", Version, ep.cfg.EagerMax, rankAddr(i)))
	}
	return cards
}

func rankAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 18700)
}

// newRankOn makes a rank that knows nobody yet.
func newRankOn(t testing.TB, port *conform.Pipe, parker progress.Parker, c Config) *Endpoint {
	t.Helper()
	return newRankAt(t, port, mono.Real{}, parker, c)
}

// newRankAt is newRankOn with a clock.
func newRankAt(t testing.TB, port *conform.Pipe, clock mono.Clock, parker progress.Parker, c Config) *Endpoint {
	t.Helper()
	hops, local := inet.Fixed{}, rankAddr(c.Rank)
	for i := range c.Size {
		hops[rankAddr(i).Addr()] = inet.Hop{MAC: inet.MAC{2, 0, 0, 0, 0, byte(i + 1)}, Source: local.Addr(), MTU: 9000}
	}
	carrier, err := inet.New(inet.Config{Port: port, Resolver: hops, Local: local, MAC: inet.MAC{2, 0, 0, 0, 0, byte(c.Rank + 1)}})
	must(t, err)
	ctx, err := verbs.New(verbs.Config{Datagram: carrier, Engine: progress.New(clock, parker), Key: 1, Epoch: uint32(c.Rank + 1)})
	must(t, err)
	ep, err := New(ctx, c)
	must(t, err)
	return ep
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample makes a message of every kind that rank 1 may send.
func sample(k kind, id uint32, extra uint64) []byte {
	b := make([]byte, ctsLen)
	(&header{kind: k, source: 1, tag: 2, id: id}).put(b)
	if k == kindRTS {
		binary.BigEndian.PutUint64(b[headerLen:], extra)
	}
	return b
}

func TestEndpoint_malformedMessages(t *testing.T) {
	ep := newEnd(t)
	fromSelf := sample(kindEager, 0, 0)
	binary.BigEndian.PutUint32(fromSelf[4:], 0)
	for name, b := range map[string][]byte{
		"empty":         nil,
		"own rank":      fromSelf,
		"endless RTS":   sample(kindRTS, 0, 1<<63),
		"unknown kind":  sample(kindEnd, 0, 0),
		"cut in pieces": sample(kindRTS, 0, 5)[:headerLen+3],
	} {
		before := ep.Stats.Malformed
		if ep.poller.arrived(b); ep.Stats.Malformed != before+1 {
			t.Errorf("%s: not counted as malformed", name)
		}
	}
	if ep.match.unexpected.Len() != 0 {
		t.Error("something was kept")
	}
}

// TestEndpoint_staleAnswers answers requests that are not there: a CTS is
// refused with a FIN, so that the receiver does not wait for ever.
func TestEndpoint_staleAnswers(t *testing.T) {
	ep := newEnd(t)
	ep.poller.arrived(sample(kindFIN, 7, 0))
	ep.poller.arrived(sample(kindCTS, 7, 0))
	if ep.Stats.Stale != 2 {
		t.Errorf("%d stale answers were counted, want 2", ep.Stats.Stale)
	}
	notices := 0
	for _, r := range ep.requests.all {
		if r.state == waitAck && r.detached && r.notice == kindFIN && r.entry.Tag == finFailed {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("%d refusals are on their way, want 1", notices)
	}
}

// TestEndpoint_senderGivesUp ends a large receive whose sender has failed.
func TestEndpoint_senderGivesUp(t *testing.T) {
	ep := newEnd(t)
	r := ep.Irecv(match.Envelope{Source: 1, Tag: 2}, make([]byte, 100))
	ep.poller.arrived(sample(kindRTS, 99, 100))
	if r.state != waitFIN || r.mr == nil {
		t.Fatalf("state %d after the RTS", r.state)
	}
	b := sample(kindFIN, r.wireID(), 0)
	binary.BigEndian.PutUint32(b[8:], finFailed)
	ep.poller.arrived(b)
	if _, err := r.Wait(); err == nil || err.(*Error).Code != PeerLost {
		t.Errorf("error is %v", err)
	}
}

// TestEndpoint_randomNoise gives an endpoint bytes that mean nothing.
func TestEndpoint_randomNoise(t *testing.T) {
	ep := newEnd(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	buf := make([]byte, 1000)
	for range 20_000 {
		b := make([]byte, rnd.IntN(64))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		if len(b) > headerLen {
			b[0] = byte(rnd.IntN(int(kindEnd) + 1))
			binary.BigEndian.PutUint32(b[4:], uint32(rnd.IntN(4)))
			b[8] &= 0x7f
			if kind(b[0]) == kindLost && b[11] != 0 {
				continue // believed, and then nothing goes on
			}
		}
		if rnd.IntN(50) == 0 {
			ep.Irecv(match.Envelope{Source: match.Any, Tag: match.Any}, buf)
		}
		ep.poller.arrived(b)
	}
}
