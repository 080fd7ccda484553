package p2p

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// told makes the body of a delegate or of a claim: words of 4 and of 8 bytes.
func told(words ...any) (b []byte) {
	for _, w := range words {
		switch w := w.(type) {
		case uint32:
			b = binary.BigEndian.AppendUint32(b, w)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, w)
		}
	}
	return b
}

// A ghost sends what a rank has delegated, once, to whom and from where the rank has said, and
// answers every claim.
func TestDelegatee_sendsWhatItShall(t *testing.T) {
	const key, size, most = uint32(77), uint64(50_000), uint64(100_000)
	for name, c := range map[string]struct {
		key, number, dest uint32
		off, size         uint64
		owner, claims     uint32 // of the claim, and its number
		early             bool   // the claim is there first
		gone              bool   // the memory is not mapped any more
		sends             bool
	}{
		"fine":                 {key: key, number: 1, off: 10, size: size, claims: 1, sends: true},
		"claimed early":        {key: key, number: 1, off: 10, size: size, claims: 1, early: true, sends: true},
		"all of it":            {key: key, number: 1, size: most, claims: 1, sends: true},
		"another key":          {key: key + 1, number: 1, size: size, claims: 1},
		"another, early":       {key: key + 1, number: 1, size: size, claims: 1, early: true},
		"for another":          {key: key, number: 1, size: size, dest: 2, claims: 1},
		"for nobody":           {key: key, number: 1, size: size, dest: 3, claims: 1},
		"for the ghost":        {key: key, number: 1, size: size, dest: 1, claims: 1},
		"too far":              {key: key, number: 1, off: most + 1, size: 0, claims: 1},
		"too long":             {key: key, number: 1, off: 1, size: most, claims: 1},
		"too long for numbers": {key: key, number: 1, off: 1, size: 1<<64 - 1, claims: 1},
		"an old number":        {key: key, number: 5, size: size, claims: 4},
		"of another":           {key: key, number: 1, size: size, claims: 0, owner: 2},
		"not mapped":           {key: key, number: 1, size: size, claims: 1, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, ghost := newEnds(t) // a is the rank that delegates, and the one that receives
			memory := pattern(int(most))
			segment := &Segment{}
			Delegations(ghost.Inside()).Map(0, key, memory)
			into := make([]byte, most)
			mr, err := a.Inside().Expose(into)
			must(t, err)
			if c.gone {
				Delegations(ghost.Inside()).Unmap(0, key, segment)
			}
			answers := a.Stats.Stale // to a request that there is not
			claim := told(uint32(1<<20), mr.RKey(), mr.Addr(), most, c.owner, c.claims)
			delegate := told(c.key, c.number, c.off, c.size, c.dest, uint32(0), uint32(0), c.number)
			words := []header{{kind: kindDelegate, id: 9}, {kind: kindClaim, id: 9}}
			bodies := [][]byte{delegate, claim}
			if c.early {
				words[0], words[1], bodies[0], bodies[1] = words[1], words[0], bodies[1], bodies[0]
			}
			for i := range words {
				tellUncut(a, words[i], bodies[i])
			}
			again := told(uint32(1<<20), mr.RKey(), mr.Addr(), most, c.owner, c.claims)
			for until := answers + 1; a.Stats.Stale < until; {
				a.eng.Step()
				ghost.eng.Step()
				Delegations(ghost.Inside()).Turn()
			}
			tellUncut(a, header{kind: kindClaim, id: 9}, again) // it is sent once, and refused then
			for a.Stats.Stale < answers+2 || ghost.delegatee.running > 0 {
				a.eng.Step()
				ghost.eng.Step()
				Delegations(ghost.Inside()).Turn()
			}
			want := make([]byte, most)
			if c.sends {
				copy(want, memory[c.off:][:c.size])
			}
			if !bytes.Equal(into, want) {
				t.Error("it has sent something else")
			}
			if len(ghost.delegatee.claims) > 0 {
				t.Errorf("%d claims are left", len(ghost.delegatee.claims))
			}
		})
	}
}

// tellUncut sends a word whose body is no longer than one may be.
func tellUncut(ep *Endpoint, h header, body []byte) {
	ep.Enter()
	ep.out.tell(1, h, body)
	ep.Leave()
}

// A rank that is told of a ghost that is none asks the sender, and one that no rank has named
// takes neither messages nor claims.
func TestDelegate_noGhost(t *testing.T) {
	a, b := newEnds(t)
	b.cfg.Ghosts = 1
	for _, ghost := range []uint32{0, 1, 3, 1 << 31} {
		h := header{kind: kindRTS, source: 0}
		rts := binary.BigEndian.AppendUint32(make([]byte, rtsLen), ghost)
		if o := b.parseOffer(&h, append(rts, 0, 0, 0, 1)); o.ghost != 0 {
			t.Errorf("ghost %d is taken for one: %+v", ghost, o)
		}
	}
	tellUncut(a, header{kind: kindDelegate}, make([]byte, delegateLen))
	tellUncut(a, header{kind: kindClaim}, make([]byte, claimLen-headerLen))
	env, in := match.Envelope{Source: 0, Tag: 3}, make([]byte, 50_000)
	_, _, sendErr, recvErr := both(t, a.Isend(env, 1, pattern(50_000)), b.Irecv(env, in))
	if sendErr != nil || recvErr != nil || !bytes.Equal(in, pattern(50_000)) {
		t.Error(sendErr, recvErr)
	}
}

// A rank that delegates without end does not fill its ghost: what is too much is refused.
func TestDelegatee_bounded(t *testing.T) {
	_, ghost := newEnds(t)
	Delegations(ghost.Inside()).Map(0, 7, pattern(100))
	for n := range uint32(delegatedMost + 10) {
		h := header{kind: kindDelegate, id: n + 1}
		ghost.delegatee.arrivedDelegate(&h, append(make([]byte, headerLen), told(uint32(7), n+1, uint64(0), uint64(100), uint32(2), uint32(0), uint32(0), n+1)...))
	}
	if n := len(ghost.delegatee.sends); n != delegatedMost || ghost.delegatee.find(0, delegatedMost+1) >= 0 {
		t.Errorf("%d messages are kept, want %d", n, delegatedMost)
	}
	if n := ghost.delegatee.heard[0]; n != delegatedMost+10 {
		t.Errorf("%d is the latest number that was heard: a claim for a later one would wait for ever", n)
	}
}

// Segments are for ghosts and from ranks of their hosts: all else is refused, and no answer is taken that nobody waits for.
func TestShare_refused(t *testing.T) {
	a, ghost := newEnds(t)
	until := func(what string, ok func() bool) {
		t.Helper()
		for n := 0; !ok(); n++ {
			if n == 100_000 {
				t.Fatalf("%s: it does not come", what)
			}
			a.eng.Step()
			ghost.eng.Step()
		}
	}
	share := told(uint64(1), uint64(50_000))
	tellUncut(a, header{kind: kindShare, id: 7}, bytes.Clone(share))
	until("to a rank", func() bool { return ghost.Stats.Malformed == 1 })
	ghost.cfg.Ghosts = 2
	tellUncut(a, header{kind: kindShare, id: 7}, bytes.Clone(share))
	until("an answer that nobody waits for", func() bool { return a.Stats.Malformed == 1 })
	s := &sharing{ghost: 1, number: 8, key: 99}
	a.delegator.sharings = append(a.delegator.sharings, s)
	tellUncut(a, header{kind: kindShare, id: 8}, bytes.Clone(share)) // they have no memory in common
	until("an answer", func() bool { return s.answered })
	if s.key != 0 {
		t.Errorf("a segment that cannot be mapped has the key %d", s.key)
	}
	tellUncut(a, header{kind: kindUnshare, id: 77}, nil)
	until("what the ghost has not", func() bool { return ghost.Stats.Malformed == 2 })
	Delegations(ghost.Inside()).Map(0, 77, pattern(100))
	tellUncut(a, header{kind: kindUnshare, id: 77}, nil)
	until("memory of a window", func() bool { return ghost.Stats.Malformed == 3 })
	if len(ghost.delegatee.areas) != 1 {
		t.Error("the memory of a window is gone")
	}
}
