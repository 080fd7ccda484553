package verbs

import (
	"testing"
)

// rcRound is one request that comes and goes on a steady connection.
type rcRound struct {
	op   Opcode
	n    int
	recv bool
}

func (c *rcRound) run(a, b *rcEnd) {
	var wc [2]WC
	if c.recv {
		if b.qp.PostRecv(&RecvWR{NumSGE: 1, SGL: [MaxSGE]SGE{b.mr.SGE(0, c.n)}}) != nil {
			panic("no receive is posted")
		}
	}
	wr := SendWR{Opcode: c.op, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, c.n)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}
	if a.qp.PostSend(&wr) != nil {
		panic("no request is posted")
	}
	for done, got := false, !c.recv; !done || !got; {
		rcStep(a, b)
		done = done || a.scq.Poll(wc[:]) > 0
		got = got || b.rcq.Poll(wc[:]) > 0
	}
}

// No message of the steady path allocates, whatever it is, in one segment, in
// many, or in parts of FPDUs that the stream takes and gives.
func TestAllocs_rc(t *testing.T) {
	for what, p := range map[string]ConnParam{"plain": {}, "CRC": {CRC: true}, "markers": {Markers: true}} {
		a, b := rcPair(t, p)
		for _, c := range []rcRound{
			{OpSend, 8, true}, {OpSend, 100_000, true}, {OpRDMAWrite, 8, false}, {OpRDMAWrite, 900_000, false},
			{OpRDMAWriteWithImm, 8, true}, {OpRDMARead, 8, false}, {OpRDMARead, 900_000, false}, {OpAtomicFetchAndAdd, 8, false},
		} {
			for range 20 {
				c.run(a, b)
			}
			if n := testing.AllocsPerRun(50, func() { c.run(a, b) }); n != 0 {
				t.Errorf("%s: %v of %d bytes allocates %v times", what, c.op, c.n, n)
			}
		}
	}
}
