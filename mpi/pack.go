package mpi

import (
	"math"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Pack copies the elements of d to the bytes at pos of buf, side by side, and
// returns where these end (MPI_Pack). What several calls have packed one behind the
// other is sent with datatype TypePacked. It is an error of class ErrTruncate when
// there is no room for all.
func (c *Comm) Pack(d Data, buf []byte, pos int) (int, error) {
	cur, err := c.packing("Comm.Pack", d, buf, pos)
	if err != nil {
		return pos, c.report(err)
	}
	return pos + cur.Pack(buf[pos:]), nil
}

// Unpack is the opposite: it copies the bytes at pos of buf to the elements of d,
// and returns where they end (MPI_Unpack).
func (c *Comm) Unpack(buf []byte, pos int, d Data) (int, error) {
	cur, err := c.packing("Comm.Unpack", d, buf, pos)
	if err != nil {
		return pos, c.report(err)
	}
	return pos + cur.Unpack(buf[pos:pos+cur.Len()]), nil
}

// packing returns a cursor over d, whose packed bytes must be inside buf from pos on.
func (c *Comm) packing(op string, d Data, buf []byte, pos int) (dtype.Cursor, error) {
	err := c.live(op)
	if err != nil {
		return dtype.Cursor{}, err
	}
	cur, err := d.cursor(op)
	if err == nil {
		err = checkRoom(op, buf, pos, cur.Len())
	}
	return cur, err
}

// checkRoom refuses n bytes at pos that are not inside buf.
func checkRoom(op string, buf []byte, pos, n int) error {
	switch {
	case pos < 0 || pos > len(buf):
		return fail(ErrArg, op, "position %d in a buffer of %d bytes", pos, len(buf))
	case n > len(buf)-pos:
		return fail(ErrTruncate, op, "%d bytes at %d of a buffer of %d: PackSize tells how long it must be", n, pos, len(buf))
	}
	return nil
}

// PackSize returns how many bytes count elements have when they are packed
// (MPI_Pack_size).
func (c *Comm) PackSize(count int, t Datatype) (int, error) {
	const op = "Comm.PackSize"
	err := c.live(op)
	switch {
	case err != nil:
	case t.t == nil:
		err = fail(ErrType, op, "there is no datatype")
	case count < 0 || t.Size() > 0 && count > math.MaxInt/t.Size():
		err = fail(ErrCount, op, "%d elements", count)
	}
	if err != nil {
		return 0, c.report(err)
	}
	return count * t.Size(), nil
}

// External32 is the representation of data that does not depend on the machine
// (MPI 4.1, section 14.5.2): big-endian, a long with 4 bytes, a wide character with
// 2.
const External32 = "external32"

// PackExternal is [Comm.Pack] to a representation that other machines and other
// MPIs understand, of which there is External32 (MPI_Pack_external). A value that
// does not fit is an error of class ErrConversion.
func PackExternal(representation string, d Data, buf []byte, pos int) (int, error) {
	const op = "PackExternal"
	if err := checkExternal(op, representation, &d, buf, pos); err != nil || d.t == nil {
		return pos, err
	}
	n, err := d.t.PackExternal32(buf[pos:], d.mem, d.origin, d.count)
	return pos + n, wrapType(op, err)
}

// UnpackExternal is the opposite (MPI_Unpack_external).
func UnpackExternal(representation string, buf []byte, pos int, d Data) (int, error) {
	const op = "UnpackExternal"
	if err := checkExternal(op, representation, &d, buf, pos); err != nil || d.t == nil {
		return pos, err
	}
	n, err := d.t.UnpackExternal32(d.mem, d.origin, d.count, buf[pos:])
	return pos + n, wrapType(op, err)
}

// PackExternalSize returns how many bytes count elements have in a representation
// (MPI_Pack_external_size).
func PackExternalSize(representation string, count int, t Datatype) (int, error) {
	const op = "PackExternalSize"
	d := Data{t: t.t}
	if err := checkExternal(op, representation, &d, nil, 0); err != nil {
		return 0, err
	}
	if t.t == nil {
		return 0, fail(ErrType, op, "there is no datatype")
	}
	n, err := t.t.External32Size(count)
	return n, wrapType(op, err)
}

func checkExternal(op, representation string, d *Data, buf []byte, pos int) error {
	if representation != External32 {
		return fail(ErrArg, op, "there is no representation %q; there is %q", representation, External32)
	}
	if _, err := d.cursor(op); err != nil {
		return err
	}
	return checkRoom(op, buf, pos, 0)
}
