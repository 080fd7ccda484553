package rping

import (
	"errors"

	"github.com/xwarp/xwarp/verbs"
)

// Depths of the queues in requests, as rping has them.
const (
	sendDepth = 16
	recvDepth = 2
	cqDepth   = 2 * sendDepth
)

// session is one connection: a queue pair with its own protection domain, so
// that a server's clients cannot reach one another's memory.
type session struct {
	end *end
	id  *verbs.CMID
	pd  *verbs.PD
	cq  *verbs.CQ

	recv *verbs.MR         // the Info or go-ahead that comes in
	send *verbs.MR         // the one that goes out
	sink *verbs.MR         // what a client is written to, and a server reads into
	wcs  [cqDepth]verbs.WC // room for all there can be
}

// remote is what peers may do with the memory that they are told of.
const remote = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// newSession makes what a connection needs before it begins, with a sink of
// size bytes. Both receives are posted: a Send of nothing may come before the
// first message. They share a buffer, for no end sends two messages in a row.
func (e *end) newSession(id *verbs.CMID, size int) (*session, error) {
	s := &session{end: e, id: id}
	if err := s.open(size); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) open(size int) (err error) {
	ctx := s.end.ctx
	if s.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	if s.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: cqDepth}); err != nil {
		return err
	}
	err = s.id.CreateQP(s.pd, verbs.QPInit{
		Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: sendDepth, MaxRecvWR: recvDepth},
	})
	if err != nil {
		return err
	}
	register := s.end.cfg.Register
	if s.recv, err = register(s.pd, make([]byte, InfoLen), verbs.LocalWrite); err != nil {
		return err
	}
	if s.send, err = register(s.pd, make([]byte, InfoLen), 0); err != nil {
		return err
	}
	if s.sink, err = register(s.pd, make([]byte, size), remote); err != nil {
		return err
	}
	return errors.Join(s.postRecv(), s.postRecv())
}

// close gives everything back. A connection that is left is aborted.
func (s *session) close() error {
	err := s.id.Destroy()
	if s.id.QP != nil {
		s.id.QP.Destroy()
	}
	if s.cq != nil {
		err = errors.Join(err, s.cq.Destroy())
	}
	for _, mr := range []*verbs.MR{s.recv, s.send, s.sink} {
		if mr != nil {
			err = errors.Join(err, mr.Dereg())
		}
	}
	return err
}

func (s *session) postRecv() error {
	wr := verbs.RecvWR{NumSGE: 1}
	wr.SGL[0] = s.recv.SGE(0, InfoLen)
	return s.id.QP.PostRecv(&wr)
}

// postSend sends what is in the send buffer.
func (s *session) postSend() error {
	wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1}
	wr.SGL[0] = s.send.SGE(0, InfoLen)
	return s.id.QP.PostSend(&wr)
}

// postRemote reads n bytes from where the peer says into the sink, or writes
// them from there.
func (s *session) postRemote(op verbs.Opcode, at Info, n int) error {
	wr := verbs.SendWR{Opcode: op, Flags: verbs.Signaled, NumSGE: 1, RKey: at.RKey, RemoteAddr: at.Addr}
	wr.SGL[0] = s.sink.SGE(0, n)
	return s.id.QP.PostSend(&wr)
}

// poll returns completions, and judges those that have failed.
func (s *session) poll() ([]verbs.WC, error) {
	wcs := s.wcs[:s.cq.Poll(s.wcs[:])]
	for i := range wcs {
		if wcs[i].Status != verbs.Success {
			return wcs[:i], failed(&wcs[i])
		}
	}
	return wcs, nil
}
