package p2p

import "testing"

// A ghost meets an invitation with a delegated message if it knows all messages between what the receiver has seen
// and that one, and with nothing else.
func TestDelegatee_whichMessage(t *testing.T) {
	const size, none = uint64(50_000), 0
	type step struct {
		invites      bool
		context      uint32
		tag          int32
		plain, asked uint32 // what the sender has sent up to a message, or the receiver has seen
	}
	sent := func(tag int32, plain, asked uint32) step { return step{tag: tag, plain: plain, asked: asked} }
	invited := func(tag int32, plain, asked uint32) step { return step{true, 0, tag, plain, asked} }
	for name, c := range map[string]struct {
		steps []step
		want  uint32 // the step whose message goes to the other ghost, from 1 on
	}{
		"invited first":                         {[]step{invited(1, 0, 0), sent(1, 0, 1)}, 2},
		"sent first":                            {[]step{sent(1, 0, 1), invited(1, 0, 0)}, 1},
		"others between":                        {[]step{sent(2, 0, 1), sent(3, 0, 2), sent(1, 0, 3), invited(1, 0, 0)}, 3},
		"others between, invited":               {[]step{invited(1, 0, 0), sent(2, 0, 1), sent(3, 0, 2), sent(1, 0, 3)}, 4},
		"the first of two":                      {[]step{sent(1, 0, 1), sent(1, 0, 2), invited(1, 0, 0)}, 1},
		"the first was seen":                    {[]step{sent(1, 0, 1), sent(1, 0, 2), invited(1, 0, 1)}, 2},
		"all were seen":                         {[]step{sent(1, 0, 1), invited(1, 0, 1)}, none},
		"a short one between":                   {[]step{invited(1, 0, 0), sent(1, 1, 1)}, none},
		"a short one was seen":                  {[]step{invited(1, 1, 0), sent(1, 1, 1)}, 2},
		"one of its own between":                {[]step{invited(1, 0, 0), sent(1, 0, 2)}, none},
		"unknown, and then another":             {[]step{invited(1, 0, 0), sent(1, 0, 2), sent(1, 0, 3)}, none},
		"one of its own between, others before": {[]step{sent(2, 0, 1), sent(3, 0, 2), invited(1, 0, 5), sent(1, 0, 7)}, none},
		"another tag":                           {[]step{invited(1, 0, 0), sent(2, 0, 1)}, none},
		"another communicator":                  {[]step{invited(1, 0, 0), {context: 2, tag: 1, asked: 1}}, none},
		"a collective between":                  {[]step{invited(1, 0, 0), {context: 1, tag: 1, asked: 1}, sent(1, 0, 1)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newEnds(t)
			a.cfg.Ghosts, a.rank = 2, 1 // ranks 1 and 2 are ghosts, rank 0 the receiver and the sender
			a.peers[0].self, a.peers[1].self = false, true
			Delegations(a.Inside()).Map(0, 7, pattern(int(size)))
			for i, s := range c.steps {
				h := header{kind: kindDelegate, context: s.context, source: 0, tag: s.tag, id: 99}
				if body := make([]byte, headerLen); s.invites {
					h.kind = kindInvite
					a.inviter.arrived(&h, append(body, told(s.plain, s.asked, uint32(2), uint32(77), uint64(4096), size, uint32(0))...))
				} else {
					a.delegatee.arrivedDelegate(&h, append(body, told(uint32(7), uint32(i+1), uint64(0), size, uint32(0), uint32(s.tag), s.plain, s.asked)...))
				}
			}
			got := uint32(none)
			for _, s := range a.delegatee.sends {
				if s.r != nil && s.r.notice == kindInvite && s.r.peer == 2 && s.r.grant.addr == 4096 {
					got = s.number
				}
			}
			if got != c.want || a.Stats.Malformed != 0 {
				t.Errorf("message %d, want %d; %+v", got, c.want, a.Stats)
			}
			a.End(&Error{Code: Ended, Peer: -1})
		})
	}
}

// A sender vouches for a message that its ghost has placed, once: a receiver that asks for it, since the ghost is lost, hears
// that it is there.
func TestDelegator_vouches(t *testing.T) {
	a, _ := newEnds(t)
	a.delegator.vouched = []vouched{{1, 7}, {1, 8}}
	for _, c := range []struct{ number, stale uint32 }{{7, 0}, {7, 1}, {9, 2}} {
		h := header{kind: kindCTS, source: 1, id: 99}
		a.rendezvous.arrivedCTS(&h, append(make([]byte, ctsLen), told(c.number)...))
		if a.Stats.Stale != uint64(c.stale) {
			t.Errorf("number %d: %d are stale, want %d", c.number, a.Stats.Stale, c.stale)
		}
	}
	a.delegator.arrivedPlaced(&header{kind: kindPlaced, source: 1, tag: 8, id: 99})
	if len(a.delegator.vouched) != 0 {
		t.Errorf("the receiver knows it, and %v is vouched for", a.delegator.vouched)
	}
}
