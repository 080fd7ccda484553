package capi

import "github.com/xwarp/xwarp/mpi"

// packed is memory of the program with packed elements, in which a call is at a position.
func packed(buf Addr, size int, position Ints) ([]byte, int, error) {
	switch {
	case size < 0:
		return nil, 0, fail(mpi.ErrArg, "a buffer of %d bytes", size)
	case position.null():
		return nil, 0, fail(mpi.ErrArg, "the address of the position is null")
	case size == 0:
		return nil, position.get(0), nil
	case !buf.memory() || buf+Addr(size) < buf:
		return nil, 0, fail(mpi.ErrBuffer, "%d packed bytes at address %#x", size, uintptr(buf))
	}
	return buf.bytes(size), position.get(0), nil
}

// Pack is MPI_Pack.
func Pack(l *Lib, inbuf Addr, incount int, datatype Handle, outbuf Addr, outsize int, position Ints, comm Handle) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, err := l.data(inbuf, incount, datatype)
	if err != nil {
		return err
	}
	b, at, err := packed(outbuf, outsize, position)
	if err == nil {
		at, err = c.Pack(d, b, at)
	}
	if err == nil {
		position.set(0, at)
	}
	return err
}

// Unpack is MPI_Unpack.
func Unpack(l *Lib, inbuf Addr, insize int, position Ints, outbuf Addr, outcount int, datatype, comm Handle) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, err := l.data(outbuf, outcount, datatype)
	if err != nil {
		return err
	}
	b, at, err := packed(inbuf, insize, position)
	if err == nil {
		at, err = c.Unpack(b, at, d)
	}
	if err == nil {
		position.set(0, at)
	}
	return err
}

// PackSize is MPI_Pack_size.
func PackSize(l *Lib, incount int, datatype, comm Handle, size Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	t, err := l.datatype(datatype)
	if err != nil {
		return err
	}
	n, err := c.PackSize(incount, t)
	if err == nil {
		size.setCount(n)
	}
	return err
}

// PackExternal is MPI_Pack_external.
func PackExternal(l *Lib, datarep string, inbuf Addr, incount int, datatype Handle, outbuf Addr, outsize int, position Ints) error {
	d, err := l.data(inbuf, incount, datatype)
	if err != nil {
		return err
	}
	b, at, err := packed(outbuf, outsize, position)
	if err == nil {
		at, err = mpi.PackExternal(datarep, d, b, at)
	}
	if err == nil {
		position.set(0, at)
	}
	return err
}

// UnpackExternal is MPI_Unpack_external.
func UnpackExternal(l *Lib, datarep string, inbuf Addr, insize int, position Ints, outbuf Addr, outcount int, datatype Handle) error {
	d, err := l.data(outbuf, outcount, datatype)
	if err != nil {
		return err
	}
	b, at, err := packed(inbuf, insize, position)
	if err == nil {
		at, err = mpi.UnpackExternal(datarep, b, at, d)
	}
	if err == nil {
		position.set(0, at)
	}
	return err
}

// PackExternalSize is MPI_Pack_external_size.
func PackExternalSize(l *Lib, datarep string, incount int, datatype Handle, size Ints) error {
	t, err := l.datatype(datatype)
	if err != nil {
		return err
	}
	n, err := mpi.PackExternalSize(datarep, incount, t)
	if err == nil {
		size.set(0, n)
	}
	return err
}
