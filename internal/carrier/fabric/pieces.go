package fabric

// Pieces decides whether aggregates of datagrams to a destination are handed over in one
// piece. Some network cards cut them wrongly, some peers do not receive them, and then all of an aggregate is lost, each time;
// what was lost goes out by itself, so it shows: of what goes in pieces half has to be
// sent again. The zero value hands them over.
type Pieces struct {
	cut   int32 // datagrams that went in pieces since the last verdict
	again int32 // that were sent again since
	alone int32 // datagrams that are yet to go each by itself
	bad   uint8 // verdicts in a row
}

const (
	piecesVerdict = 64   // datagrams in pieces for a verdict
	piecesPause   = 1024 // datagrams without after a bad one; twice as many after each further
	piecesDoubled = 10
)

// Alone reports whether each datagram goes by itself now.
func (p *Pieces) Alone() bool { return p.alone > 0 }

// Again notes that a datagram is sent again.
func (p *Pieces) Again() { p.again++ }

// Sent notes a message of n datagrams.
func (p *Pieces) Sent(n int) {
	switch {
	case p.alone > 0:
		if p.alone -= int32(n); p.alone <= 0 {
			p.cut, p.again, p.alone = 0, 0, 0
		}
		return
	case n == 1:
		return
	}
	if p.cut += int32(n); p.cut < piecesVerdict {
		return
	}
	if 2*p.again > p.cut {
		p.alone = piecesPause << p.bad
		p.bad = min(p.bad+1, piecesDoubled)
	} else {
		p.bad = 0
	}
	p.cut, p.again = 0, 0
}
