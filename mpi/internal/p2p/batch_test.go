package p2p

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// bound makes what a batch carries: messages with their lengths.
func bound(messages ...string) []byte {
	b := sample(kindBatch, 0, 0)[:headerLen]
	for i, m := range messages {
		b = append(b, 0, byte(len(m)), 0, 0, 0, 0, 0, byte(i))
		b = append(b, m...)
	}
	return b
}

func TestBatch_bytes(t *testing.T) {
	ep := newEnd(t)
	ep.poller.arrived(bound("a", "", "bcd"))
	for tag, want := range []string{"a", "", "bcd"} {
		buf := make([]byte, 8)
		st, err := ep.Recv(match.Envelope{Source: 1, Tag: int32(tag)}, buf)
		if err != nil || string(buf[:st.Bytes]) != want {
			t.Errorf("message %d is %q, %v; want %q", tag, buf[:st.Bytes], err, want)
		}
	}
}

func TestBatch_malformed(t *testing.T) {
	long := bound("abc")
	long[headerLen+1] = 4
	negative := bound("abc")
	negative[headerLen+4] = 0x80
	for name, b := range map[string][]byte{
		"length beyond the end": long, "tag below zero": negative, "cut sub-header": bound("abc")[:headerLen+5],
	} {
		ep := newEnd(t)
		if ep.poller.arrived(b); ep.Stats.Malformed != 1 || ep.match.unexpected.Len() != 0 {
			t.Errorf("%s: %d were malformed, %d are kept", name, ep.Stats.Malformed, ep.match.unexpected.Len())
		}
	}
}

// Short messages share batches, long ones and those that need an answer do not, and all
// of them come in order. Some go to a peer that no batch goes to.
func TestBatch_order(t *testing.T) {
	w := newCrew(t, 3, Config{})
	env := func(to int) match.Envelope { return match.Envelope{Source: 0, Tag: int32(to)} }
	sizes := []int{8, 8, 0, 300, 8, batchedMax, batchedMax + 1, 8, 20_000, 8, 8, 100_000, 8}
	for range 40 {
		sizes = append(sizes, 8)
	}
	messages := func(i, n int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, n) }
	var sends, receives []*Request
	var want, got [][]byte
	for i, n := range sizes {
		to := 1
		if i%9 == 4 {
			to = 2
		}
		b := make([]byte, n)
		want, got = append(want, messages(i, n)), append(got, b)
		receives = append(receives, w.eps[to].Irecv(env(to), b))
	}
	for i, n := range sizes {
		to := 1
		if i%9 == 4 {
			to = 2
		}
		sends = append(sends, w.eps[0].Isend(env(to), to, messages(i, n)))
	}
	if w.eps[0].net.batch.to == nil {
		t.Error("the last messages do not share a Send")
	}
	for i, r := range append(receives, sends...) {
		w.until(r.Done, 0, 1, 2)
		if _, err := r.Wait(); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("message %d of %d bytes begins with %.4v, want %.4v", i, len(want[i]), got[i], want[i])
		}
	}
	w.drain()
}

// What fits an eager buffer alone may not fit it in a batch.
func TestBatch_smallBuffers(t *testing.T) {
	w := newCrew(t, 2, Config{EagerMax: 64})
	env := match.Envelope{Source: 0, Tag: 1}
	for _, n := range []int{8, 64, 8, 60, 56, 1} {
		buf, out := make([]byte, n), bytes.Repeat([]byte{7}, n)
		s := []*Request{w.eps[0].Isend(env, 1, out), w.eps[0].Isend(env, 1, out), w.eps[0].Isend(env, 1, out)}
		for range s {
			r := w.eps[1].Irecv(env, buf)
			w.until(r.Done, 0, 1)
			if st, err := r.Wait(); err != nil || st.Bytes != n || !bytes.Equal(buf, out) {
				t.Fatalf("%d bytes: %+v, %v", n, st, err)
			}
		}
		for _, r := range s {
			w.until(r.Done, 0, 1)
			_, _ = r.Wait()
		}
	}
	w.drain()
}

// A batch to a peer that is lost meanwhile gives its buffer back.
func TestBatch_lostPeer(t *testing.T) {
	ep := newEnd(t)
	env := match.Envelope{Source: 0, Tag: 1}
	for range 3 {
		_, _ = ep.Isend(env, 1, []byte("x")).Wait()
	}
	if ep.net.batch.to == nil {
		t.Fatal("no batch is open")
	}
	free := len(ep.net.txFree)
	ep.failures.failPeer(1, fmt.Errorf("gone"))
	ep.step()
	if ep.net.batch.to != nil || len(ep.net.txFree) != free+1 {
		t.Errorf("the batch is open still, or %d buffers are free and not %d", len(ep.net.txFree), free+1)
	}
}

// A batch goes from the frame to its receives, and what has none is kept, unless there might be
// no memory for that: then a peer is told so, which a handler must not do.
func TestBatch_handled(t *testing.T) {
	ep := newEnd(t)
	b := bound("a", "", "bcd")
	buf := make([]byte, 8)
	r := ep.Irecv(match.Envelope{Source: 1, Tag: 2}, buf)
	ep.cfg.UnexpectedMax = len(b) // not with what keeping costs
	if ep.match.HandleRecv(nil, b) || r.Done() {
		t.Error("a batch for which there may be no memory was handled")
	}
	ep.cfg.UnexpectedMax = 4 << 10
	if !ep.match.HandleRecv(nil, b) || !r.Done() || ep.match.unexpected.Len() != 2 {
		t.Errorf("the batch was not handled, or %d of its messages are kept, want 2", ep.match.unexpected.Len())
	}
	if st, err := r.Wait(); err != nil || string(buf[:st.Bytes]) != "bcd" {
		t.Errorf("the message is %q, %v", buf[:st.Bytes], err)
	}
	if p := &ep.peers[1]; !p.answered || p.got[0].plain != 3 {
		t.Errorf("%d messages are counted, want 3", p.got[0].plain)
	}
}
