package rping

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// backlog is how many connections may wait to be accepted, as rping has it.
const backlog = 3

// Server is the end that reads and writes back.
type Server struct {
	*end
	listener *verbs.CMID // nil when no other client is served
	serving  []*serving
}

// NewServer makes a server that listens at an address, which may be
// unspecified; port 0 is one that is free.
func NewServer(ctx *verbs.Context, at netip.AddrPort, c Config) (*Server, error) {
	e, err := newEnd(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Server{end: e}
	if s.listener, err = e.cm.CreateID(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err = s.listener.BindAddr(at); err == nil {
		err = s.listener.Listen(backlog)
	}
	if err != nil {
		return nil, errors.Join(err, s.listener.Destroy(), e.close())
	}
	return s, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.listener.LocalAddr() }

// Run serves one client, or with Config.Persistent all that come until Stop.
// It returns why the connection to the one client has ended, if not in order.
func (s *Server) Run() error {
	var err error
	for s.listener != nil || len(s.serving) > 0 {
		s.events()
		for _, v := range s.serving {
			v.progress()
		}
		err = errors.Join(err, s.reap())
		if s.stopped.Load() {
			return errors.Join(err, s.halt(), ErrInterrupted)
		}
		s.turn()
	}
	return errors.Join(err, s.close())
}

// events handles what has happened to connections.
func (s *Server) events() {
	for {
		ev, ok := s.cm.GetEvent()
		if !ok {
			return
		}
		if ev.Type == verbs.CMConnectRequest {
			s.connect(ev.ID, ev.Param)
			continue
		}
		i := slices.IndexFunc(s.serving, func(v *serving) bool { return v.s.id == ev.ID })
		if i < 0 {
			continue
		}
		v := s.serving[i]
		switch ev.Type {
		case verbs.CMEstablished:
			s.cfg.Logf("%v: connected", v.result.Peer)
		case verbs.CMDisconnected:
			v.disconnected(ev.Err)
		default:
			v.end(refusal(ev))
		}
	}
}

// connect answers a client that wants to connect.
func (s *Server) connect(id *verbs.CMID, wants verbs.ConnParam) {
	if s.listener == nil { // it came while the one client was being accepted
		_ = id.Reject(nil) // whether that arrives or not, it is not served
		_ = id.Destroy()
		return
	}
	s.cfg.Logf("%v: wants to connect", id.PeerAddr())
	result := Result{Peer: id.PeerAddr()}
	session, err := s.newSession(id, MaxSize)
	if err != nil { // which has ended id
		s.cfg.Ended(result, err)
		return
	}
	v := &serving{s: session, cfg: &s.cfg, result: result}
	s.serving = append(s.serving, v)
	if err := id.Accept(wanted(s.cfg.Param, wants)); err != nil {
		v.end(fmt.Errorf("%w: %w", ErrConnect, err))
	}
	if !s.cfg.Persistent {
		_ = s.listener.Destroy() // others are refused from now on
		s.listener = nil
	}
}

// reap forgets the connections that have ended. Only a server of one client
// returns why.
func (s *Server) reap() error {
	var err error
	s.serving = slices.DeleteFunc(s.serving, func(v *serving) bool {
		if !v.ended {
			return false
		}
		why := errors.Join(v.err, v.s.close())
		s.cfg.Ended(v.result, why)
		if !s.cfg.Persistent {
			err = why
		}
		return true
	})
	return err
}

// halt ends all connections, in order as far as the peers agree in time.
func (s *Server) halt() error {
	var err error
	if s.listener != nil {
		err = s.listener.Destroy()
		s.listener = nil
	}
	for _, v := range s.serving {
		v.leaving = true
		if v.s.id.Disconnect() != nil {
			v.end(nil)
		}
	}
	s.alarm.set(s.after(endTimeout))
	for len(s.serving) > 0 && !s.alarm.rang {
		s.events()
		err = errors.Join(err, s.reap())
		s.turn()
	}
	for _, v := range s.serving {
		v.end(nil)
	}
	return errors.Join(err, s.reap(), s.close())
}

// serving is a client that is served.
type serving struct {
	s       *session
	cfg     *Config
	state   state
	got     int // bytes of the ping that was read
	result  Result
	leaving bool // this end closes it
	ended   bool
	err     error
}

// state is what a server waits for.
type state uint8

const (
	wantSource state = iota // the client's Send that says where the text is
	reading                 // the Read of it
	wantSink                // the Send that says where to write it to
	writing                 // the Write
)

// progress goes on with what has completed, until nothing is left: what is
// posted here may be complete at once.
func (v *serving) progress() {
	for !v.ended && v.err == nil {
		wcs, err := v.s.poll()
		if len(wcs) == 0 && err == nil {
			return
		}
		for i := range wcs {
			if bad := v.complete(&wcs[i]); bad != nil {
				err = bad
				break
			}
		}
		if isOver(err) {
			return // the end of the connection has an event of its own
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// complete takes one step of the protocol.
func (v *serving) complete(wc *verbs.WC) error {
	switch wc.Opcode {
	case verbs.OpRecv:
		return v.received(wc)
	case verbs.OpRDMARead:
		return v.read()
	case verbs.OpRDMAWrite:
		return v.wrote()
	}
	return nil // a Send is out
}

// received takes a message of the client.
func (v *serving) received(wc *verbs.WC) error {
	if wc.ByteLen == 0 && v.result.Pings == 0 && v.state == wantSource {
		return nil // peer-to-peer mode may begin with a Send of nothing (RFC 6581, section 9)
	}
	var at Info
	if wc.ByteLen != InfoLen || !at.Parse(v.s.recv.Bytes()) {
		return fmt.Errorf("%w: it sent %d bytes, not %d", ErrProtocol, wc.ByteLen, InfoLen)
	}
	v.cfg.Logf("%v: received rkey %x addr %x len %d", v.result.Peer, at.RKey, at.Addr, at.Size)
	if err := v.s.postRecv(); err != nil {
		return err
	}
	switch v.state {
	case wantSource:
		if at.Size > MaxSize {
			return fmt.Errorf("%w: it has a ping of %d bytes, at most %d are possible", ErrProtocol, at.Size, MaxSize)
		}
		v.state, v.got = reading, int(at.Size)
		return v.s.postRemote(verbs.OpRDMARead, at, v.got)
	case wantSink:
		v.state = writing
		n := min(len(text(v.s.sink.Bytes()[:v.got]))+1, v.got, int(at.Size)) // with its zero
		return v.s.postRemote(verbs.OpRDMAWrite, at, n)
	}
	return fmt.Errorf("%w: it does not wait for its answer", ErrProtocol)
}

// read goes on when the text is here.
func (v *serving) read() error {
	v.cfg.Ping(Ping{Peer: v.result.Peer, Seq: v.result.Pings, Data: text(v.s.sink.Bytes()[:v.got])})
	v.state = wantSink
	return v.s.postSend()
}

// wrote goes on when the text is on its way back.
func (v *serving) wrote() error {
	v.result.Pings++
	v.state = wantSource
	return v.s.postSend()
}

// fail ends a connection because of an error here.
func (v *serving) fail(err error) {
	v.err = err
	if v.s.id.Disconnect() != nil {
		v.end(err)
	}
}

// disconnected notes that the connection is over.
func (v *serving) disconnected(why error) {
	switch {
	case v.err != nil:
		why = v.err
	case why != nil:
		why = lost(why)
	case v.state != wantSource && !v.leaving:
		why = lost(nil)
	}
	v.end(why)
}

func (v *serving) end(err error) { v.ended, v.err = true, err }
