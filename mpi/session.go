package mpi

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Session is one use of MPI by a part of a program that need not know of the others
// (MPI 4.1, section 11.3): a library takes one for itself, names the processes that it
// works with by a process set, and makes communicators of them.
//
//	s, err := p.SessionInit(nil, nil)                         // or mpi.SessionInit
//	g, err := s.GroupFromPset(mpi.PsetWorld)
//	c, err := s.CommCreateFromGroup(g, "org.example.solver", nil, nil)
//	... c is a communicator as any other ...
//	err = c.Free()
//	err = s.Finalize()
//
// What is made from a session belongs to it: groups and communicators of different
// sessions, or of one and of the world model, do not go together in one call, which
// then fails with class ErrGroup or ErrComm.
type Session struct {
	p       *Proc
	info    *Info
	handler atomic.Pointer[SessionErrhandler]
	quiet   *Comm // has no messages: requests of the session that are of no communicator are of it
	buffer  sendBuffer
	comms   []*Comm // that are there, in the order in which they were made
	over    bool
}

// SessionErrhandler is called with every error that a method of a session returns,
// before it returns it (MPI_Session_create_errhandler). Nil, the default, does
// nothing.
type SessionErrhandler func(s *Session, err error)

// SessionErrorsAreFatal is a SessionErrhandler that ends the job
// (MPI_ERRORS_ARE_FATAL).
func SessionErrorsAreFatal(s *Session, err error) { s.p.abort(int(ClassOf(err)), err.Error()) }

// The keys of a session's info (MPI 4.1, section 11.3.1).
const (
	keyThreadLevel = "thread_level"
	threadPrefix   = "MPI_THREAD_"
)

// Memory that messages may lie in (MPI 4.1, section 11.4.3): that of Go, and of Alloc.
const (
	keyMemory   = "mpi_memory_alloc_kinds"
	memoryKinds = "mpi,system"
)

// SessionInit joins the job as [Init] does, and returns a session of a process that
// has no world model (MPI_Session_init): no World, no Self, and no Finalize. The key
// thread_level of info asks for a level of threads, as MPI_THREAD_MULTIPLE. Further
// sessions come from [Proc.SessionInit]. The process leaves the job when its last
// session is finalized, and cannot join it again.
//
// All ranks of the job join it, in this way or by Init. An error of joining is only
// returned, for there is no session yet that the handler could be told of.
func SessionInit(info *Info, h SessionErrhandler) (*Session, error) {
	level, err := threadLevel(info)
	if err != nil {
		return nil, err
	}
	p, err := InitWith(Config{Threads: level, apart: true})
	if err != nil {
		return nil, err
	}
	return p.SessionInit(info, h)
}

// SessionInit makes a session of the process (MPI_Session_init). There may be any
// number of them, beside the world model and after it: Finalize ends only that while
// there are sessions. What goroutines may do is what QueryThread says, whatever the
// info asks for. It does not wait for other ranks.
func (p *Proc) SessionInit(info *Info, h SessionErrhandler) (*Session, error) {
	s := &Session{p: p}
	s.SetErrhandler(h)
	if _, err := threadLevel(info); err != nil {
		return nil, s.report(err)
	}
	s.quiet = p.view(selfContext, &Group{world: []int32{int32(p.rank)}, session: s})
	s.quiet.SetErrhandler(func(_ *Comm, err error) { _ = s.report(err) })
	s.info = &Info{[]infoPair{{keyThreadLevel, threadPrefix + strings.ToUpper(p.QueryThread().String())}, {keyMemory, memoryKinds}}}
	if p.left() {
		return nil, fail(ErrOther, "SessionInit", "the process has left the job: keep one session open until the last one is done")
	}
	p.ep.Enter()
	defer p.ep.Leave()
	if p.meeting == nil {
		p.meet()
	}
	p.sessions++
	return s, nil
}

// threadLevel reads the level of threads that an info asks for.
func threadLevel(info *Info) (ThreadLevel, error) {
	value, ok := info.Get(keyThreadLevel)
	if !ok {
		return 0, nil
	}
	if name, ok := strings.CutPrefix(value, threadPrefix); ok && name == strings.ToUpper(name) {
		if i := config.Threads.Index(strings.ToLower(name)); i >= 0 {
			return ThreadLevel(i), nil
		}
	}
	return 0, fail(ErrInfoValue, "SessionInit", "%s is %.40q: want %sSINGLE, FUNNELED, SERIALIZED or MULTIPLE", keyThreadLevel, value, threadPrefix)
}

// inSession reports whether a session is open.
func (p *Proc) inSession() bool {
	p.ep.Enter()
	defer p.ep.Leave()
	return p.sessions > 0
}

// Proc returns the process that the session belongs to.
func (s *Session) Proc() *Proc { return s.p }

// Info returns what holds for the session (MPI_Session_get_info): thread_level, and
// mpi_memory_alloc_kinds. The copy belongs to the caller.
func (s *Session) Info() (*Info, error) {
	if err := s.live("Session.Info"); err != nil {
		return nil, s.report(err)
	}
	return s.info.Dup(), nil
}

// SetErrhandler sets the error handler (MPI_Session_set_errhandler).
func (s *Session) SetErrhandler(h SessionErrhandler) {
	if h == nil {
		s.handler.Store(nil)
		return
	}
	s.handler.Store(&h)
}

// Errhandler returns the error handler (MPI_Session_get_errhandler).
func (s *Session) Errhandler() SessionErrhandler {
	if h := s.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrhandler calls the error handler with an error of the program's
// (MPI_Session_call_errhandler), and returns the error.
func (s *Session) CallErrhandler(err error) error { return s.report(err) }

// report shows an error to the handler and returns it.
func (s *Session) report(err error) error {
	if err != nil && s != nil {
		if h := s.Errhandler(); h != nil {
			h(s, err)
		}
	}
	return err
}

// live reports that the session is none any more.
func (s *Session) live(op string) error {
	if s == nil {
		return fail(ErrSession, op, "the session is none")
	}
	s.p.ep.Enter()
	defer s.p.ep.Leave()
	if s.over {
		return fail(ErrSession, op, "the session was finalized")
	}
	return nil
}

// track notes that a communicator was made, and forget that it was freed. They are
// called inside; without a session they do nothing.
func (s *Session) track(c *Comm) {
	if s != nil {
		s.comms = append(s.comms, c)
	}
}

func (s *Session) forget(c *Comm) {
	if s != nil {
		s.comms = slices.DeleteFunc(s.comms, func(other *Comm) bool { return other == c })
	}
}

// Finalize ends the session (MPI_Session_finalize). Its buffered messages go out, and
// its communicators that were not freed are freed, for which it waits for their ranks,
// in any order: those that use them finalize their sessions too. Without such
// communicators it waits for no rank, unless it is the last session of a process
// without a world model, or one that has finalized that: then it waits until all ranks
// have freed what this one has, and until what the process has sent has arrived.
//
// Operations on the session's communicators that were not waited for are an error of
// class ErrPending.
func (s *Session) Finalize() error {
	const op = "Session.Finalize"
	if err := s.live(op); err != nil {
		return s.report(err)
	}
	p := s.p
	t := p.watch.begin(op, nil, Undefined, Undefined, 0)
	errs := []error{s.buffer.flush(p.ep, op)}
	p.ep.Enter()
	s.over = true
	all, busy := slices.Clone(s.comms), 0
	for _, c := range all {
		busy += len(c.underWay())
	}
	p.ep.Leave()
	if busy > 0 {
		errs = append(errs, fail(ErrPending, op, "%d operations on communicators of the session are under way", busy))
	}
	errs = append(errs, freeAll(op, all))
	p.ep.Enter()
	p.sessions--
	last := p.sessions == 0 && (p.apart || p.finalized.Load())
	p.ep.Leave()
	if last {
		errs = append(errs, p.buffer.flush(p.ep, op))
		p.farewells()
		errs = append(errs, p.untaken(op))
		p.ep.Drain()
	}
	t.end(errors.Join(errs...))
	if last {
		p.watch.last()
		errs = append(errs, p.leave())
	}
	return s.report(errors.Join(errs...))
}

// freeAll frees communicators, of which each rank may have others.
func freeAll(op string, all []*Comm) error {
	var errs []error
	hidden := map[*Comm]bool{}
	for _, c := range all {
		hidden[c.within] = true
	}
	var begun []*farewell
	all = slices.DeleteFunc(all, func(c *Comm) bool { return hidden[c] })
	for _, c := range all {
		errs = append(errs, c.releaseLocal(op))
		begun = append(begun, c.leave(op))
	}
	for _, f := range begun {
		errs = append(errs, f.wait())
	}
	return errors.Join(errs...)
}

// BufferAttach gives the session a buffer for the messages of Bsend on its
// communicators that have none of their own (MPI_Session_attach_buffer). See
// [Proc.BufferAttach].
func (s *Session) BufferAttach(bytes int) error {
	const op = "Session.BufferAttach"
	err := s.live(op)
	if err == nil {
		err = s.buffer.attach(s.p.ep, op, bytes)
	}
	return s.report(err)
}

// BufferDetach is [Proc.BufferDetach] of the buffer of the session
// (MPI_Session_detach_buffer).
func (s *Session) BufferDetach() (int, error) {
	const op = "Session.BufferDetach"
	if err := s.live(op); err != nil {
		return 0, s.report(err)
	}
	size, err := s.buffer.detach(s.p.ep, op)
	return size, s.report(err)
}

// BufferFlush waits until all messages in the buffer of the session are on their way
// (MPI_Session_flush_buffer). Finalize does so too.
func (s *Session) BufferFlush() error {
	const op = "Session.BufferFlush"
	err := s.live(op)
	if err == nil {
		err = s.buffer.flush(s.p.ep, op)
	}
	return s.report(err)
}

// BufferIflush is BufferFlush that does not wait (MPI_Session_iflush_buffer).
func (s *Session) BufferIflush() (Request, error) {
	const op = "Session.BufferIflush"
	if err := s.live(op); err != nil {
		return Request{}, s.report(err)
	}
	return s.quiet.begin(op, &flushing{b: &s.buffer})
}
