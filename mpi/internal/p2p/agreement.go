package p2p

import (
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/agree"
)

// Agreements: package agree decides, and here are its messages. They are words of
// our own, so that a rank that computes answers when it calls MPI next, and one
// that has its decision answers for as long as it lives.

// agreeHead is the bytes before the bits: kind (1) and number (4).
const agreeHead = 5

// newMachine makes the part of this rank in the agreements of a communicator.
func (gs *groups) newMachine(context uint32, g *group, agreed int) {
	me := slices.Index(g.members, gs.ep.rank)
	g.machine = agree.New(me, len(g.members), agreed, func(to int, m agree.Message) {
		body := append(make([]byte, 0, agreeHead+len(m.Bits)), byte(m.Kind))
		body = binary.BigEndian.AppendUint32(body, m.Number)
		gs.ep.out.tell(int(g.members[to]), header{kind: kindAgree, context: context}, append(body, m.Bits...))
	})
	for _, rank := range g.lost {
		g.deliberate(rank)
	}
}

// deliberate goes on with agreements without a member.
func (g *group) deliberate(lost int32) {
	g.machine.Lost(slices.Index(g.members, lost))
}

// arrivedAgree takes in a piece of a message. Pieces of one peer come in order.
func (gs *groups) arrivedAgree(g *group, h *header, piece []byte) {
	if g.heard == nil {
		g.heard = map[int32][]byte{}
	}
	body := append(g.heard[h.source], piece...)
	if len(body) > agreeHead+g.machine.Bytes() {
		gs.ep.Stats.Malformed++
		delete(g.heard, h.source)
		return
	}
	if h.tag > 0 { // there are more pieces
		g.heard[h.source] = body
		return
	}
	delete(g.heard, h.source)
	if len(body) < agreeHead || !g.machine.Receive(slices.Index(g.members, h.source), agree.Message{
		Kind: agree.Kind(body[0]), Number: binary.BigEndian.Uint32(body[1:]), Bits: body[agreeHead:],
	}) {
		gs.ep.Stats.Malformed++
	}
}

// BeginAgree begins the next agreement of a communicator, whose ranks all do that
// and which has none under way. bits are as many bytes as Register was told; what
// is decided is their AND.
func (in Inside) BeginAgree(context uint32, bits []byte) {
	ep := in.ep
	ep.groups.at(context).machine.Begin(bits)
	ep.out.push(0)
}

// Agreed returns the members of a communicator that were alive, and the bits that
// were agreed upon, or done false. An error says that there will be no decision.
// The bits are valid until the next agreement begins.
func (in Inside) Agreed(context uint32) (alive []int32, bits []byte, done bool, err error) {
	ep := in.ep
	g := ep.groups.at(context)
	d := g.machine.Decision()
	if d == nil {
		return nil, nil, false, ep.failures.over
	}
	for i, rank := range g.members {
		if agree.Alive(d, i) {
			alive = append(alive, rank)
		}
	}
	return alive, g.machine.Extra(d), true, nil
}
