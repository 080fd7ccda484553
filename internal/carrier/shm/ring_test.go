package shm

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// newPair makes both ends of a ring in plain memory, the receiver's arena
// being all of it with canaries around the ring.
func newPair(t testing.TB, size, most int) (*outbound, *inbound, *mem.Arena) {
	t.Helper()
	const fence = 4096
	memory := make([]byte, size+2*fence+granule)
	skew := -int(mem.AddressOf(memory)) & (granule - 1)
	arena := mem.Over(memory[skew:][:size+2*fence])
	for i := range arena.Bytes() {
		arena.Bytes()[i] = 0xca
	}
	data := arena.At(fence, size)
	clear(data)
	shared := newRing(make([]byte, dataAt), data)
	in := &inbound{reader: reader{ring: shared, most: most, alive: &liveness{}}, base: fence, lent: make([]uint32, size/granule)}
	return &outbound{writer: writer{ring: shared, limit: uint64(size)}, max: most, alive: &liveness{}}, in, arena
}

// TestRing_wrapsAndComesBackOutOfOrder moves datagrams of all sizes through a
// small ring many times around, released in another order than they came in.
func TestRing_wrapsAndComesBackOutOfOrder(t *testing.T) {
	const most = 3000
	out, in, arena := newPair(t, 16<<10, most)
	source := make([]byte, most)
	var held []mem.Addr
	full, sent, read := 0, 0, 0
	size := func(i int) int { return i * i * 37 % (most + 1) }
	for sent < 5000 {
		n := size(sent)
		for i := range source[:n] {
			source[i] = byte(sent + i)
		}
		if out.put(source, []fabric.Desc{{Addr: 0, Len: uint32(n / 3)}, {Addr: mem.Addr(n / 3), Len: uint32(n - n/3)}}, n) {
			sent++
			continue
		}
		full++
		for at, got, ok := in.take(); ok; at, got, ok = in.take() {
			data := arena.At(at, int(got))
			if int(got) != size(read) {
				t.Fatalf("datagram %d has %d bytes, want %d", read, got, size(read))
			}
			for i := range data {
				if data[i] != byte(read+i) {
					t.Fatalf("datagram %d differs at %d", read, i)
				}
			}
			held = append(held, at)
			read++
		}
		for _, first := range []int{1, 0} { // odd ones, then even ones
			for i := first; i < len(held); i += 2 {
				in.giveBack(uint64(held[i]-in.base) - headerLen)
			}
		}
		held = held[:0]
		in.publish()
		if in.freed != in.next || in.broken {
			t.Fatalf("released up to %d of %d, broken %v", in.freed, in.next, in.broken)
		}
	}
	if full < 100 {
		t.Errorf("the ring was full %d times only", full)
	}
}

// What is done ahead for the next record, or behind one that was read, leaves those alone that were not read yet, however full the ring is.
func TestRing_fullOfOneLength(t *testing.T) {
	for _, n := range []int{0, 8, granule - headerLen, granule, 3 * granule, 2 << 10, 3000} {
		out, in, arena := newPair(t, 16<<10, 3000)
		source := make([]byte, n)
		sent, read := 0, 0
		for range 20 {
			for {
				for i := range source {
					source[i] = byte(sent + i)
				}
				if !out.put(source, []fabric.Desc{{Len: uint32(n)}}, n) {
					break
				}
				sent++
			}
			for ; read < sent; read++ {
				at, got, ok := in.take()
				if !ok || int(got) != n {
					t.Fatalf("%d bytes: record %d of %d has %d (%v)", n, read, sent, got, ok)
				}
				for i, b := range arena.At(at, n) {
					if b != byte(read+i) {
						t.Fatalf("%d bytes: record %d differs at %d", n, read, i)
					}
				}
				in.release(uint64(at-in.base) - headerLen)
			}
			in.publish()
		}
		if least := 20 * 4; sent < least {
			t.Errorf("%d bytes: %d records in 20 laps, want %d at least", n, sent, least)
		}
	}
}

// TestRing_holdsDepth fits as many of the largest as RxDepth says, wherever
// the ends are.
func TestRing_holdsDepth(t *testing.T) {
	for _, most := range []int{56, 57, 1472, 5000} {
		for skew := range 300 {
			out, in, _ := newPair(t, 16<<10, most)
			empty := make([]byte, most)
			for range skew { // moves the ends by one granule each
				out.put(empty, nil, 0)
				at, _, _ := in.take()
				in.giveBack(uint64(at-in.base) - headerLen)
				in.publish()
			}
			for i := range depth(16<<10, most) {
				if !out.put(empty, []fabric.Desc{{Len: uint32(most)}}, most) {
					t.Fatalf("%d bytes, %d granules on: no room for number %d", most, skew, i)
				}
			}
		}
	}
}

func TestRing_nonsense(t *testing.T) {
	const size, most = 16 << 10, 3000
	for _, c := range []struct {
		name   string
		header uint64
		pos    uint64 // of the receiver
	}{
		{"too long", present | (most + 1), 0},
		{"longer than the ring", present | 1<<31, 0},
		{"over the end", present | 2000, size - 1024},
		{"unknown bits", present | 1<<40 | 8, 0},
		{"not present", 8, 0},
		{"skips all", present | skip, 0},
		{"skips to nothing", present | skip, size - 1024},
		{"skip with a length", present | skip | 8, size - 1024},
	} {
		_, in, _ := newPair(t, size, most)
		in.next, in.freed = c.pos, c.pos
		in.header(c.pos).Store(c.header)
		if _, _, ok := in.take(); ok || !in.broken || in.waiting() {
			t.Errorf("%s: accepted %v, broken %v", c.name, ok, in.broken)
		}
	}
	// A record over memory that is lent.
	_, in, _ := newPair(t, size, most)
	for in.next < 3*size/4 {
		in.header(in.next).Store(present | 2000)
		in.take()
	}
	in.header(in.next).Store(present | skip)
	in.header(size).Store(present | 2000)
	for !in.broken {
		if at, _, ok := in.take(); ok && in.next-in.freed > size {
			t.Fatalf("lent twice at %#x", at)
		}
		in.header(in.next).Store(present | 2000)
	}
}

// TestPut_impossibleHead does not believe a receiver that has read more than
// was written.
func TestPut_impossibleHead(t *testing.T) {
	out, _, _ := newPair(t, 16<<10, 3000)
	data := make([]byte, 3000)
	for n := range 5 {
		if !out.put(data, []fabric.Desc{{Len: 3000}}, 3000) {
			t.Fatalf("no room for %d", n)
		}
	}
	out.head.Store(out.next + 64)
	if out.put(data, []fabric.Desc{{Len: 3000}}, 3000) || !out.alive.gone.Load() {
		t.Error("accepted")
	}
}

// FuzzTake reads a ring full of whatever there is, and stays inside of it.
func FuzzTake(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, uint16(0))
	f.Add(binary.NativeEndian.AppendUint64(nil, present|skip), uint16(255))
	f.Add(bytes.Repeat(binary.NativeEndian.AppendUint64(nil, present|100), 500), uint16(9))
	f.Fuzz(func(t *testing.T, memory []byte, start uint16) {
		const size, most = 16 << 10, 3000
		_, in, arena := newPair(t, size, most)
		for i := 0; i < size && len(memory) > 0; i += copy(in.data[i:], memory) {
		}
		in.next = uint64(start) % (size / granule) * granule
		in.freed = in.next
		var held []uint64
		for {
			at, n, ok := in.take()
			if !ok || len(held) > 10000 {
				break
			}
			if at < in.base || uint64(at-in.base)+uint64(n) > size || n > most {
				t.Fatalf("%d bytes at %#x", n, at)
			}
			held = append(held, uint64(at-in.base)-headerLen)
			if len(held)%3 == 0 {
				in.giveBack(held[len(held)-2])
				in.giveBack(held[len(held)-1])
				in.giveBack(held[len(held)-3])
				in.publish()
			}
		}
		for _, canary := range [][]byte{arena.At(0, 4096), arena.At(4096+size, 4096)} {
			if len(bytes.Trim(canary, "\xca")) != 0 {
				t.Fatal("written outside of the ring")
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(bodyOf(&call{Port: 9, Addr: netip.MustParseAddr("127.0.0.1").As16()}))
	f.Add(bodyOf(&call{Rank: 3, At: 1 << 40}))
	f.Add(bodyOf(&answer{Ring: 1 << 20, Memory: dataAt + 1<<20, Most: 8972}))
	f.Add(bodyOf(&answer{Ring: ringMin, Memory: dataAt + ringMin, Most: 100, Slot: 3, Pulls: 1}))
	f.Add(bodyOf(&answer{Ring: channelRing, At: dataAt + channelRing, Memory: mem.HugePage, Most: 100, Slot: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c call
		if parse(b, &c) && !bytes.Equal(bodyOf(&c), b) {
			t.Errorf("%x became %x", b, bodyOf(&c))
		}
		var a answer
		if !parse(b, &a) {
			return
		}
		if !bytes.Equal(bodyOf(&a), b) {
			t.Errorf("%x became %x", b, bodyOf(&a))
		}
		ring, at := int(a.Ring), int(a.At)
		if a.usable() && (at%dataAt != 0 || at+dataAt+ring > int(a.Memory)) {
			t.Errorf("accepted a ring outside of its memory: %+v", a)
		}
		if a.usable() && (ring < ringMin || ring > ringMax || ring&(ring-1) != 0 || a.Slot >= channelPeers || depth(ring, int(a.Most)) < 1) {
			t.Errorf("accepted %+v", a)
		}
	})
}
