package p2p

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
)

// came returns how many messages have come to a rank that wait for their receives.
func (w *crew) came(rank int) int {
	for w.turn(rank) > 0 {
	}
	return w.eps[rank].match.unexpected.Len()
}

// The first of several sends in a row is there at once, the others with whatever the
// sender does next, but for further sends and receives that do not wait.
func TestChannelBatch_leaves(t *testing.T) {
	const messages = 3
	for name, next := range map[string]func(ep *Endpoint, sends []*Request){
		"a look":            func(ep *Endpoint, _ []*Request) { ep.look() },
		"a step":            func(ep *Endpoint, _ []*Request) { ep.Step() },
		"Flush":             func(ep *Endpoint, _ []*Request) { ep.Flush() },
		"Wait for the last": func(_ *Endpoint, sends []*Request) { _, _ = sends[messages].Wait() },
		"Test of the first": func(_ *Endpoint, sends []*Request) { _, _, _ = sends[0].Test() },
		"Free": func(ep *Endpoint, sends []*Request) {
			ep.Enter()
			ep.Inside().Detach(sends[1])
			ep.Leave()
		},
		"a longer Isend":   func(ep *Endpoint, _ []*Request) { ep.Isend(word(0, 2), 1, make([]byte, channelBatchedMax+1)) },
		"Send to another":  func(ep *Endpoint, _ []*Request) { _ = ep.Send(word(0, 2), 2, nil) },
		"Isend to another": func(ep *Endpoint, _ []*Request) { ep.Isend(word(0, 2), 2, nil) },
		"an RTS":           func(ep *Endpoint, _ []*Request) { ep.Issend(word(0, 2), 1, nil) },
		"more than a batch has": func(ep *Endpoint, _ []*Request) {
			for range channelBatchRoom/channelBatchedMax + 1 {
				ep.Isend(word(0, 2), 1, make([]byte, channelBatchedMax))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCrew(t, 3, near)
			ep, env := w.eps[0], word(0, 1)
			w.talk(0, 1, 1) // there are channels
			w.talk(0, 2, 1)
			var sends []*Request
			for i := range 1 + messages {
				sends = append(sends, ep.Isend(env, 1, []byte{byte(i)}))
				ep.Irecv(word(1, 7), make([]byte, 1))
			}
			if n := w.came(1); n != 1 {
				t.Fatalf("%d messages are there at once, want 1", n)
			}
			next(ep, sends)
			if n := w.came(1); n < 1+messages {
				t.Fatalf("%d messages are there, want %d", n, 1+messages)
			}
			for i := range 1 + messages {
				buf := make([]byte, 1)
				if st, err := w.eps[1].Recv(env, buf); err != nil || st.Bytes != 1 || buf[0] != byte(i) {
					t.Errorf("message %d: %v, %d bytes, %v", i, buf, st.Bytes, err)
				}
			}
		})
	}
}

// More than a channel has room for, of lengths that share records and that do not: all of it comes
// in order.
func TestChannelBatch_order(t *testing.T) {
	w := newCrew(t, 2, near)
	const count = 8000
	length := func(i int) int { return 8 + i*i%(channelBatchedMax+8) }
	var sends []*Request
	for i := range count {
		buf := make([]byte, length(i))
		binary.BigEndian.PutUint64(buf, uint64(i))
		sends = append(sends, w.eps[0].Isend(word(0, 1), 1, buf))
	}
	if w.eps[0].Stats.Queued == 0 {
		t.Error("there was room for everything")
	}
	want, got := make([]byte, 8), make([]byte, 2*channelBatchedMax)
	for i := range count {
		r := w.eps[1].Irecv(word(0, 1), got)
		w.until(r.Done)
		st, err := r.Wait()
		must(t, err)
		if binary.BigEndian.PutUint64(want, uint64(i)); st.Bytes != length(i) || !bytes.Equal(got[:8], want) {
			t.Fatalf("message %d of %d bytes is one of %d that begins with %v", i, length(i), st.Bytes, got[:8])
		}
	}
	for _, r := range sends {
		w.until(r.Done)
		_, err := r.Wait()
		must(t, err)
	}
	w.drain()
}

// A batch that is open when its neighbour is lost goes nowhere.
func TestChannelBatch_lostPeer(t *testing.T) {
	w := newCrew(t, 2, near)
	ep, env := w.eps[0], word(0, 1)
	w.talk(0, 1, 1)
	sends := []*Request{ep.Isend(env, 1, []byte{2}), ep.Isend(env, 1, []byte{3})}
	if ep.near.batch.to == nil {
		t.Fatal("no batch is open")
	}
	ep.failures.failPeer(1, fmt.Errorf("gone"))
	for _, s := range sends {
		_, err := s.Wait()
		must(t, err)
	}
	if _, err := ep.Isend(env, 1, []byte{4}).Wait(); err == nil {
		t.Error("a send to a lost neighbour has no error")
	}
}
