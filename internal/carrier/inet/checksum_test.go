package inet

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// slowSum is RFC 1071, section 4.1, word by word in network order.
func slowSum(b []byte) uint16 {
	var sum uint32
	for len(b) >= 2 {
		sum += uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

func value(s Sum) uint16 {
	var b [2]byte
	s.PutChecksum(b[:])
	return ^binary.BigEndian.Uint16(b[:])
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestSum_knownAnswer(t *testing.T) {
	// The example of RFC 1071, section 3.
	got := value(Sum(0).Add([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}))
	if got != 0xddf2 {
		t.Errorf("sum is %#x, RFC 1071 says 0xddf2", got)
	}
}

func TestSum_everyLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 1200 {
		b := randomBytes(r, n)
		if got, want := value(Sum(0).Add(b)), slowSum(b); got != want {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

func TestSum_carries(t *testing.T) {
	for _, n := range []int{2, 8, 63, 64, 65, 128, 512, 639, 640, 9001, 60000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = 0xff
		}
		for _, start := range []Sum{0, 1, ^Sum(0), ^Sum(0) - 1} {
			want := Sum(slowSum(b)).fold() // 0xffff or 0xff00: read in network order
			wantValue := uint32(want) + uint32(value(start))
			wantValue = wantValue>>16 + wantValue&0xffff
			if got := value(start.Add(b)); uint32(got) != wantValue {
				t.Errorf("%d bytes of 0xff onto %#x: %#x, want %#x", n, start, got, wantValue)
			}
		}
	}
}

func TestSum_zeroIsSentAsOnes(t *testing.T) {
	var b [2]byte
	Sum(0xffff).PutChecksumUDP(b[:])
	if b != [2]byte{0xff, 0xff} {
		t.Errorf("a UDP checksum of 0 is written as %x: that means no checksum", b)
	}
	Sum(0xffff).PutChecksum(b[:])
	if b != [2]byte{} {
		t.Errorf("a checksum of 0 is written as %x", b)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add([]byte{1}, uint16(1))
	f.Add(make([]byte, 200), uint16(131))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		want := slowSum(b)
		if got := value(Sum(0).Add(b)); got != want {
			t.Fatalf("whole: %#x, want %#x", got, want)
		}
		k := int(cut) % (len(b) + 1)
		s := Sum(0).Add(b[:k])
		if k%2 == 0 {
			s = s.Add(b[k:])
		} else {
			s = s.Merge(Sum(0).Add(b[k:]).Swap())
		}
		if got := value(s); got != want {
			t.Fatalf("cut at %d: %#x, want %#x", k, got, want)
		}
		if len(b)%2 == 0 {
			sum := make([]byte, 2)
			s.PutChecksum(sum)
			if !s.Add(sum).Good() {
				t.Fatal("data with its checksum is not good")
			}
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{20, 64, 512, 4096, 8972} {
		data := make([]byte, n)
		b.Run(sizeName(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			var s Sum
			for b.Loop() {
				s = s.Add(data)
			}
		})
	}
}
