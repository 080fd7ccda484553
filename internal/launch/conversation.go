package launch

import (
	"bytes"
	"errors"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/boot/pmi"
)

// A rank talks with its agent over one socket in one of two languages, which
// its first line tells: that of internal/boot, or PMI-1 if it is a program of
// another MPI. The agent turns what it asks into the same requests.

// relayRequests passes on what the rank asks of its launcher.
func (r *rank) relayRequests(welcome boot.Reply, server *pmi.Server, out *outbox) {
	defer close(r.asked)
	lines := boot.NewLineReader(r.socket)
	for {
		line, err := lines.Next()
		if err != nil && !errors.Is(err, boot.ErrLongLine) {
			return // the rank is gone, or has closed its end
		}
		var request *boot.Request
		if err == nil {
			request, err = r.understand(line, welcome, server)
		}
		if err != nil {
			out.post(report{Op: opBoot, Rank: r.number, Why: err.Error()})
			return
		}
		if request != nil {
			out.post(report{Op: opBoot, Rank: r.number, Request: request})
		}
	}
}

// understand returns what a line asks of the launcher. What the agent can
// answer itself it does, and then that may be nothing.
func (r *rank) understand(line []byte, welcome boot.Reply, server *pmi.Server) (*boot.Request, error) {
	if r.session == nil && bytes.HasPrefix(line, []byte("cmd=")) {
		r.session = server.NewSession()
		r.speaksPMI.Store(true)
	}
	if r.session != nil {
		answer, request, err := r.session.Handle(line)
		if answer != "" {
			r.boot.postText(answer)
		}
		return request, err
	}
	request, err := boot.ParseRequest(line)
	if err != nil {
		return nil, err
	}
	if request.Op == boot.OpHello {
		r.boot.post(welcome)
	}
	return &request, nil
}

// ended tells the rank that others have ended. PMI-1 has no word for it.
func (r *rank) ended(ranks []int) {
	if !r.speaksPMI.Load() {
		r.boot.post(boot.Reply{Op: boot.OpEnded, Ranks: ranks})
	}
}

// fenced tells the rank that the fence it waits in is complete.
func (r *rank) fenced(values []boot.Value) {
	if r.speaksPMI.Load() {
		r.boot.postText(pmi.BarrierOut)
		return
	}
	r.boot.post(boot.Reply{Op: boot.OpFenced, Values: values})
}
