package agree

import "slices"

// Kind says what a message means.
type Kind uint8

// The kinds of messages.
const (
	Contribute Kind = iota + 1 // to the coordinator: the bits of the sender
	Propose                    // from the coordinator: hold this
	Lock                       // to the coordinator: the sender holds this
	Decide                     // it is decided
	kindEnd
)

// Message is what ranks send one another. Bits belongs to the sender until Send
// returns.
type Message struct {
	Kind   Kind
	Number uint32 // of the agreement
	Bits   []byte
}

// Machine is one rank's part in the agreements of a communicator, which it
// begins one after the other. It is pure: what it has to say goes to Send.
type Machine struct {
	me     int
	extra  int // bytes behind those that say which ranks are alive
	lost   []bool
	number uint32   // of the latest agreement that this rank has begun
	rounds [2]round // the latest two agreements: see at
	send   func(to int, m Message)
}

// phase is how far a rank has come in an agreement. It only rises.
type phase uint8

const (
	unbegun     phase = iota // others may have begun
	contributed              // held has this rank's own bits
	locked                   // held has a proposal
	decided                  // held has the decision
)

// round is one agreement.
type round struct {
	number uint32
	phase  phase
	held   []byte

	// What this rank knows as the coordinator. Others may take it for one
	// before it knows that those below it are lost.
	told     []bool // which ranks have said what they hold
	sum      []byte // AND of the contributions among that
	lock     []byte // a proposal among that, or nil
	proposed bool   // and all that is told from now on is about our proposal
	holds    []bool // which ranks have said that they hold our proposal
}

// New returns the machine of rank me of size ranks, which agree on extra bytes
// beyond those that tell which ranks are alive. send is called from inside of Begin,
// Receive and Lost, and must not call back.
func New(me, size, extra int, send func(to int, m Message)) *Machine {
	return &Machine{me: me, extra: extra, lost: make([]bool, size), send: send}
}

// Bytes returns how long the bits of every message are.
func (m *Machine) Bytes() int { return m.alive() + m.extra }

// alive is the bytes that tell which ranks are.
func (m *Machine) alive() int { return (len(m.lost) + 7) / 8 }

// Alive reports whether a decision says that a rank was alive.
func Alive(decision []byte, rank int) bool { return decision[rank/8]>>(rank%8)&1 != 0 }

// Extra returns what was agreed on, beyond which ranks are alive.
func (m *Machine) Extra(decision []byte) []byte { return decision[m.alive():] }

// Begin begins the next agreement with the bits of this rank. The one before is
// decided.
func (m *Machine) Begin(extra []byte) {
	m.number++
	r := m.at(m.number)
	r.phase = contributed
	r.held = append(m.living(), extra...)
	m.report(r)
	m.coordinate(r)
}

// Decision returns the decision of the latest agreement, or nil while there is
// none. The bytes are the machine's.
func (m *Machine) Decision() []byte {
	if r := &m.rounds[m.number&1]; r.number == m.number && r.phase == decided {
		return r.held
	}
	return nil
}

// living returns the bits of the ranks that are not known to be lost.
func (m *Machine) living() []byte {
	b := make([]byte, m.alive(), m.Bytes())
	for i, lost := range m.lost {
		if !lost {
			b[i/8] |= 1 << (i % 8)
		}
	}
	return b
}

// at returns an agreement. There are two at most that a rank asks for: the one that
// begins one knows that all have decided the last but one, for all have
// contributed to the last.
func (m *Machine) at(number uint32) *round {
	r := &m.rounds[number&1]
	if int32(number-r.number) > 0 || r.told == nil {
		*r = round{number: number, told: make([]bool, len(m.lost)), holds: make([]bool, len(m.lost))}
	}
	return r
}

// coordinator returns the lowest rank that is not known to be lost.
func (m *Machine) coordinator() int { return slices.Index(m.lost, false) }

// report tells the coordinator what this rank holds.
func (m *Machine) report(r *round) {
	kind := [...]Kind{contributed: Contribute, locked: Lock, decided: Decide}[r.phase]
	if c := m.coordinator(); c != m.me {
		m.send(c, Message{kind, r.number, r.held})
		return
	}
	m.hear(r, m.me, kind, r.held)
}

// Receive handles a message of a rank that is not known to be lost. It reports
// whether it makes sense.
func (m *Machine) Receive(from int, msg Message) bool {
	if msg.Kind == 0 || msg.Kind >= kindEnd || len(msg.Bits) != m.Bytes() || from == m.me || int32(msg.Number-m.number) > 1 {
		return false
	}
	r := m.at(msg.Number)
	if r.number != msg.Number {
		return true // of an agreement that is over everywhere
	}
	switch msg.Kind {
	case Propose:
		if r.phase == contributed || r.phase == locked {
			r.phase = locked
			r.held = append(r.held[:0], msg.Bits...)
			m.send(from, Message{Lock, r.number, r.held})
		}
	case Decide:
		m.decide(r, msg.Bits)
	default:
		m.hear(r, from, msg.Kind, msg.Bits)
	}
	m.coordinate(r)
	return true
}

// hear notes what a rank holds that takes this one for the coordinator.
func (m *Machine) hear(r *round, from int, kind Kind, bits []byte) {
	if r.phase == decided {
		if from != m.me {
			m.send(from, Message{Decide, r.number, r.held})
		}
		return
	}
	r.told[from] = true
	switch {
	case kind == Lock && r.proposed:
		r.holds[from] = true
	case kind == Lock:
		r.lock = append(r.lock[:0], bits...) // they are all the same
	case r.sum == nil:
		r.sum = slices.Clone(bits)
	default:
		for i := range r.sum {
			r.sum[i] &= bits[i]
		}
	}
}

// coordinate goes on with an agreement if this rank is the coordinator.
func (m *Machine) coordinate(r *round) {
	if m.coordinator() != m.me || r.phase == unbegun || r.phase == decided || !m.all(r.told) {
		return
	}
	if !r.proposed {
		m.propose(r)
	}
	if m.all(r.holds) {
		m.decide(r, r.held)
	}
}

// all reports whether every rank is marked, but for those that are lost.
func (m *Machine) all(marked []bool) bool {
	for i, lost := range m.lost {
		if !lost && !marked[i] {
			return false
		}
	}
	return true
}

// propose asks all ranks to hold what will be the decision.
func (m *Machine) propose(r *round) {
	bits := r.lock
	if bits == nil {
		bits = r.sum
		for i, b := range m.living() {
			bits[i] &= b // without ranks that have died since they contributed
		}
	}
	r.proposed, r.phase = true, locked
	r.held = slices.Clone(bits)
	r.holds[m.me] = true
	for i, lost := range m.lost {
		if !lost && i != m.me {
			m.send(i, Message{Propose, r.number, r.held})
		}
	}
}

// decide ends an agreement. The coordinator tells all: those that have
// decided already ignore it. Others tell the rank that takes them for the coordinator,
// knowing of a loss that they do not know of yet.
func (m *Machine) decide(r *round, bits []byte) {
	if r.phase == decided || r.phase == unbegun {
		return
	}
	r.phase = decided
	r.held = slices.Clone(bits)
	coordinator := m.coordinator() == m.me
	for i, lost := range m.lost {
		if !lost && i != m.me && (coordinator || r.told[i]) {
			m.send(i, Message{Decide, r.number, r.held})
		}
	}
}

// Lost notes that a rank is lost. When it was the coordinator, the next one is
// told what this rank holds: of the last agreement too, which others may not
// have decided yet.
func (m *Machine) Lost(rank int) {
	if m.lost[rank] {
		return
	}
	before := m.coordinator()
	m.lost[rank] = true
	for i := range m.rounds {
		r := &m.rounds[(m.number+1+uint32(i))&1] // the older one first
		if r.phase != unbegun && m.coordinator() != before {
			m.report(r)
		}
		m.coordinate(r)
	}
}
