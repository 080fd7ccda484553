package ring

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// memory returns n bytes that start at a multiple of 64.
func memory(n int) []byte {
	b := make([]byte, n+64)
	for !aligned(b, 64) {
		b = b[1:]
	}
	return b[:n:n]
}

// pair opens both ends of a new ring with size bytes of data.
func pair(t testing.TB, size int) (*Producer, *Consumer) {
	t.Helper()
	mem := memory(dataAt + size)
	if err := Format(mem); err != nil {
		t.Fatal(err)
	}
	p, err := NewProducer(mem)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConsumer(mem)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func (p *Producer) push(b []byte) bool {
	dst := p.Reserve(len(b))
	if dst == nil {
		return false
	}
	copy(dst, b)
	p.Commit(len(b))
	return true
}

func TestFormat_refuses(t *testing.T) {
	mem := memory(1024)
	if err := Format(mem[:dataAt+sizeMin-1]); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("too little memory: %v", err)
	}
	if err := Format(mem[8:]); err == nil || !strings.Contains(err.Error(), "multiple of 64") {
		t.Errorf("unaligned memory: %v", err)
	}
}

func TestNewProducer_refuses(t *testing.T) {
	good := memory(dataAt + 512)
	if err := Format(good); err != nil {
		t.Fatal(err)
	}
	for name, mem := range map[string][]byte{
		"not formatted": memory(1024),
		"nothing":       nil,
		"cut short":     good[:dataAt+256],
	} {
		if _, err := NewProducer(mem); err == nil {
			t.Errorf("%s: a producer was opened", name)
		}
		if _, err := NewConsumer(mem); err == nil {
			t.Errorf("%s: a consumer was opened", name)
		}
	}
}

func TestSPSC_sizeIsAPowerOfTwo(t *testing.T) {
	p, _ := pair(t, 1000)
	if len(p.data) != 512 || p.MaxRecord() != 248 {
		t.Errorf("%d bytes of data, records of up to %d", len(p.data), p.MaxRecord())
	}
}

func TestSPSC_seenAfterFlushOnly(t *testing.T) {
	p, c := pair(t, 256)
	if _, ok := c.Next(); ok {
		t.Fatal("a record in an empty ring")
	}
	p.push([]byte("one"))
	if _, ok := c.Next(); ok {
		t.Error("a record before Flush")
	}
	p.push(nil)
	p.Flush()
	if b, ok := c.Next(); !ok || string(b) != "one" {
		t.Errorf("%q, %v", b, ok)
	}
	if b, ok := c.Next(); !ok || b == nil || len(b) != 0 {
		t.Errorf("empty record: %v, %v", b, ok)
	}
	if _, ok := c.Next(); ok {
		t.Error("a third record")
	}
}

func TestSPSC_roomComesBackWithRelease(t *testing.T) {
	p, c := pair(t, 256)
	n := 0
	for p.push(make([]byte, 24)) {
		n++
	}
	if n != 8 {
		t.Errorf("%d records of 32 bytes fit into 256", n)
	}
	p.Flush()
	c.Next()
	if p.push(nil) {
		t.Error("room before Release")
	}
	c.Release()
	if !p.push(make([]byte, 24)) || p.push(nil) {
		t.Error("not exactly the room of one record came back")
	}
}

func TestSPSC_largestRecordAlwaysFits(t *testing.T) {
	p, c := pair(t, 256)
	big := bytes.Repeat([]byte{7}, p.MaxRecord())
	for i := range 100 {
		if !p.push(make([]byte, i%40)) {
			t.Fatal("no room in an empty ring")
		}
		p.Flush()
		c.Next()
		c.Release()
		if !p.push(big) {
			t.Fatalf("round %d: no room for the largest record in an empty ring", i)
		}
		p.Flush()
		if b, ok := c.Next(); !ok || !bytes.Equal(b, big) {
			t.Fatalf("round %d: %d bytes, %v", i, len(b), ok)
		}
		c.Release()
	}
}

func TestReserve_canBeDroppedAndShortened(t *testing.T) {
	p, c := pair(t, 256)
	for range 50 {
		p.Reserve(120)
		copy(p.Reserve(100), "short")
		p.Commit(5)
		p.Flush()
		if b, ok := c.Next(); !ok || string(b) != "short" {
			t.Fatalf("%q, %v", b, ok)
		}
		c.Release()
	}
}

func TestProducer_panicsOnMisuse(t *testing.T) {
	for name, f := range map[string]func(p *Producer){
		"too large":          func(p *Producer) { p.Reserve(p.MaxRecord() + 1) },
		"negative":           func(p *Producer) { p.Reserve(-1) },
		"more than reserved": func(p *Producer) { p.Reserve(4); p.Commit(5) },
		"not reserved":       func(p *Producer) { p.Commit(0) },
		"committed twice":    func(p *Producer) { p.Reserve(4); p.Commit(4); p.Commit(0) },
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := pair(t, 256)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(p)
		})
	}
}

func TestNext_panicsWhenOverwritten(t *testing.T) {
	for _, length := range []uint64{1000, 1 << 40, 100} { // 100: more than was written
		p, c := pair(t, 256)
		p.push([]byte("fine"))
		p.Flush()
		binary.NativeEndian.PutUint64(p.data, length)
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "wrote over") {
					t.Errorf("length %d: panic %q", length, v)
				}
			}()
			c.Next()
		}()
	}
}

// Random records in random batches come out as they went in.
func TestSPSC_random(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, c := pair(t, 64<<r.IntN(6))
		var inside [][]byte
		for range 3000 {
			switch r.IntN(4) {
			case 0, 1:
				b := make([]byte, r.IntN(p.MaxRecord()+1))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				if p.push(b) {
					inside = append(inside, b)
				}
			case 2:
				p.Flush()
			case 3:
				for range r.IntN(4) {
					b, ok := c.Next()
					if !ok {
						break
					}
					if !bytes.Equal(b, inside[0]) {
						t.Fatalf("seed %d: %d bytes came out, %d went in", seed, len(b), len(inside[0]))
					}
					inside = inside[1:]
				}
				c.Release()
			}
		}
		p.Flush()
		for range inside {
			if _, ok := c.Next(); !ok {
				t.Fatalf("seed %d: records got lost", seed)
			}
		}
	}
}

// Two goroutines; the consumer sleeps when there is nothing, and must be woken.
func TestSPSC_twoGoroutines(t *testing.T) {
	const records = 50000
	p, c := pair(t, 1024)
	bell := make(chan struct{}, 1)
	go func() {
		r := rand.New(rand.NewPCG(1, 2))
		for i := uint64(0); i < records; {
			b := p.Reserve(8 + r.IntN(100))
			if b == nil {
				if p.Flush() { // what is not flushed is never released
					bell <- struct{}{}
				}
				runtime.Gosched()
				continue
			}
			binary.LittleEndian.PutUint64(b, i)
			for j := range b[8:] {
				b[8+j] = byte(i)
			}
			p.Commit(len(b))
			i++
			if (i == records || r.IntN(3) == 0) && p.Flush() {
				bell <- struct{}{}
			}
		}
	}()
	for want := uint64(0); want < records; {
		b, ok := c.Next()
		if !ok {
			c.Release()
			if c.Sleep() {
				<-bell
			}
			continue
		}
		if got := binary.LittleEndian.Uint64(b); got != want {
			t.Fatalf("record %d came when %d was due", got, want)
		}
		for _, x := range b[8:] {
			if x != byte(want) {
				t.Fatalf("record %d holds the bytes of another", want)
			}
		}
		want++
		if want%5 == 0 {
			c.Release()
		}
	}
}

func TestSleep(t *testing.T) {
	p, c := pair(t, 256)
	if !c.Sleep() {
		t.Fatal("no sleep though the ring is empty")
	}
	p.push([]byte("x"))
	if !p.Flush() || p.Flush() {
		t.Error("not exactly one Flush wakes")
	}
	if c.Sleep() {
		t.Error("sleeps beside a record")
	}
	if p.Flush() {
		t.Error("a consumer that is awake was to be woken")
	}
	c.Next()
	c.Sleep()
	c.Awake()
	if p.Flush() {
		t.Error("Awake did not take Sleep back")
	}
}

func TestAllocs_SPSC(t *testing.T) {
	p, c := pair(t, 256)
	record := make([]byte, 40)
	if n := testing.AllocsPerRun(100, func() {
		p.push(record)
		p.Flush()
		c.Next()
		c.Release()
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func BenchmarkSPSC_64(b *testing.B) {
	p, c := pair(b, 1<<16)
	record := make([]byte, 64)
	for b.Loop() {
		p.push(record)
		p.Flush()
		c.Next()
		c.Release()
	}
}
