package capi

import "github.com/xwarp/xwarp/mpi"

// session is a session of the program.
type session struct {
	*mpi.Session
	handler  Handle   // its error handler
	attached attached // to MPI_Bsend
}

// session returns a session, or says what is wrong.
func (l *Lib) session(h Handle) (*session, error) {
	if s := l.sessions.get(h); s != nil {
		return *s, nil
	}
	if h == MPI_SESSION_NULL {
		return nil, fail(mpi.ErrSession, "MPI_SESSION_NULL")
	}
	return nil, fail(mpi.ErrSession, "%#x is no session, or was finalized", uintptr(h))
}

// SessionInit is MPI_Session_init. A process that has not called MPI_Init joins the job, with
// all that this could ask for later. It leaves the job when it ends, unless MPI_Finalize has
// done so, for it cannot join again.
func SessionInit(l *Lib, info, handler Handle, to Handles) error {
	i, err := l.infoOrNull(info)
	if err == nil {
		err = l.checkHandler(kindSession, handler)
	}
	if err == nil && l.proc == nil {
		if err = l.join(mpi.ThreadMultiple); err == nil {
			l.calls.AtExit()
		}
	}
	if err != nil {
		return err
	}
	s, err := l.proc.SessionInit(i, nil)
	if err == nil {
		l.users.Add(1)
		to.set(0, l.sessions.add(&session{Session: s, handler: l.hold(handler)}))
	}
	return err
}

// Leave is the end of a process that had sessions only.
func (l *Lib) Leave() {
	if l.state.Load() == before {
		_ = l.proc.Finalize() // no caller is left to tell
	}
}

// SessionFinalize is MPI_Session_finalize.
func SessionFinalize(l *Lib, at Handles) error {
	h := at.get(0)
	s, err := l.session(h)
	if err == nil {
		err = s.Finalize()
	}
	if err != nil {
		return &elsewhere{err, Where{kind: kindSession, handle: h}}
	}
	l.release(s.handler)
	l.sessions.remove(h)
	l.users.Add(-1)
	at.set(0, MPI_SESSION_NULL)
	return nil
}

// SessionGetInfo is MPI_Session_get_info.
func SessionGetInfo(l *Lib, of Handle, to Handles) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	i, err := s.Info()
	return l.newInfo(i, err, to)
}

// SessionGetNumPsets is MPI_Session_get_num_psets.
func SessionGetNumPsets(l *Lib, of, _ Handle, n Ints) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	names, err := s.Psets()
	if err == nil {
		n.set(0, len(names))
	}
	return err
}

// SessionGetNthPset is MPI_Session_get_nth_pset.
func SessionGetNthPset(l *Lib, of, _ Handle, n int, length Ints, name Text) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	names, err := s.Psets()
	switch {
	case err != nil:
		return err
	case n < 0 || n >= len(names):
		return fail(mpi.ErrArg, "process set %d of %d", n, len(names))
	}
	room := length.get(0)
	length.set(0, len(names[n])+1)
	if room > 0 && name.null() {
		return fail(mpi.ErrArg, "room for %d bytes, and no address of them", room)
	}
	name.set(names[n], room)
	return nil
}

// SessionGetPsetInfo is MPI_Session_get_pset_info.
func SessionGetPsetInfo(l *Lib, of Handle, name string, to Handles) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	i, err := s.PsetInfo(name)
	return l.newInfo(i, err, to)
}

// GroupFromSessionPset is MPI_Group_from_session_pset.
func GroupFromSessionPset(l *Lib, of Handle, name string, to Handles) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	g, err := s.GroupFromPset(name)
	return l.newGroup(g, err, to)
}

// fromGroup looks up what makes communicators of groups. The session is nil for a group
// without ranks.
func (l *Lib) fromGroup(group, info, handler Handle) (*mpi.Group, *mpi.Session, *mpi.Info, error) {
	g, err := l.group(group)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = l.checkHandler(kindComm, handler); err != nil {
		return nil, nil, nil, err
	}
	if g.Size() > 0 && g.Session() == nil {
		return nil, nil, nil, fail(mpi.ErrGroup, "the group is of no session")
	}
	i, err := l.infoOrNull(info)
	return g, g.Session(), i, err
}

// CommCreateFromGroup is MPI_Comm_create_from_group.
func CommCreateFromGroup(l *Lib, group Handle, tag string, info, handler Handle, to Handles) error {
	g, s, i, err := l.fromGroup(group, info, handler)
	if err != nil {
		return err
	}
	var c *mpi.Comm
	if s != nil {
		c, err = s.CommCreateFromGroup(g, tag, i, nil)
	}
	if err == nil {
		to.set(0, l.addComm(c, handler))
	}
	return err
}

// IntercommCreateFromGroups is MPI_Intercomm_create_from_groups.
func IntercommCreateFromGroups(l *Lib, local Handle, leader int, remote Handle, remoteLeader int, tag string, info, handler Handle, to Handles) error {
	g, s, i, err := l.fromGroup(local, info, handler)
	if err != nil {
		return err
	}
	other, err := l.group(remote)
	if err != nil && g.Rank(l.proc) == leader {
		return err
	}
	var c *mpi.Comm
	err = nil
	if s != nil {
		c, err = s.IntercommCreateFromGroups(g, leader, other, remoteLeader, tag, i, nil)
	}
	if err == nil {
		to.set(0, l.addComm(c, handler))
	}
	return err
}

// SessionAttachBuffer is MPI_Session_attach_buffer.
func SessionAttachBuffer(l *Lib, of Handle, buffer Addr, size int) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	return s.attached.attach(s.Session, buffer, size)
}

// SessionDetachBuffer is MPI_Session_detach_buffer.
func SessionDetachBuffer(l *Lib, of Handle, addr Addr, size Ints) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	return s.attached.detach(s.Session, addr, size)
}

// SessionFlushBuffer is MPI_Session_flush_buffer.
func SessionFlushBuffer(l *Lib, of Handle) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	return s.BufferFlush()
}

// SessionIflushBuffer is MPI_Session_iflush_buffer.
func SessionIflushBuffer(l *Lib, of Handle, request Handles) error {
	s, err := l.session(of)
	if err != nil {
		return err
	}
	return l.iflush(s.Session, MPI_COMM_SELF, request)
}
