package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// near is what makes a crew one of neighbours.
var near = Config{Shared: true}

func forbid(_ int, c *Config) { c.NoPull = true }

// TestChannel_allWays sends what fits a channel and what does not, to receives that
// are there and that come later, pulled and in a stream, scattered and plain.
func TestChannel_allWays(t *testing.T) {
	for _, pull := range []bool{true, false} {
		var change []func(int, *Config)
		if !pull {
			change = append(change, forbid)
		}
		w := newCrew(t, 2, near, change...)
		a, b := w.eps[0], w.eps[1]
		env := match.Envelope{Source: 0, Tag: 3}
		for _, n := range []int{0, 1, 10, 1000, 3000, 10_000, 700_000} {
			for way := range 8 {
				typedFrom, typedTo, late := way&1 != 0, way&2 != 0, way&4 != 0
				_, src := comb(t, n, 1)
				want := packed(src)
				back, dst := comb(t, n, 128)
				untouched := bytes.Clone(back)
				plain := make([]byte, len(want))
				var send, recv *Request
				post := func() {
					if recv = nil; typedTo {
						recv = b.IrecvTyped(env, dst)
					} else {
						recv = b.Irecv(env, plain)
					}
				}
				if !late {
					post()
				}
				if typedFrom {
					send = a.IsendTyped(env, 1, src)
				} else {
					send = a.Isend(env, 1, bytes.Clone(want))
				}
				if late {
					w.until(func() bool { return b.match.unexpected.Len() > 0 })
					post()
				}
				w.until(func() bool { return send.Done() && recv.Done() })
				_, err := a.requests.take(send)
				must(t, err)
				st, err := b.requests.take(recv)
				must(t, err)
				got := plain
				if typedTo {
					got = packed(dst)
				}
				if st.Bytes != len(want) || !bytes.Equal(got, want) {
					t.Errorf("pull %v, way %d, %d elements: %d bytes, wrong ones or not all", pull, way, n, st.Bytes)
				}
				for i := range back {
					if i%8 >= 4 && back[i] != untouched[i] {
						t.Fatalf("way %d, %d elements: byte %d is not of the datatype and was written", way, n, i)
					}
				}
			}
		}
		if posted := b.net.qp.Stats.Recvs; posted != 0 {
			t.Errorf("%d messages came through the network", posted)
		}
		w.drain()
	}
}

// TestChannel_order mixes messages of all lengths: they are received in the order in
// which they were sent.
func TestChannel_order(t *testing.T) {
	w := newCrew(t, 2, near)
	const count = 600
	length := func(i int) int { return 8 + i*i*7919%60_000 }
	var sends, recvs []*Request
	buffers := make([][]byte, count)
	for i := range count {
		buf := make([]byte, length(i))
		binary.BigEndian.PutUint64(buf, uint64(i))
		sends = append(sends, w.eps[0].Isend(word(0, 1), 1, buf))
	}
	for i := range count {
		buffers[i] = make([]byte, 60_008)
		recvs = append(recvs, w.eps[1].Irecv(word(0, 1), buffers[i]))
	}
	for i := range count {
		w.until(func() bool { return sends[i].Done() && recvs[i].Done() })
		_, err := w.eps[0].requests.take(sends[i])
		must(t, err)
		st, err := w.eps[1].requests.take(recvs[i])
		must(t, err)
		if got := binary.BigEndian.Uint64(buffers[i]); got != uint64(i) || st.Bytes != length(i) {
			t.Fatalf("receive %d got message %d, %d bytes", i, got, st.Bytes)
		}
	}
	w.drain()
}

// TestChannel_blockingSends sends messages that are alone, whose bytes are not written in their order, of lengths about those where
// that begins, and where copies are others.
func TestChannel_blockingSends(t *testing.T) {
	w := newCrew(t, 2, near)
	a, b := w.eps[0], w.eps[1]
	check := func(what string, want []byte, gone func() bool) {
		got := make([]byte, len(want))
		recv := b.Irecv(word(0, 1), got)
		w.until(gone)
		w.until(recv.Done)
		st, err := b.requests.take(recv)
		must(t, err)
		if st.Bytes != len(want) || !bytes.Equal(got, want) {
			t.Errorf("%s of %d bytes: %d bytes came, wrong ones or not all", what, len(want), st.Bytes)
		}
	}
	for _, n := range []int{
		0, 1, firstMost - 1, firstMost, firstMost + 1, 64, 65, 1000, tuneTimed - 1, tuneTimed, tuneTimed + firstMost - 1,
		tuneTimed + firstMost, 4096, 8000,
	} {
		buf := make([]byte, n)
		for i := range buf {
			buf[i] = byte(i*31 + i>>8 + n)
		}
		check("Send", buf, func() bool {
			a.Enter()
			defer a.Leave()
			return a.Inside().TrySend(word(0, 1), 1, buf)
		})
		_, typed := comb(t, n/4, 1)
		check("Send of a datatype", packed(typed), func() bool {
			a.Enter()
			defer a.Leave()
			return a.Inside().TrySendTyped(word(0, 1), 1, typed)
		})
	}
	w.drain()
}

// TestChannel_truncated pulls no more than there is room for.
func TestChannel_truncated(t *testing.T) {
	for _, room := range []int{0, 100, 50_000} {
		w := newCrew(t, 2, near)
		src := bytes.Repeat([]byte{7}, 100_000)
		guarded := make([]byte, room+10)
		recv := w.eps[1].Irecv(word(0, 1), guarded[:room])
		send := w.eps[0].Isend(word(0, 1), 1, src)
		w.until(func() bool { return send.Done() && recv.Done() })
		_, err := w.eps[0].requests.take(send)
		must(t, err)
		st, err := w.eps[1].requests.take(recv)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != Truncated || st.Bytes != room {
			t.Errorf("room %d: %d bytes, %v", room, st.Bytes, err)
		}
		if !bytes.Equal(guarded, append(bytes.Repeat([]byte{7}, room), make([]byte, 10)...)) {
			t.Errorf("room %d: wrong bytes", room)
		}
		w.drain()
	}
}

// TestChannel_senderGivesUp ends a send between the RTS and the copy. The receiver
// must not take what is in the memory then for the message.
func TestChannel_senderGivesUp(t *testing.T) {
	w := newCrew(t, 2, near)
	w.talk(0, 1, 1)
	send := w.eps[0].Isend(word(0, 1), 1, make([]byte, 100_000))
	w.until(func() bool { return w.eps[1].match.unexpected.Len() > 0 })
	recv := w.eps[1].Irecv(word(0, 1), make([]byte, 100_000))
	if recv.state != waitTurn {
		t.Skip("process_vm_readv is not allowed here")
	}
	send.fail(gaveUp(0))
	w.until(recv.Done)
	var e *Error
	if _, err := w.eps[1].requests.take(recv); !errors.As(err, &e) || e.Code != PeerLost {
		t.Errorf("the receive ends with %v", err)
	}
}

// TestChannel_unreadable offers memory that cannot be read from outside: the
// receiver asks for a stream instead.
func TestChannel_unreadable(t *testing.T) {
	w := newCrew(t, 2, near)
	w.talk(0, 1, 1)
	src := bytes.Repeat([]byte{9}, 100_000)
	dst := make([]byte, len(src))
	send := w.eps[0].Isend(word(0, 1), 1, src)
	w.until(func() bool { return w.eps[1].match.unexpected.Len() > 0 })
	recv := w.eps[1].Irecv(word(0, 1), dst)
	if recv.state != waitTurn {
		t.Skip("process_vm_readv is not allowed here")
	}
	recv.offer.addr = 8
	w.until(func() bool { return send.Done() && recv.Done() })
	_, err := w.eps[0].requests.take(send)
	must(t, err)
	_, err = w.eps[1].requests.take(recv)
	must(t, err)
	if !bytes.Equal(src, dst) {
		t.Error("wrong bytes")
	}
	w.drain()
}

// TestChannel_lostNeighbour ends a rank. What it sent before is received; those who
// wait for more are told.
func TestChannel_lostNeighbour(t *testing.T) {
	w := newCrew(t, 3, near)
	for to := range 2 {
		w.talk(2, to, 10)
	}
	send := w.eps[2].Isend(word(2, 1), 1, []byte("the last"))
	w.until(send.Done)
	must(t, w.eps[2].Close())
	must(t, w.ctxs[2].Close())
	for rank, want := range map[int]int{0: 0, 1: 1} {
		ep, got := w.eps[rank], 0
		var err error
		for ; err == nil; got++ {
			r := ep.Irecv(word(2, rank), make([]byte, 100))
			w.until(r.Done, rank)
			_, err = ep.requests.take(r)
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != PeerLost || e.Peer != 2 || got-1 != want {
			t.Errorf("rank %d received %d messages, want %d, and then %v", rank, got-1, want, err)
		}
	}
	w.talk(0, 1, 100)
}

// TestChannel_nonsense puts messages into a channel that no rank sends. They are
// counted, and in particular nobody speaks for somebody else.
func TestChannel_nonsense(t *testing.T) {
	w := newCrew(t, 3, near)
	w.talk(0, 1, 1)
	other := make([]byte, headerLen)
	(&header{kind: kindEager, source: 2}).put(other)
	channel, before := w.eps[0].peers[1].channel, w.eps[1].Stats.Malformed
	for _, b := range [][]byte{nil, {1, 2, 3}, other, bytes.Repeat([]byte{255}, 100)} {
		if !channel.Put(b, nil) {
			t.Fatal("no room")
		}
	}
	w.talk(0, 1, 1)
	if got := w.eps[1].Stats.Malformed - before; got != 4 || w.eps[1].match.unexpected.Len() != 0 {
		t.Errorf("%d messages were counted as malformed", got)
	}
	w.drain()
}

// newCrewWithoutWay is newCrew of two, of which rank 1 has no ring for rank 0: somebody else
// has it.
func newCrewWithoutWay(t *testing.T, cfg Config) *crew {
	w := newCrew(t, 2, cfg)
	squatter, err := shm.OpenChannels(shm.ChannelsConfig{Rank: 0})
	must(t, err)
	t.Cleanup(func() { must(t, squatter.Close()) })
	way, err := squatter.Add(1, w.eps[1].near.channels.Name())
	must(t, err)
	w.until(func() bool { squatter.Next(); return way.Put([]byte("I am rank 0"), nil) })
	return w
}

// TestChannel_noWay reaches a neighbour that has no ring for this rank through the
// network.
func TestChannel_noWay(t *testing.T) {
	w := newCrewWithoutWay(t, near)
	for _, n := range []int{10, 100_000} {
		send := w.eps[0].Isend(word(0, 1), 1, make([]byte, n))
		recv := w.eps[1].Irecv(word(0, 1), make([]byte, n))
		w.until(func() bool { return send.Done() && recv.Done() })
		_, err := w.eps[0].requests.take(send)
		must(t, err)
		_, err = w.eps[1].requests.take(recv)
		must(t, err)
	}
	if w.eps[0].peers[1].channel != nil || w.eps[1].peers[0].channel == nil {
		t.Error("the wrong way was taken")
	}
	w.talk(1, 0, 10) // a channel that way, and its answers through the network
	big := w.eps[1].Isend(word(1, 0), 0, make([]byte, 100_000))
	recv := w.eps[0].Irecv(word(1, 0), make([]byte, 100_000))
	w.until(func() bool { return big.Done() && recv.Done() })
	_, err := w.eps[1].requests.take(big)
	must(t, err)
	_, err = w.eps[0].requests.take(recv)
	must(t, err)
	w.drain()
}

// TestChannel_noWayForQueued sends what a channel would take whole, and finds that there is
// none: it is longer than the eager limit of the network, so it is asked for.
func TestChannel_noWayForQueued(t *testing.T) {
	w := newCrewWithoutWay(t, Config{Shared: true, EagerMax: 2048, EagerNear: 16 << 10})
	for _, n := range []int{10_000, 1000} { // the second one fits what the network takes at once
		asked, eager := w.eps[0].Stats.Rendezvous, w.eps[0].Stats.Eager
		send := w.eps[0].Isend(word(0, 1), 1, bytes.Repeat([]byte{7}, n))
		in := make([]byte, n)
		recv := w.eps[1].Irecv(word(0, 1), in)
		w.until(func() bool { return send.Done() && recv.Done() })
		_, err := w.eps[0].requests.take(send)
		must(t, err)
		_, err = w.eps[1].requests.take(recv)
		must(t, err)
		if !bytes.Equal(in, bytes.Repeat([]byte{7}, n)) {
			t.Errorf("other bytes have come than the %d that were sent", n)
		}
		asked, eager = w.eps[0].Stats.Rendezvous-asked, w.eps[0].Stats.Eager-eager
		if long := uint64(n / 10_000); asked != long || eager != 1-long {
			t.Errorf("%d bytes: %d messages with and %d without asking", n, asked, eager)
		}
	}
	if w.eps[0].peers[1].channel != nil {
		t.Error("there is a channel")
	}
	w.drain()
}

// TestChannel_fullHoldsUpNobody fills the channel to one that does not look, and talks
// with another one.
func TestChannel_fullHoldsUpNobody(t *testing.T) {
	w := newCrew(t, 3, near)
	w.talk(0, 1, 10)
	w.talk(0, 2, 10)
	var sends []*Request
	for range 100 {
		sends = append(sends, w.eps[0].Isend(word(0, 1), 1, make([]byte, 10_000)))
	}
	for i := range 50 {
		s := w.eps[0].Isend(word(0, 2), 2, fmt.Append(nil, i))
		r := w.eps[2].Irecv(word(0, 2), make([]byte, 10))
		w.until(func() bool { return s.Done() && r.Done() }, 0, 2)
		_, err := w.eps[0].requests.take(s)
		must(t, err)
		_, err = w.eps[2].requests.take(r)
		must(t, err)
	}
	for _, s := range sends {
		r := w.eps[1].Irecv(word(0, 1), make([]byte, 10_000))
		w.until(func() bool { return s.Done() && r.Done() })
		_, err := w.eps[0].requests.take(s)
		must(t, err)
		_, err = w.eps[1].requests.take(r)
		must(t, err)
	}
	w.drain()
}

func TestParseSite(t *testing.T) {
	for s, ok := range map[string]bool{"3:name": true, "0:": true, "": false, ":name": false, "x:name": false, "name": false} {
		if _, _, err := parseSite(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
	if host, name, _ := parseSite("12:a:b"); host != 12 || name != "a:b" {
		t.Errorf("%d, %q", host, name)
	}
}

// TestChannel_askedWhileAnotherSleeps lets one goroutine of a rank sleep until a
// message comes, while another one asks now and then whether something else is
// there, which takes the wish for the bell back: the first one is woken all the
// same, by channels and by a network.
func TestChannel_askedWhileAnotherSleeps(t *testing.T) {
	t.Run("channels", func(t *testing.T) {
		askWhileAnotherSleeps(t, newCrew(t, 2, Config{Shared: true, Threads: true}))
	})
	t.Run("network", func(t *testing.T) { askWhileAnotherSleeps(t, newCrewOver(t, "shm", 2, Config{Threads: true})) })
}

func askWhileAnotherSleeps(t *testing.T, w *crew) {
	w.talk(0, 1, 10)
	ep := w.eps[1]
	never := ep.Irecv(match.Envelope{Source: 0, Tag: 99}, make([]byte, 1))
	for range 100 {
		done := make(chan error)
		go func() {
			_, err := ep.Recv(word(0, 1), make([]byte, 10))
			done <- err
		}()
		asleep := func() bool {
			ep.Enter()
			defer ep.Leave()
			return ep.lock.parked
		}
		for !asleep() {
			runtime.Gosched()
		}
		for range stepEvery {
			if _, finished, err := never.Test(); finished || err != nil {
				t.Fatal(finished, err)
			}
		}
		must(t, w.eps[0].Send(word(0, 1), 1, make([]byte, 10)))
		for waits := true; waits; {
			select {
			case err := <-done:
				must(t, err)
				waits = false
			default:
				w.turn(0)
				runtime.Gosched()
			}
		}
	}
	ep.Cancel(never)
	if st, _ := never.Wait(); st.Mark != Cancelled {
		t.Error("it is not cancelled")
	}
}

// newNeighbours makes two ranks of one host that have little but channels: they are
// made and gone in no time.
func newNeighbours(t testing.TB) *crew {
	t.Helper()
	w := &crew{t: t}
	var ports [2]*conform.Pipe
	var err error
	ports[0], ports[1], err = conform.NewPipe(conform.PipeConfig{Frames: 128})
	must(t, err)
	var cards []string
	for rank, port := range ports {
		poller, err := progress.NewPoller(mono.Real{}, progress.PollerConfig{NoSpin: true})
		must(t, err)
		t.Cleanup(func() { must(t, poller.Close()) })
		c := near
		c.Rank, c.Size, c.Receives, c.Sends = rank, len(ports), 8, 4
		ep := newRankOn(t, port, poller, c)
		t.Cleanup(func() { must(t, ep.Close()) })
		w.eps, cards = append(w.eps, ep), append(cards, ep.BusinessCard())
	}
	for _, ep := range w.eps {
		must(t, ep.Connect(cards, nil))
	}
	return w
}

// FuzzChannel_arrived gives an endpoint what a neighbour that has gone mad could put
// into its channel, offers of memory among it.
func FuzzChannel_arrived(f *testing.F) {
	offering := make([]byte, rtsLen+offerLen)
	(&header{kind: kindRTS, source: 0, tag: 2, id: 5}).put(offering)
	binary.BigEndian.PutUint64(offering[headerLen:], 1000)
	binary.BigEndian.PutUint64(offering[rtsLen:], 1<<40)
	binary.BigEndian.PutUint64(offering[rtsLen+8:], 8)
	data := make([]byte, headerLen+40)
	(&header{kind: kindData, source: 0, tag: 2, id: 1}).put(data)
	f.Add(offering, data)
	f.Add(offering[:rtsLen], data)
	for k := kindEager; k < kindEnd; k++ {
		b := make([]byte, 64)
		(&header{kind: k, source: 0, tag: 2, id: 1}).put(b)
		f.Add(b, offering)
	}
	head := make([]byte, 64)
	(&header{kind: kindHead, source: 0, tag: 2, id: 256}).put(head)
	f.Add(head, data) // nobody would send the rest
	f.Fuzz(func(t *testing.T, first, second []byte) {
		w := newNeighbours(t)
		w.talk(0, 1, 1)
		w.talk(1, 0, 1)
		ep := w.eps[1]
		guarded := make([]byte, 64)
		r := ep.Irecv(match.Envelope{Source: match.Any, Tag: match.Any}, guarded[:32])
		ep.poller.arrivedNear(0, first)
		ep.poller.arrivedNear(0, second)
		for range 3 {
			ep.eng.Step()
		}
		if r.state == waitFIN {
			b := make([]byte, headerLen)
			(&header{kind: kindFIN, source: 0, id: r.wireID()}).put(b)
			ep.poller.arrivedNear(0, b)
		}
		if r.state != done && !ep.match.cancel(r) {
			t.Fatalf("the receive is in state %d", r.state)
		}
		_, _ = ep.requests.take(r)
		if !bytes.Equal(guarded[32:], make([]byte, 32)) {
			t.Fatal("bytes behind the buffer were written")
		}
	})
}

// TestChannel_senderHasRevoked ends a send between the RTS and the copy because its
// communicator was revoked, which the receiver has not heard of: its receive ends for
// that reason, for nobody is lost.
func TestChannel_senderHasRevoked(t *testing.T) {
	w := newCrew(t, 2, near)
	w.talk(0, 1, 1)
	for _, ep := range w.eps {
		ep.Inside().Register(2, []int32{0, 1}, 8)
	}
	env := match.Envelope{Context: 2, Source: 0, Tag: 1}
	send := w.eps[0].Isend(env, 1, make([]byte, 100_000))
	w.until(func() bool { return w.eps[1].match.unexpected.Len() > 0 })
	recv := w.eps[1].Irecv(env, make([]byte, 100_000))
	if recv.state != waitTurn {
		t.Skip("process_vm_readv is not allowed here")
	}
	w.eps[0].Revoke(2)
	w.until(func() bool { return send.Done() && recv.Done() })
	if _, err := w.eps[1].requests.take(recv); code(err) != Revoked {
		t.Errorf("the receive ends with %v", err)
	}
	if _, err := w.eps[0].requests.take(send); code(err) != Revoked {
		t.Errorf("the send ends with %v", err)
	}
	w.drain()
}
