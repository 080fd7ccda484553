package fabric

// Pieces decides whether aggregates of datagrams to a destination are handed over in one
// piece. Some network cards cut them wrongly, some peers do not receive them, and then all of an aggregate is lost, each time;
// what was lost goes out by itself, so it shows: of what goes in pieces half has to be
// sent again. The zero value hands them over.
type Pieces struct {
	alone uint16 // times piecesVerdict datagrams are yet to go each by itself
	cut   uint8  // datagrams that went in pieces since the last verdict; while they go by themselves, of the present piecesVerdict
	again uint8  // that were sent again since
	bad   uint8  // verdicts in a row
}

const (
	piecesVerdict = 64                   // datagrams in pieces for a verdict
	piecesPause   = 1024 / piecesVerdict // times so many without after a bad one; twice as many after each further
	piecesDoubled = 10
)

// Alone reports whether each datagram goes by itself now.
func (p *Pieces) Alone() bool { return p.alone > 0 }

// Again notes that a datagram is sent again.
func (p *Pieces) Again() { p.again = min(p.again, 254) + 1 }

// Sent notes a message of n datagrams, 64 at most.
func (p *Pieces) Sent(n int) {
	if n == 1 && p.alone == 0 {
		return
	}
	if p.cut += uint8(n); p.cut < piecesVerdict {
		return
	}
	switch {
	case p.alone > 0:
		p.alone--
		p.cut -= piecesVerdict
		if p.alone > 0 {
			return
		}
	case 2*int(p.again) > int(p.cut):
		p.alone = piecesPause << p.bad
		p.bad = min(p.bad+1, piecesDoubled)
	default:
		p.bad = 0
	}
	p.cut, p.again = 0, 0
}
