package launch

import (
	"bytes"
	"errors"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
)

// A rank talks with its agent over one socket in one of two languages, which
// its first line tells: that of internal/job/boot, or PMI if it is a program of
// another MPI. The agent turns what it asks into the same requests.

// relayRequests passes on what the rank asks of its launcher.
func (r *rank) relayRequests(welcome boot.Reply, server *pmi.Server, out *outbox) {
	defer close(r.asked)
	lines := boot.NewRequestReader(r.socket)
	next := lines.Next
	for {
		r.boot.awaitRoom() // a rank that does not listen is not heard
		text, err := next()
		if err != nil && !errors.Is(err, boot.ErrLongLine) && !errors.Is(err, pmi.ErrLength) {
			return // the rank is gone, or has closed its end
		}
		if err == nil && r.session.Load() == nil && bytes.HasPrefix(text, []byte("cmd=")) {
			if welcome.Secret != nil {
				out.post(report{Op: opBoot, Rank: r.number, Why: "it is a program of another MPI (it speaks PMI), whose messages --secure does not encrypt: leave --secure away, or build it with xwarp"})
				return
			}
			session := server.NewSession(r.number, r.app, r.boot.postText)
			next = func() ([]byte, error) { return session.Next(lines) }
			r.session.Store(session)
		}
		var request *boot.Request
		if err == nil {
			request, err = r.understand(text, welcome)
		}
		if err != nil {
			out.post(report{Op: opBoot, Rank: r.number, Why: err.Error()})
			return
		}
		if request != nil {
			out.postWithRoom(report{Op: opBoot, Rank: r.number, Request: request, PMI: r.session.Load() != nil})
		}
	}
}

// understand returns what the rank asks of the launcher. What the agent can
// answer itself it does, and then that may be nothing.
func (r *rank) understand(text []byte, welcome boot.Reply) (*boot.Request, error) {
	if session := r.session.Load(); session != nil {
		return session.Handle(text)
	}
	request, err := boot.ParseRequest(text)
	if err != nil {
		return nil, err
	}
	switch request.Op {
	case boot.OpHello:
		r.boot.post(welcome)
		r.ours.Store(true)
	case boot.OpState:
		select {
		case r.doing <- string(request.Value):
		default: // it was not asked
		}
		return nil, nil
	}
	return &request, nil
}

// ended tells the rank that others have ended. PMI has no word for it.
func (r *rank) ended(ranks []int) {
	if r.session.Load() == nil {
		r.boot.post(boot.Reply{Op: boot.OpEnded, Ranks: ranks})
	}
}

// fenced tells the rank that the fence it waits in is complete, and with a line, which
// is that of all ranks, what was put.
func (r *rank) fenced(line []byte) {
	if session := r.session.Load(); session != nil {
		session.Fenced()
		return
	}
	r.boot.put(message{line: line}, false)
}
