package verbs

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// sequential is a peer that writes to a region with SequentialWrite.
type sequential struct {
	*rcPeer
	mr        *MR
	predicted bool // something was received where it belongs
	writes    int  // that were cut: each has other bytes
}

const sequentialLen = 60_000

// newSequential makes one. Without vector the stream receives into one buffer at a time, so that nothing is predicted.
func newSequential(t testing.TB, m rcMode, vector bool) *sequential {
	s := &sequential{rcPeer: newRCPeer(t, m)}
	s.mr = s.region(s.pd, slabBuf, sequentialLen, LocalWrite|RemoteWrite|SequentialWrite)
	clear(s.region(s.pd, slabBuf, sequentialLen, LocalWrite).buf)
	if !vector {
		s.q.rc.in.predicted.from = nil
	}
	return s
}

// cut returns a Write of n bytes, none of which is 0, to an offset of the region, in segments of piece bytes.
func (s *sequential) cut(at, n, piece int) (all []byte) {
	s.writes++
	for off := 0; off < n; off += piece {
		k := min(piece, n-off)
		b := make([]byte, k)
		for i := range b {
			b[i] = byte((at+off+i+100*s.writes)%251) + 1
		}
		h := ddp.Header{Tagged: true, Last: off+k == n, ULP: rdmap.Control(rdmap.Write), STag: iwarp.STag(s.mr.RKey()), TO: s.mr.Addr() + uint64(at+off)}
		all = append(all, s.fpdu(withBody(&h, b))...)
	}
	return all
}

// outcome is what a peer and the user can see.
type outcome struct {
	written, sent []byte
	state         QPState
	completions   []WC
	events        []EventType
}

// hear feeds what a peer sends, chunk bytes at a time, and returns what comes of it.
func (s *sequential) hear(stream []byte, chunk int, midway func(*sequential)) outcome {
	var then []byte // what is in the region when midway is called
	for at := 0; at < len(stream) && !s.s.closed && !s.s.ended; at += chunk {
		if then == nil && midway != nil && at >= len(stream)/2 {
			midway(s)
			then = bytes.Clone(s.slab[slabBuf:][:sequentialLen])
		}
		s.s.feed(stream[at:min(at+chunk, len(stream))])
		s.step()
		s.predicted = s.predicted || s.ctx.streams.gaps.total > 0
	}
	s.untouched([2]int{slabBuf, slabBuf + sequentialLen})
	o := outcome{bytes.Clone(s.slab[slabBuf:][:sequentialLen]), bytes.Clone(s.s.sent), s.q.State(), drain(s.rcq), s.asyncEvents()}
	if then != nil && !s.q.recvWait && !s.s.ended && !bytes.Equal(then, o.written) {
		s.Error("the region is written to when it may not be any more")
	}
	return o
}

// same compares what came of a stream with what would have without prediction. What the peer did not write is not
// determined.
func same(t *testing.T, got, want outcome) {
	t.Helper()
	for i, b := range want.written {
		if b != 0 && got.written[i] != b {
			t.Fatalf("byte %d of the region is %d, want %d", i, got.written[i], b)
		}
	}
	got.written, want.written = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

// TestRC_predicted has long Writes, and what only begins like one, come in pieces of all sizes.
func TestRC_predicted(t *testing.T) {
	type row struct {
		mode   rcMode
		stream func(s *sequential) []byte
		midway func(s *sequential) // behind it the region may not be written to
		waits  bool                // there is no receive before midway
		never  bool                // nothing is to be predicted
	}
	whole := func(s *sequential) []byte { return append(s.cut(0, sequentialLen, 8000), s.fpdu(s.send(100))...) }
	for name, r := range map[string]row{
		"the whole region":         {stream: whole},
		"padding, and a short end": {stream: func(s *sequential) []byte { return append(s.cut(3, sequentialLen-3, 8001), s.fpdu(s.send(9))...) }},
		"half, and a Send":         {stream: func(s *sequential) []byte { return append(s.cut(0, 30_000, 8000), s.fpdu(s.send(100))...) }},
		"half, and the other half": {stream: func(s *sequential) []byte { return append(s.cut(0, 32_000, 8000), s.cut(32_000, 28_000, 8000)...) }},
		"half, and half of it":     {stream: func(s *sequential) []byte { return append(s.cut(0, 32_000, 8000), s.cut(8000, 16_000, 8000)...) }},
		"other segments": {stream: func(s *sequential) []byte {
			return append(s.cut(0, 60_000, 8000)[:32_080], s.cut(32_000, 9000, 4500)...)
		}},
		"a Send in the middle": {stream: func(s *sequential) []byte { return append(s.cut(0, 24_000, 8000)[:16_040], s.fpdu(s.send(5))...) }},
		"another place": {stream: func(s *sequential) []byte {
			return append(s.cut(0, 24_000, 8000)[:8020], s.cut(20_000, 16_000, 8000)...)
		}},
		"a Send that waits": {waits: true, stream: func(s *sequential) []byte {
			return slices.Concat(s.cut(0, 24_000, 8000)[:16_040], s.fpdu(s.send(5)), s.cut(40_000, 8000, 8000), s.cut(16_000, 24_000, 8000))
		}, midway: func(s *sequential) { s.postRecvs(3, 200) }},
		"beyond the region": {stream: func(s *sequential) []byte {
			return append(s.cut(0, 59_000, 8000)[:56_140], s.cut(56_000, 8000, 8000)...)
		}},
		"no more a region":          {stream: whole, midway: func(s *sequential) { ok(s, s.mr.Dereg()) }},
		"no more a connection":      {stream: whole, midway: func(s *sequential) { ok(s, s.q.Modify(StateErr)) }},
		"the user has disconnected": {stream: whole, midway: func(s *sequential) { ok(s, s.id.Disconnect()) }},
		"the stream ends":           {stream: whole, midway: func(s *sequential) { s.s.end() }},
		"CRC":                       {stream: whole, mode: rcMode{crc: true}, never: true},
		"markers":                   {stream: whole, mode: rcMode{markers: true}, never: true},
		"short segments":            {stream: func(s *sequential) []byte { return s.cut(0, sequentialLen, predictLeast-1) }, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{1, 7, 23, 4000, 8018, 8020, 8026, 10_000, 20_000, 33_000, 1 << 20} {
				var o [2]outcome
				for i, vector := range []bool{false, true} {
					s := newSequential(t, r.mode, vector)
					if s.q.recvWait = r.waits; !r.waits {
						s.postRecvs(3, 200)
					}
					o[i] = s.hear(r.stream(s), chunk, r.midway)
					if predicts := vector && !r.never; s.predicted && !predicts || !s.predicted && predicts && chunk < 100 {
						t.Errorf("pieces of %d, into several buffers %v: received where it belongs: %v", chunk, vector, s.predicted)
					}
				}
				same(t, o[1], o[0])
			}
		})
	}
}

// TestAllocs_predicted is header prediction over the kernel's TCP, which allocates nothing.
func TestAllocs_predicted(t *testing.T) {
	a, b := rcPair(t, ConnParam{})
	const n = 900_000
	for i := range a.mem {
		a.mem[i] = byte(i * 7 >> 3)
	}
	var err error
	b.mr, err = b.pd.RegMR(b.mem[:n], LocalWrite|RemoteWrite|SequentialWrite)
	must(t, err)
	c := rcRound{OpRDMAWriteWithImm, n, true}
	for range 20 {
		clear(b.mem)
		if c.run(a, b); !bytes.Equal(b.mem[:n], a.mem[:n]) {
			t.Fatal("what was received is not what was sent")
		}
	}
	if b.ctx.streams.gaps.total == 0 {
		t.Error("nothing was received where it belongs")
	}
	if n := testing.AllocsPerRun(50, func() { c.run(a, b) }); n != 0 {
		t.Errorf("a Write allocates %v times", n)
	}
}

// FuzzRC_predicted changes bytes of a Write and of what is behind it: what comes of that is the same with prediction.
func FuzzRC_predicted(f *testing.F) {
	f.Add(uint16(5000), uint16(8022), byte(1), uint16(7000))
	f.Fuzz(func(t *testing.T, piece, at uint16, change byte, chunk uint16) {
		var o [2]outcome
		for i, vector := range []bool{false, true} {
			s := newSequential(t, rcMode{}, vector)
			s.postRecvs(3, 200)
			stream := append(s.cut(0, sequentialLen, max(int(piece), 500)), s.fpdu(s.send(8))...)
			stream[int(at)%len(stream)] ^= change
			o[i] = s.hear(stream, max(int(chunk), 50), nil)
		}
		same(t, o[1], o[0])
	})
}
