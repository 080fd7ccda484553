package capi

import "github.com/xwarp/xwarp/mpi"

// attached is the buffer that a program has attached for MPI_Bsend. Package mpi has memory of
// its own for the messages, so only its size counts.
type attached struct {
	there bool
	at    Addr
	size  int
}

// bufferOf is what buffers belong to: a process, a communicator or a session.
type bufferOf interface {
	BufferAttach(bytes int) error
	BufferDetach() (int, error)
	BufferFlush() error
	BufferIflush() (mpi.Request, error)
}

func (a *attached) attach(to bufferOf, buffer Addr, size int) error {
	if size < 0 {
		return fail(mpi.ErrArg, "%d bytes", size)
	}
	if size > 0 && buffer == 0 {
		return fail(mpi.ErrArg, "%d bytes at NULL", size)
	}
	room := size
	if buffer == MPI_BUFFER_AUTOMATIC {
		room = mpi.BufferAutomatic
	}
	err := to.BufferAttach(room)
	if err == nil {
		*a = attached{true, buffer, size}
	}
	return err
}

func (a *attached) detach(from bufferOf, addr Addr, size Ints) error {
	_, err := from.BufferDetach()
	if err == nil {
		if addr.memory() {
			*addr.word() = uintptr(a.at)
		}
		size.setCount(a.size)
		*a = attached{}
	}
	return err
}

// iflush starts BufferIflush. comm has the error handler for it.
func (l *Lib) iflush(of bufferOf, comm Handle, request Handles) error {
	r, err := of.BufferIflush()
	return l.start(r, err, comm, request)
}

// BufferAttach is MPI_Buffer_attach.
func BufferAttach(l *Lib, buffer Addr, size int) error {
	err := l.up()
	if err == nil {
		err = l.attached.attach(l.proc, buffer, size)
	}
	return err
}

// BufferDetach is MPI_Buffer_detach. A process without a buffer behaves as one with a buffer of
// no bytes (MPI 4.1, section 3.6).
func BufferDetach(l *Lib, addr Addr, size Ints) error {
	err := l.up()
	switch {
	case err != nil:
		return err
	case l.attached.there:
		return l.attached.detach(l.proc, addr, size)
	}
	if addr.memory() {
		*addr.word() = 0
	}
	size.set(0, 0)
	return nil
}

// BufferFlush is MPI_Buffer_flush.
func BufferFlush(l *Lib) error {
	err := l.up()
	if err == nil {
		err = l.proc.BufferFlush()
	}
	return err
}

// BufferIflush is MPI_Buffer_iflush.
func BufferIflush(l *Lib, request Handles) error {
	err := l.up()
	if err == nil {
		err = l.iflush(l.proc, MPI_COMM_SELF, request)
	}
	return err
}

// CommAttachBuffer is MPI_Comm_attach_buffer.
func CommAttachBuffer(l *Lib, comm Handle, buffer Addr, size int) error {
	c, err := l.comm(comm)
	if err == nil {
		err = c.attached.attach(c, buffer, size)
	}
	return err
}

// CommDetachBuffer is MPI_Comm_detach_buffer.
func CommDetachBuffer(l *Lib, comm Handle, addr Addr, size Ints) error {
	c, err := l.comm(comm)
	if err == nil {
		err = c.attached.detach(c, addr, size)
	}
	return err
}

// CommFlushBuffer is MPI_Comm_flush_buffer.
func CommFlushBuffer(l *Lib, comm Handle) error {
	c, err := l.comm(comm)
	if err == nil {
		err = c.BufferFlush()
	}
	return err
}

// CommIflushBuffer is MPI_Comm_iflush_buffer.
func CommIflushBuffer(l *Lib, comm Handle, request Handles) error {
	c, err := l.comm(comm)
	if err == nil {
		err = l.iflush(c, comm, request)
	}
	return err
}
