package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// An invitation is for the first message of its envelope that the receiver has not seen. Where the sender cannot
// tell which that is, it declines.
func TestInviter_whichMessage(t *testing.T) {
	const large, declined, held = 300_000, -1, -2
	send := func(tag int32, n int) func(a *Endpoint) *Request {
		return func(a *Endpoint) *Request { return a.Isend(match.Envelope{Tag: tag}, 1, make([]byte, n)) }
	}
	invite := func(tag int32, plain, asked uint32) func(a *Endpoint) *Request {
		return func(a *Endpoint) *Request {
			h := header{kind: kindInvite, source: 1, tag: tag, id: 99}
			a.inviter.arrived(&h, append(make([]byte, headerLen), told(plain, asked, uint32(2), uint32(77), uint64(4096), uint64(large))...))
			return nil
		}
	}
	recall := func(a *Endpoint) *Request {
		h := header{kind: kindRecall, source: 1, tag: recallInvite, id: 99}
		a.reads.arrivedRecall(&h)
		return nil
	}
	collective := func(a *Endpoint) *Request {
		return a.Isend(match.Envelope{Context: 1, Tag: 1}, 1, make([]byte, 8))
	}
	for name, c := range map[string]struct {
		steps []func(a *Endpoint) *Request
		want  int // the step whose send goes to the ghost
	}{
		"nothing is sent":                         {[]func(a *Endpoint) *Request{invite(1, 0, 0)}, held},
		"a short one is under way":                {[]func(a *Endpoint) *Request{send(1, 8), invite(1, 0, 0)}, declined},
		"a short one was seen":                    {[]func(a *Endpoint) *Request{send(1, 8), invite(1, 1, 0)}, held},
		"a short one of a collective":             {[]func(a *Endpoint) *Request{collective, invite(1, 0, 0)}, held},
		"announced":                               {[]func(a *Endpoint) *Request{send(1, large), invite(1, 0, 0)}, 0},
		"another before it":                       {[]func(a *Endpoint) *Request{send(2, large), send(1, large), invite(1, 0, 0)}, 1},
		"the first of two":                        {[]func(a *Endpoint) *Request{send(1, large), send(1, large), invite(1, 0, 0)}, 0},
		"the first was seen":                      {[]func(a *Endpoint) *Request{send(1, large), send(1, large), invite(1, 0, 1)}, 1},
		"all were seen":                           {[]func(a *Endpoint) *Request{send(1, large), invite(1, 0, 1)}, held},
		"more was seen than there is":             {[]func(a *Endpoint) *Request{send(1, large), invite(1, 0, 2)}, declined},
		"a short one behind it":                   {[]func(a *Endpoint) *Request{send(1, large), send(2, 8), invite(1, 0, 0)}, declined},
		"sent behind it":                          {[]func(a *Endpoint) *Request{invite(1, 0, 0), send(1, large)}, 1},
		"others before":                           {[]func(a *Endpoint) *Request{invite(1, 0, 0), send(2, 8), send(2, large), send(1, large), send(1, large)}, 3},
		"a short one before":                      {[]func(a *Endpoint) *Request{invite(1, 0, 0), send(1, 8), send(1, large)}, declined},
		"one in pieces before":                    {[]func(a *Endpoint) *Request{invite(1, 0, 0), send(1, eagerMax+1), send(1, large)}, declined},
		"recalled":                                {[]func(a *Endpoint) *Request{invite(1, 0, 0), recall, send(1, large)}, declined},
		"recalled, and another for other content": {[]func(a *Endpoint) *Request{invite(2, 0, 0), recall, invite(1, 0, 0), send(1, large)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newEnds(t)
			a.cfg.Ghosts = 1
			var sent []*Request
			for _, step := range c.steps {
				sent = append(sent, step(a))
			}
			got := declined
			for i, r := range sent {
				if r != nil && r.notice == kindInvite && r.grant.request == 99 && r.grant.rkey == 77 && r.grant.addr == 4096 && r.peer == 2 {
					got = i
				}
			}
			if len(a.inviter.held) > 0 {
				got = held
			}
			if got != c.want || int(a.Stats.Invited) != len(a.inviter.accepted) || a.Stats.Malformed != 0 {
				t.Errorf("step %d, want %d; %d accepted, %+v", got, c.want, len(a.inviter.accepted), a.Stats)
			}
			if n := int(a.peers[1].invited); n != len(a.inviter.held) {
				t.Errorf("%d are counted, and %d are held", n, len(a.inviter.held))
			}
			a.End(&Error{Code: Ended, Peer: -1})
		})
	}
}

// What no rank sends is refused, and there is an end to what is kept.
func TestInviter_refuses(t *testing.T) {
	const large = uint64(300_000)
	a, _ := newEnds(t)
	a.cfg.Ghosts = 1
	h := header{kind: kindInvite, source: 1, tag: 1, id: 99}
	malformed := a.Stats.Malformed
	for _, body := range [][]byte{
		told(uint32(0), uint32(0), uint32(0), uint32(77), uint64(0), large),
		told(uint32(0), uint32(0), uint32(1), uint32(77), uint64(0), large),
		told(uint32(0), uint32(0), uint32(3), uint32(77), uint64(0), large),
		told(uint32(0), uint32(0), uint32(1<<31), uint32(77), uint64(0), large),
		told(uint32(0), uint32(0), uint32(2), uint32(0), uint64(0), large),
		told(uint32(0), uint32(0), uint32(2), uint32(77), uint64(0), uint64(1)),
	} {
		a.inviter.arrived(&h, append(make([]byte, headerLen), body...))
		if malformed++; a.Stats.Malformed != malformed || len(a.inviter.held) > 0 {
			t.Errorf("%x is taken", body)
		}
	}
	for n := range int32(heldMost + 10) {
		h.tag = n
		a.inviter.arrived(&h, append(make([]byte, headerLen), told(uint32(0), uint32(0), uint32(2), uint32(77), uint64(0), large)...))
	}
	if n := len(a.inviter.held); n != heldMost {
		t.Errorf("%d are held, want %d", n, heldMost)
	}
	for _, id := range []uint32{0, 1 << 20, 1<<32 - 1} { // of no send
		a.inviter.arrived(&h, append(make([]byte, headerLen), told(uint32(0), uint32(0), uint32(2), uint32(77), uint64(0), large, id)...))
	}
	if len(a.inviter.accepted) > 0 {
		t.Error("an invitation is accepted without a message")
	}
	a.Enter()
	a.inviter.lost(2, &Error{Code: PeerLost, Peer: 2})
	a.Leave()
	if len(a.inviter.held) > 0 || a.peers[1].invited != 0 {
		t.Errorf("%d invitations to a lost ghost are held, %d are counted", len(a.inviter.held), a.peers[1].invited)
	}
}
