package secure

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The third test case of the submission of GCM to NIST: no additional data, as here.
func TestAEAD_nist(t *testing.T) {
	plain := unhex(t, "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255")
	want := unhex(t, "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985"+"4d5c2af327cd64a62cf35abd2ba6fab4")
	got := newAEAD(unhex(t, "feffe9928665731c6d6a8f9467308308")).Seal(nil, unhex(t, "cafebabefacedbaddecaf888"), plain, nil)
	if !bytes.Equal(got, want) {
		t.Errorf("%x", got)
	}
}

// What is on the wire, computed by an implementation of HKDF, AES and GCM that has nothing in
// common with this one.
func TestDatagram_onTheWire(t *testing.T) {
	instance := Instance(unhex(t, "a0a1a2a3a4a5a6a7a8a9aaab"))
	numbers := make([]byte, 40)
	for i := range numbers {
		numbers[i] = byte(i)
	}
	send := []string{"hello, peer", "", string(numbers)}
	want := []string{
		"a0a1a2a3300000000000000000000000a4a5a6a7a8a9aaabefe556bef3774520db106d68cb789e5e1769fbe914d25fe32e6f34",
		"a0a1a2a3300000000000000000000001a4a5a6a7a8a9aaabea21d4cffe39d3884687f6eb6fe6842c",
		"a0a1a2a3300000000000000000000002a4a5a6a7a8a9aaab8b37a409b563779e575d114d90fcd588efdc99ee4d7ca00c8d5111f54348c369db0464dfe2d68cca31e45ded4c1acc42f423267d373711b4",
	}
	const second = "a0a1a2a3300000000000000000000002a4a5a6a7a8a9aaab04ef0c86d245e55d05004a22bb93510f908865d2a9c10c155d2f8040f96caa47e37cf847a98cfa5fe8d01cf3f9d076983a5a54abc5454b43"
	for _, bits := range []uint{0, 1} {
		r := newRig(t, Config{Instance: instance, KeyBits: bits})
		for _, s := range send {
			r.send(r.a, s)
		}
		if bits == 1 {
			want[2] = second // by the next key
		}
		for i, c := range r.take() {
			if got := hex.EncodeToString(c.bytes); got != want[i] {
				t.Errorf("%d, key bits %d:\n%s, want\n%s", i, bits, got, want[i])
			}
		}
		if got := r.received(r.b); !slices.Equal(got, send) {
			t.Errorf("%q arrive", got)
		}
	}
	const group = "a0a1a2a3300100000000000000000000a4a5a6a7a8a9aaababcc9600ab871efa3a880858f66878c9b0632686767d55b4ae6d"
	r := newRig(t, Config{Instance: instance})
	r.a.to = r.path(r.a, netip.MustParseAddrPort("239.1.2.3:4792"))
	r.send(r.a, "hello, all")
	c := r.take()[0]
	if got := hex.EncodeToString(c.bytes); got != group {
		t.Errorf("to a group:\n%s, want\n%s", got, group)
	}
	c.to = fabric.RemoteOf(addrB)
	r.inject(c)
	if got := r.received(r.b); !slices.Equal(got, []string{"hello, all"}) {
		t.Errorf("%q arrive from the group", got)
	}
}

// No bit of a datagram can be changed, none can be cut off or added, and nobody else can have
// sent it or take it. What is refused leaves no trace: the datagram itself is taken afterwards.
func TestDatagram_tampered(t *testing.T) {
	for _, size := range []int{0, 1, 76, 1432, 4000, 4096 - mesh.Headroom - Overhead, 8800} {
		r := newRig(t, Config{})
		r.send(r.a, "the first") // so that the key is known
		r.received(r.b)
		r.take()
		r.held = true
		r.send(r.a, strings.Repeat("x", size))
		c := r.take()[0]
		var forged []captured
		change := func(f func(c *captured)) {
			d := captured{c.from, c.to, bytes.Clone(c.bytes)}
			f(&d)
			forged = append(forged, d)
		}
		for i := range c.bytes {
			for bit := range 8 {
				if size < 100 || bit == i%8 {
					change(func(d *captured) { d.bytes[i] ^= 1 << bit })
				}
			}
		}
		for _, n := range []int{0, 1, HeaderLen - 1, HeaderLen, Overhead - 1, Overhead, len(c.bytes) - 1} {
			change(func(d *captured) { d.bytes = d.bytes[:min(n, len(d.bytes)-1)] })
		}
		change(func(d *captured) { d.bytes = append(d.bytes, 0) })
		change(func(d *captured) { d.from = d.from.WithPort(4793) })
		change(func(d *captured) { d.from = fabric.Remote4(10<<24|3, 4791) })
		for i, d := range forged {
			r.inject(d)
			if got := r.received(r.b); got != nil {
				t.Fatalf("%d bytes: forgery %d is taken: %q", size, i, got)
			}
		}
		if s := r.b.Stats(); s.RxForged+s.RxReplayed != uint64(len(forged)) {
			t.Errorf("%d bytes: %d forgeries are counted as %d and %d", size, len(forged), s.RxForged, s.RxReplayed)
		}
		other := r.open(netip.MustParseAddrPort("10.0.0.3:4792"), Config{Secret: counting()})
		r.inject(captured{c.from, fabric.RemoteOf(other.Local()), c.bytes})
		if got := r.received(other); got != nil {
			t.Errorf("%d bytes: somebody else takes it", size)
		}
		free := r.net.Free()
		r.inject(c)
		if got := r.received(r.b); len(got) != 1 || got[0] != strings.Repeat("x", size) {
			t.Errorf("%d bytes: the datagram itself is not taken after that", size)
		}
		if r.net.Free() != free {
			t.Errorf("%d bytes: frames are missing", size)
		}
	}
}

// A whole conversation is played again, to both ends and many times, in any order: nothing of
// it is taken, and what follows is.
func TestDatagram_replayed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRig(t, Config{KeyBits: 6})
	for i := range 3000 {
		e := r.a
		if i%3 == 0 {
			e = r.b
		}
		r.send(e, strings.Repeat("m", i%100))
		r.received(r.a)
		r.received(r.b)
	}
	all := r.take()
	for round := range 3 {
		for range all {
			r.inject(all[rng.IntN(len(all))])
			if got := append(r.received(r.a), r.received(r.b)...); got != nil {
				t.Fatalf("round %d: taken again: %q", round, got)
			}
		}
	}
	if s := r.b.Stats(); s.RxReplayed == 0 || s.RxForged != 0 {
		t.Errorf("%d count as replayed, %d as forged", s.RxReplayed, s.RxForged)
	}
	r.send(r.a, "next")
	r.send(r.b, "next")
	if got := append(r.received(r.a), r.received(r.b)...); !slices.Equal(got, []string{"next", "next"}) {
		t.Errorf("after that %q arrive", got)
	}
	// Into the next job, at the same addresses.
	next := newRig(t, Config{Secret: bytes.Repeat([]byte{1}, SecretLen), KeyBits: 6})
	for _, c := range all {
		next.inject(c)
		if got := append(next.received(next.a), next.received(next.b)...); got != nil {
			t.Fatalf("the next job takes %q of the last one", got)
		}
	}
	if s := next.b.Stats(); s.RxForged != 2000 {
		t.Errorf("%d of 2000 count as forged", s.RxForged)
	}
}

// One end has another secret: neither hears the other.
func TestDatagram_otherSecret(t *testing.T) {
	r := newRig(t, Config{})
	c := r.open(addrA, Config{Secret: bytes.Repeat([]byte{2}, SecretLen)}) // takes the place of a
	c.to = r.path(c, addrB)
	for range 10 {
		r.send(c, "hello")
		r.send(r.b, "hello")
	}
	if got := append(r.received(c), r.received(r.b)...); got != nil {
		t.Errorf("%q arrive", got)
	}
	if n := c.Stats().RxForged + r.b.Stats().RxForged; n != 20 {
		t.Errorf("%d of 20 are counted", n)
	}
}

// Keys change in spite of loss and reordering, also when a whole generation is lost; and no
// nonce comes twice, also when an end forgets its paths or begins a new life.
func TestDatagram_rekeying(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := newRig(t, Config{KeyBits: 3})
	r.held = true
	type nonce struct {
		sender   [12]byte
		from, to fabric.Remote
		counter  uint64
	}
	seen := map[nonce]bool{}
	var late []captured
	lives, took := 1, 0
	for i := range 5000 {
		switch rng.IntN(200) {
		case 0:
			r.a = r.open(addrA, Config{Secret: counting(), KeyBits: 3})
			r.a.to = r.path(r.a, addrB)
			lives++
		case 1:
			r.a.Drop(r.a.to)
			r.a.to, _ = r.a.Back(fabric.RemoteOf(addrB), 0)
		}
		r.send(r.a, "payload")
		c := r.take()[0]
		n := nonce{from: c.from, to: c.to, counter: binary.BigEndian.Uint64(c.bytes[8:])}
		copy(n.sender[:], c.bytes[:4])
		copy(n.sender[4:], c.bytes[16:24])
		if seen[n] {
			t.Fatalf("datagram %d: the nonce %d comes twice", i, n.counter)
		}
		seen[n] = true
		if phase := i / 100 % 3; phase == 1 && i%100 < 50 {
			continue // six generations are lost
		}
		late = append(late, c)
		if len(late) < 4 {
			continue
		}
		k := rng.IntN(len(late))
		r.inject(late[k])
		late = slices.Delete(late, k, k+1)
		got := r.received(r.b)
		if len(got) == 1 && got[0] != "payload" {
			t.Fatalf("%q arrives", got)
		}
		took += len(got)
	}
	if s := r.b.Stats(); s.RxForged != 0 || took < 3500 || lives < 5 {
		t.Errorf("%d taken, %d count as forged, %d as replayed, in %d lives", took, s.RxForged, s.RxReplayed, lives)
	}
}

// Datagrams of senders that are not known cost a few derivations of keys in each batch; those
// of known ones are taken beside any number of them, and nothing is remembered of the former.
func TestDatagram_strangers(t *testing.T) {
	r := newRig(t, Config{})
	r.send(r.a, "known")
	r.received(r.b)
	for i := range 40 {
		forged := make([]byte, 100)
		h := header{who: uint32(i), counter: uint64(i)}
		h.put(forged)
		r.inject(captured{fabric.RemoteOf(addrA), fabric.RemoteOf(addrB), forged})
	}
	r.send(r.a, "beside them")
	if got := r.received(r.b); !slices.Equal(got, []string{"beside them"}) {
		t.Errorf("%q arrive", got)
	}
	if r.b.tried != strangersTried {
		t.Errorf("%d keys were derived for strangers, want %d", r.b.tried, strangersTried)
	}
	if n := r.b.senders.Len(); n != 1 {
		t.Errorf("%d senders are remembered", n)
	}
	if n := r.b.Stats().RxForged; n != 40 {
		t.Errorf("%d of 40 are counted", n)
	}
}

// The window against a set.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var w window
		seen, high := map[uint64]bool{}, uint64(rng.IntN(5000))
		w.high = high
		for range 3000 {
			c := uint64(max(0, int(high)+rng.IntN(2200)-2100))
			if rng.IntN(300) == 0 {
				c += uint64(rng.IntN(5000))
			}
			old := high/64-min(c, high)/64 >= windowWords
			if fresh := w.fresh(c); fresh == (seen[c] || old) {
				t.Fatalf("%d is fresh: %v; come: %v, high %d", c, fresh, seen[c], high)
			}
			if w.fresh(c) {
				w.mark(c)
				seen[c], high = true, max(high, c)
			}
		}
	}
}

// A secret of another length is refused: it may be a mistake that makes it empty.
func TestNew_secret(t *testing.T) {
	net, err := mesh.New(mesh.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 16, 33} {
		if _, err := New(net.Open(addrA, 0), Config{Secret: make([]byte, n)}); err == nil {
			t.Errorf("a secret of %d bytes is taken", n)
		}
	}
}

// A datagram that finds no frame for its last bytes is lost, and its counter is used up: the
// nonce may have been used to encrypt it.
func TestDatagram_noFrame(t *testing.T) {
	r := newRig(t, Config{})
	r.send(r.a, "first")
	room := mem.FrameSize - r.a.Caps().Headroom
	user, err := r.a.Arena().Alloc(mem.FrameSize, mem.FrameSize)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := r.a.Frame()
	var all []mem.Addr
	for f, ok := r.a.Frame(); ok; f, ok = r.a.Frame() {
		all = append(all, f)
	}
	b := fabric.NewBatch(1, fabric.MaxBufs)
	b.Descs = append(b.Descs, fabric.Desc{Addr: first + mem.Addr(r.a.Caps().Headroom), Len: uint32(room), Flags: fabric.More}, fabric.Desc{Addr: user, Len: 100})
	b.Pkts = append(b.Pkts, fabric.Packet{Bufs: 2, Len: int32(room + 100), To: r.a.to})
	r.a.Send(b)
	r.a.Flush()
	if n := r.a.Stats().TxErrors; n != 1 {
		t.Errorf("%d datagrams are lost for want of a frame, want 1", n)
	}
	for _, f := range all {
		r.a.Unframe(f)
	}
	r.send(r.a, "next")
	wire := r.take()
	if len(wire) != 2 || binary.BigEndian.Uint64(wire[1].bytes[8:]) != 2 {
		t.Errorf("%d datagrams on the wire, the last one %x: want two, and the counter 2", len(wire), wire[len(wire)-1].bytes[:HeaderLen])
	}
	if got := r.received(r.b); !slices.Equal(got, []string{"first", "next"}) {
		t.Errorf("%q arrive", got)
	}
	if n := r.net.Free(); n != 1024 {
		t.Errorf("%d frames are free", n)
	}
}

// detailed is a carrier of which more is known later.
type detailed struct {
	fabric.Datagram
	detail string
}

func (d *detailed) Caps() fabric.DatagramCaps {
	c := d.Datagram.Caps()
	c.Detail = d.detail
	return c
}

// How the carrier below is used is told as it is now.
func TestDatagram_detail(t *testing.T) {
	net, err := mesh.New(mesh.Config{})
	if err != nil {
		t.Fatal(err)
	}
	below := &detailed{Datagram: net.Open(addrA, 0)}
	d, err := New(below, Config{Secret: counting()})
	if err != nil {
		t.Fatal(err)
	}
	below.detail = "eth1, 4 queues"
	if c := d.Caps(); c.Detail != below.detail || c.Carrier != "mesh+aes-gcm" {
		t.Errorf("%+v", c)
	}
}
