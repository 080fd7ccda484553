package conform

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// end is one of the two carriers under test, with what is needed to talk
// through it.
type end struct {
	fabric.Datagram
	t      testing.TB
	caps   fabric.DatagramCaps
	peer   *end
	to     fabric.Path // of the peer
	step   func()
	tx, rx *fabric.Batch
	sent   int  // datagrams, in all
	kept   bool // what is lost is sent again, says what is sent
}

// message is a datagram that arrived.
type message struct {
	payload []byte
	from    fabric.Remote
}

func newEnd(t testing.TB, d fabric.Datagram, step func()) *end {
	if step == nil {
		step = func() {}
	}
	return &end{
		Datagram: d, t: t, caps: d.Caps(), step: step,
		tx: fabric.NewBatch(64, fabric.MaxBufs), rx: fabric.NewBatch(64, fabric.MaxBufs),
	}
}

// meet makes two ends known to each other.
func meet(a, b *end) {
	a.t.Helper()
	a.peer, b.peer = b, a
	var err error
	if a.to, err = a.Resolve(b.Local()); err != nil {
		a.t.Fatal(err)
	}
	if b.to, err = b.Resolve(a.Local()); err != nil {
		a.t.Fatal(err)
	}
}

// turn lets time pass, as an engine step does that finds nothing to do.
func (e *end) turn() {
	e.Flush()
	e.peer.Flush()
	e.step()
}

// frame waits for a frame.
func (e *end) frame() mem.Addr {
	for {
		if f, ok := e.Frame(); ok {
			return f
		}
		e.post()
		e.turn()
	}
}

// put adds a datagram to the peer, made of frames that are filled one after
// the other with pieces of the lengths in cuts, repeated as often as needed.
func (e *end) put(payload []byte, sealed bool, cuts ...int) {
	for e.TxRoom() <= len(e.tx.Pkts) || len(e.tx.Pkts) == cap(e.tx.Pkts) {
		e.post()
		e.turn()
	}
	p := fabric.Packet{Len: int32(len(payload)), To: e.to, Sealed: sealed, Kept: e.kept}
	var bufs [fabric.MaxBufs]fabric.Desc
	for i := 0; i == 0 || len(payload) > 0; i++ {
		d := fabric.Desc{Addr: e.frame()}
		room := mem.FrameSize
		if i == 0 {
			d.Addr += mem.Addr(e.caps.Headroom)
			room -= e.caps.Headroom
		}
		if n := len(cuts); n > 0 {
			room = min(room, cuts[i%n])
			d.Addr += mem.Addr(i % 3) // buffers start anywhere
			room = min(room, mem.FrameSize-int(d.Addr%mem.FrameSize))
		}
		n := copy(e.Arena().At(d.Addr, room), payload)
		d.Len = uint32(n)
		payload = payload[n:]
		if len(payload) > 0 {
			d.Flags = fabric.More
		}
		bufs[i] = d
		p.Bufs++
	}
	p.First = int32(len(e.tx.Descs)) // only now: waiting for a frame may have posted the batch
	e.tx.Descs = append(e.tx.Descs, bufs[:p.Bufs]...)
	e.tx.Pkts = append(e.tx.Pkts, p)
}

// post sends what was put.
func (e *end) post() {
	if len(e.tx.Pkts) > 0 {
		e.sent += len(e.tx.Pkts)
		e.Send(e.tx)
		e.tx.Reset()
	}
	e.Flush()
}

// poll takes what has arrived.
func (e *end) poll() []message {
	var got []message
	n := e.Recv(e.rx)
	if n != len(e.rx.Pkts) {
		e.t.Fatalf("Recv returns %d, the batch has %d datagrams", n, len(e.rx.Pkts))
	}
	for i := range e.rx.Pkts {
		p := &e.rx.Pkts[i]
		got = append(got, message{e.payload(e.rx, p), p.From})
	}
	e.Release(e.rx)
	if len(e.rx.Pkts)+len(e.rx.Descs) != 0 {
		e.t.Fatal("Release leaves the batch full")
	}
	return got
}

// payload copies what lies in the buffers of p.
func (e *end) payload(b *fabric.Batch, p *fabric.Packet) []byte {
	var payload []byte
	if p.Bufs < 1 || p.Bufs > fabric.MaxBufs {
		e.t.Fatalf("a datagram has %d buffers", p.Bufs)
	}
	bufs := b.Descs[p.First : p.First+p.Bufs]
	for i, d := range bufs {
		payload = append(payload, e.Arena().At(d.Addr, int(d.Len))...)
		if more := d.Flags&fabric.More != 0; more != (i < len(bufs)-1) {
			e.t.Fatalf("buffer %d of %d has flags %#x", i, len(bufs), d.Flags)
		}
	}
	if len(payload) != int(p.Len) {
		e.t.Fatalf("a datagram of %d bytes has buffers of %d", p.Len, len(payload))
	}
	return payload
}

// receive waits for n datagrams.
func (e *end) receive(n int) []message {
	var got []message
	for len(got) < n {
		more := e.poll()
		if len(more) == 0 {
			e.turn()
		}
		got = append(got, more...)
	}
	if len(got) > n {
		e.t.Fatalf("received %d datagrams, only %d were sent", len(got), n)
	}
	return got
}

// talk sends payloads to the peer, no more at a time than it has room for, and
// checks what arrives. They may overtake each other, so each begins with its
// number, unless it is shorter than 8 bytes and alone.
func (e *end) talk(payloads [][]byte, sealed bool, cuts ...int) {
	e.t.Helper()
	window := min(e.peer.caps.RxDepth, 32)
	for len(payloads) > 0 {
		n := min(len(payloads), window)
		for _, p := range payloads[:n] {
			if len(p) < 8 {
				n = 1
			}
		}
		for _, p := range payloads[:n] {
			e.put(p, sealed, cuts...)
		}
		e.post()
		for _, m := range e.peer.receive(n) {
			want := payloads[0]
			if n > 1 {
				want = payloads[int(binary.BigEndian.Uint64(m.payload)-binary.BigEndian.Uint64(want))%n]
			}
			if !bytes.Equal(m.payload, want) {
				e.t.Errorf("cuts %v: %d bytes arrive, %d were sent; they differ", cuts, len(m.payload), len(want))
			}
			if from := m.from.AddrPort(); from != e.Local() {
				e.t.Errorf("source is %v, want %v", from, e.Local())
			}
		}
		payloads = payloads[n:]
	}
}

// numbered returns payloads of the given sizes that can be told apart.
func numbered(sizes ...int) [][]byte {
	all := make([][]byte, len(sizes))
	for i, n := range sizes {
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(i + j*7 + j>>8)
		}
		if n >= 8 {
			binary.BigEndian.PutUint64(b, uint64(i))
		}
		all[i] = b
	}
	return all
}

// frames counts the frames that can be had now.
func (e *end) frames() int {
	var all []mem.Addr
	for f, ok := e.Frame(); ok; f, ok = e.Frame() {
		all = append(all, f)
	}
	for i := len(all) - 1; i >= 0; i-- {
		e.Unframe(all[i])
	}
	return len(all)
}

// slack is how many frames more or fewer a carrier at rest may have: it makes
// room for receiving in batches. Frames that are lost or given back twice with
// every datagram soon are more; where one frame counts, the port's Close says.
const slack = 64

// rest waits until e has n frames to give, as it had before. A carrier may
// have more or fewer on their way for a while.
func (e *end) rest(n int) {
	for waited := 0; ; waited++ {
		e.turn()
		have := e.frames()
		if have >= n-slack && have <= n+slack {
			return
		}
		if waited == 1000 {
			e.t.Logf("%s has %d frames to give, it had %d: when this does not end they are lost, or given back twice", e.Local(), have, n)
		}
	}
}
