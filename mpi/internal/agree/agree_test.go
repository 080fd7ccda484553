package agree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// network is ranks that agree several times, on a network that delivers in any
// order that keeps that between two ranks. Ranks die after a number of messages
// that they have sent, which may be in the middle of telling all.
type network struct {
	rnd      *rand.Rand
	ranks    []*rank
	channels [][][]Message // from, to
	rounds   int
	decided  [][]byte // by agreement, whoever it was
	given    [][]byte // by rank: the bits of each agreement, one byte
}

type rank struct {
	*Machine
	begun, done int
	sent        int
	diesAfter   int // messages; -1: never
	dead        bool
	knows       []bool // whose loss it was told of
}

func newNetwork(seed uint64, n, rounds int) *network {
	t := &network{rnd: rand.New(rand.NewPCG(seed, uint64(n))), rounds: rounds, decided: make([][]byte, rounds)}
	for i := range n {
		c := &rank{diesAfter: -1, knows: make([]bool, n)}
		c.Machine = New(i, n, 1, func(to int, m Message) { t.send(i, to, m) })
		t.ranks = append(t.ranks, c)
		t.channels = append(t.channels, make([][]Message, n))
		bits := make([]byte, rounds)
		for r := range bits {
			bits[r] = ^(1 << t.rnd.IntN(8))
		}
		t.given = append(t.given, bits)
	}
	return t
}

func (t *network) send(from, to int, m Message) {
	c := t.ranks[from]
	if c.dead || c.sent == c.diesAfter {
		c.dead = true // what it does until it returns is nobody's business
		return
	}
	c.sent++
	m.Bits = slices.Clone(m.Bits)
	t.channels[from][to] = append(t.channels[from][to], m)
}

// moves lists what can happen next.
func (t *network) moves() (moves []func() error) {
	for i, c := range t.ranks {
		if c.dead {
			continue
		}
		if c.begun == c.done && c.begun < t.rounds {
			moves = append(moves, func() error {
				c.begun++
				c.Begin(t.given[i][c.begun-1 : c.begun])
				return t.look(i)
			})
		}
		for from := range t.ranks {
			if len(t.channels[from][i]) > 0 && !c.knows[from] {
				moves = append(moves, func() error {
					m := t.channels[from][i][0]
					t.channels[from][i] = t.channels[from][i][1:]
					if !c.Receive(from, m) {
						return fmt.Errorf("rank %d refused %+v of rank %d", i, m, from)
					}
					return t.look(i)
				})
			}
			if t.ranks[from].dead && !c.knows[from] {
				moves = append(moves, func() error {
					c.knows[from] = true
					c.Lost(from)
					return t.look(i)
				})
			}
		}
	}
	return moves
}

// look checks a decision of a rank, also of one that has died in this moment:
// it may have told somebody else about it.
func (t *network) look(i int) error {
	c := t.ranks[i]
	d := c.Decision()
	if d == nil || c.begun == c.done {
		return nil
	}
	c.done++
	was := &t.decided[c.done-1]
	if *was == nil {
		*was = slices.Clone(d)
	}
	if !bytes.Equal(*was, d) {
		return fmt.Errorf("agreement %d: rank %d decided %x, another one %x", c.done, i, d, *was)
	}
	all := byte(0xff)
	for r, other := range t.ranks {
		all &= t.given[r][c.done-1]
		if !Alive(d, r) && !other.dead {
			return fmt.Errorf("agreement %d: rank %d lives, and %x says that it does not", c.done, r, d)
		}
		if Alive(d, r) && c.Extra(d)[0]&^t.given[r][c.done-1] != 0 {
			return fmt.Errorf("agreement %d: %x has not the bits of rank %d", c.done, d, r)
		}
	}
	if all&^c.Extra(d)[0] != 0 {
		return fmt.Errorf("agreement %d: %x lacks bits that all ranks gave", c.done, d)
	}
	return nil
}

func (t *network) run() error {
	for {
		moves := t.moves()
		if len(moves) == 0 {
			break
		}
		if err := moves[t.rnd.IntN(len(moves))](); err != nil {
			return err
		}
	}
	for i, c := range t.ranks {
		if !c.dead && c.done < t.rounds {
			return fmt.Errorf("rank %d waits for ever in agreement %d", i, c.begun)
		}
	}
	return nil
}

// TestMachine_ranksDieAtEveryPoint lets each rank die after each of its messages,
// and then two of them, in many orders of events.
func TestMachine_ranksDieAtEveryPoint(t *testing.T) {
	const rounds, orders = 2, 40
	for _, n := range []int{1, 2, 3, 4} {
		points := 4*n*rounds + 1
		for first := range n * points {
			for second := range n * points {
				if second%7 != first%7 && n > 3 {
					continue // enough is enough
				}
				for order := range uint64(orders) / uint64(n*n) {
					net := newNetwork(order, n, rounds)
					net.ranks[first/points].diesAfter = first % points
					net.ranks[second/points].diesAfter = second % points
					if err := net.run(); err != nil {
						t.Fatalf("%d ranks; rank %d dies after %d messages, rank %d after %d; order %d: %v",
							n, first/points, first%points, second/points, second%points, order, err)
					}
				}
			}
		}
	}
}

// TestMachine_manyRanksDie is the same with more ranks, most of which die.
func TestMachine_manyRanksDie(t *testing.T) {
	for seed := range uint64(1000) {
		rnd := rand.New(rand.NewPCG(seed, 99))
		n := 5 + rnd.IntN(9)
		net := newNetwork(seed, n, 1+rnd.IntN(5))
		for _, c := range net.ranks {
			if rnd.IntN(3) > 0 {
				c.diesAfter = rnd.IntN(3 * n)
			}
		}
		if err := net.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestMachine_withoutLosses counts messages.
func TestMachine_withoutLosses(t *testing.T) {
	const n = 9
	net := newNetwork(1, n, 3)
	if err := net.run(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, c := range net.ranks {
		sent += c.sent
	}
	if want := 3 * 4 * (n - 1); sent != want {
		t.Errorf("%d messages, want %d", sent, want)
	}
}

// TestMachine_nonsense: what no rank of ours sends is refused, and harms nothing.
func TestMachine_nonsense(t *testing.T) {
	m := New(0, 3, 1, func(int, Message) {})
	good := make([]byte, m.Bytes())
	for _, bad := range []Message{
		{0, 1, good}, {kindEnd, 1, good}, {Contribute, 1, good[1:]}, {Contribute, 2, good}, {Lock, 1, nil},
	} {
		if m.Receive(1, bad) {
			t.Errorf("%+v was taken", bad)
		}
	}
	if m.Receive(0, Message{Contribute, 1, good}) {
		t.Error("a message of its own was taken")
	}
	for _, odd := range []Message{{Contribute, 0, good}, {Decide, 1, good}, {Propose, 1, good}} {
		m.Receive(1, odd)
	}
	if m.Decision() != nil {
		t.Error("it has decided what it has not begun")
	}
}
