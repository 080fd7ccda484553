package arq

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// abuse is a sender whose peer and carrier do what the bytes of a script say:
// acknowledge what was never sent, lie about windows, forget, be late.
type abuse struct {
	*script
	bytes   []byte
	several bool // networks
}

func (a *abuse) next() int {
	if len(a.bytes) == 0 {
		return 0
	}
	b := a.bytes[0]
	a.bytes = a.bytes[1:]
	return int(b)
}

func (a *abuse) step() {
	snd := &a.snd
	if a.several && a.next()%4 == 0 {
		snd.SetNetworks(a.next()%3, uint8(a.next()%8))
	}
	switch a.next() % 8 {
	case 0, 1:
		for range 1 + a.next()%16 {
			n := a.next() * a.next()
			if a.several && a.next()%2 == 0 {
				snd.Spread()
			}
			if !snd.CanPush(n) {
				break
			}
			snd.Push(a.now, 0, 0, uint32(n), true)
			snd.AckSoon()
			snd.Gather()
		}
	case 2:
		snd.OnAck(a.now, snd.una.Add(int32(a.next()%64)-4), uint16(a.next()*4), mono.Duration(a.next()*a.next())<<10)
		snd.Detect(a.now)
	case 3:
		word := uint64(0)
		for range 1 + a.next()%8 {
			word |= 1 << (a.next() % 64)
		}
		snd.OnAck(a.now, snd.una, 64, 0)
		snd.OnSack(a.now, snd.una.Add(int32(a.next()%80)-8), word)
		snd.Detect(a.now)
	case 4:
		for range 1 + a.next()%16 {
			if lsn, ok := snd.NextLost(); ok {
				snd.Resent(a.now, lsn)
			}
		}
	case 5:
		a.pass(mono.Duration(a.next()*a.next()) * 50)
		snd.OnTimer(a.now)
	case 6:
		a.now = max(a.now, min(snd.Deadline(), a.now.Add(mono.Second)))
		snd.OnTimer(a.now)
	case 7:
		switch b := a.next(); {
		case b < 16:
			snd.SetSegment(256 * (b + 1))
		case b < 64:
			snd.Date(a.now, snd.nxt.Add(int32(-b%8)))
		default:
			snd.Rest()
		}
	}
}

// check compares the counters of the sender with its records.
func (a *abuse) check() {
	a.Helper()
	snd := &a.snd
	lostN, sackedN := int32(0), int32(0)
	var pipe [MaxNetworks]int32
	for lsn := snd.una; lsn != snd.nxt; lsn++ {
		r := snd.Unit(lsn)
		switch r.state & (lost | sacked) {
		case lost:
			lostN++
		case sacked:
			sackedN++
		case 0:
			pipe[r.via()] += r.bytes()
		default:
			a.Fatal("a unit is lost and has arrived")
		}
	}
	if lostN != snd.loss.lost || sackedN != snd.loss.sacked {
		a.Fatalf("counted %d lost, %d sacked; there are %d, %d", snd.loss.lost, snd.loss.sacked, lostN, sackedN)
	}
	for i := range snd.networks() {
		f := snd.network(i)
		if f.pipe != pipe[i] {
			a.Fatalf("%d bytes are on the wire of network %d; there are %d", f.pipe, i, pipe[i])
		}
		if f.pipe > 0 && f.deadline == mono.Never {
			a.Fatalf("%d bytes on the wire of network %d and no timer", f.pipe, i)
		}
		if f.cwnd <= 0 || f.cwnd > WindowMax*f.segment || f.lostBytes < 0 || f.arrivedBytes < 0 {
			a.Fatalf("congestion window %d of segments of %d; %d bytes arrived, %d lost", f.cwnd, f.segment, f.arrivedBytes, f.lostBytes)
		}
	}
	if snd.InFlight() > 0 && snd.Deadline() == mono.Never {
		a.Fatalf("%d in flight and no timer", snd.InFlight())
	}
	if snd.recs == nil && snd.InFlight() > 0 {
		a.Fatal("in flight without records")
	}
}

// silent lets nothing come from the peer any more, which time-outs must show.
func (a *abuse) silent() {
	a.Helper()
	snd, has := &a.snd, map[serial.U32]bool{}
	for tries := 0; snd.InFlight() > 0 && snd.TimeOuts() < 2; tries++ {
		if tries > 100_000 { // the timer of a slow network may take hundreds of those of a fast one
			a.Fatalf("%d in flight and no time-out: %d lost, %d sacked", snd.InFlight(), snd.loss.lost, snd.loss.sacked)
		}
		a.resend(has)
		a.check()
	}
}

// resend waits for the timer, sends again what is lost then, and notes it in has.
func (a *abuse) resend(has map[serial.U32]bool) {
	a.now = max(a.now, a.snd.Deadline())
	a.snd.OnTimer(a.now)
	for lsn, ok := a.snd.NextLost(); ok; lsn, ok = a.snd.NextLost() {
		a.snd.Resent(a.now, lsn)
		has[lsn] = true
	}
}

// settle lets the peer be honest from now on, and the carrier keep everything:
// what is in flight must arrive.
func (a *abuse) settle() {
	a.Helper()
	snd := &a.snd
	has := map[serial.U32]bool{}
	for lsn := snd.una; lsn != snd.nxt; lsn++ {
		has[lsn] = snd.Unit(lsn).state&sacked != 0
	}
	end := snd.nxt
	for tries := 0; snd.InFlight() > 0; tries++ {
		if tries > 10000 {
			a.Fatalf("%d in flight are forgotten: %d lost, %d sacked", snd.InFlight(), snd.loss.lost, snd.loss.sacked)
		}
		a.resend(has)
		a.pass(20 * mono.Microsecond)
		next := snd.una
		for next != end && has[next] {
			next++
		}
		snd.OnAck(a.now, next, 64, 0)
		for lsn := next; lsn != end; lsn++ {
			if has[lsn] {
				snd.OnSack(a.now, lsn, 1)
			}
		}
		snd.Detect(a.now)
		a.check()
	}
	if a.now = max(a.now, min(snd.Deadline(), a.now.Add(mono.Second))); true {
		snd.OnTimer(a.now) // ends a pause
	}
	if snd.pipe != 0 || snd.Deadline() != mono.Never {
		a.Fatalf("nothing in flight, %d bytes on the wire, timer at %v", snd.pipe, snd.Deadline())
	}
}

func runAbuse(t *testing.T, bytes []byte, several bool) {
	t.Helper()
	a := &abuse{script: newScript(t), bytes: bytes, several: several}
	for len(a.bytes) > 0 {
		a.step()
		a.check()
	}
	a.silent()
	a.settle()
}

func TestSender_abuse(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := make([]byte, 2000)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		runAbuse(t, b, seed%2 == 1)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzSender(f *testing.F) {
	f.Add([]byte{0, 15, 9, 9, 3, 1, 5, 9, 8, 5, 200, 200, 4, 3, 2, 20, 9})
	f.Add([]byte{1, 9, 0, 0, 6, 6, 6, 4, 1, 2, 6, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		runAbuse(t, b, false)
		runAbuse(t, b, true)
	})
}
