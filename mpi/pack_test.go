package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// TestPack_isWhatIsSent: what was packed piece by piece arrives as elements, and
// what was sent as elements is unpacked piece by piece.
func TestPack_isWhatIsSent(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		column := must(mpi.TypeVector(3, 1, 2, mpi.TypeInt32))
		m := []int32{1, 0, 2, 0, 3, 0}
		size, err := c.PackSize(1, column)
		if err != nil || size != 12 {
			return fmt.Errorf("PackSize %d: %v", size, err)
		}
		buf := make([]byte, size+8)
		if c.Rank() == 0 {
			pos, err := c.Pack(mpi.Typed(m, 1, column), buf, 0)
			if err == nil {
				pos, err = c.Pack(mpi.Slice([]float64{0.5}), buf, pos)
			}
			if err != nil || pos != len(buf) {
				return fmt.Errorf("packed %d bytes: %v", pos, err)
			}
			return c.Send(mpi.Bytes(buf, 0, pos, mpi.TypePacked), 1, 0)
		}
		got, half := make([]int32, 6), []float64{0}
		_, err = c.Recv(mpi.Bytes(buf, 0, len(buf), mpi.TypePacked), 0, 0)
		pos, err2 := c.Unpack(buf, 0, mpi.Typed(got, 1, column))
		pos, err3 := c.Unpack(buf, pos, mpi.Slice(half))
		if pos != len(buf) || half[0] != 0.5 {
			return fmt.Errorf("unpacked %d bytes, then %v", pos, half)
		}
		return errors.Join(err, err2, err3, expect("Unpack", got, m))
	})
}

func TestPackExternal(t *testing.T) {
	record := must(mpi.TypeStruct([]int{1, 1}, []int{0, 8}, []mpi.Datatype{mpi.TypeLong, mpi.TypeShort}))
	mem := []int64{-2, 0x0304}
	size, err := mpi.PackExternalSize(mpi.External32, 1, record)
	if err != nil || size != 6 {
		t.Fatalf("%d bytes: %v", size, err)
	}
	buf := make([]byte, 1+size)
	pos, err := mpi.PackExternal(mpi.External32, mpi.Typed(mem, 1, record), buf, 1)
	if want := []byte{0, 0xff, 0xff, 0xff, 0xfe, 3, 4}; err != nil || pos != len(buf) || !bytes.Equal(buf, want) {
		t.Fatalf("% x up to %d: %v", buf, pos, err)
	}
	back := make([]int64, 2)
	if pos, err = mpi.UnpackExternal(mpi.External32, buf, 1, mpi.Typed(back, 1, record)); err != nil || pos != len(buf) || back[0] != -2 || back[1] != 0x0304 {
		t.Errorf("%v up to %d: %v", back, pos, err)
	}
}

func TestPack_wrong(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		d, buf := mpi.Slice([]int32{1, 2}), make([]byte, 7)
		_, short := c.Pack(d, buf, 0)
		_, outside := c.Pack(d, buf, 8)
		_, shortIn := c.Unpack(buf, 0, d)
		_, bad := c.Unpack(buf, 0, mpi.Bytes(buf, 0, 8, mpi.TypeByte))
		_, null := c.PackSize(1, mpi.Datatype{})
		_, count := c.PackSize(-1, mpi.TypeInt)
		_, huge := c.PackSize(1<<62, mpi.TypeInt)
		_, name := mpi.PackExternal("native", d, buf, 0)
		_, externalShort := mpi.PackExternal(mpi.External32, d, buf, 0)
		_, long := mpi.PackExternal(mpi.External32, mpi.Bytes(bytes.Repeat([]byte{9}, 8), 0, 1, mpi.TypeLong), buf, 0)
		_, externalNull := mpi.PackExternalSize(mpi.External32, 1, mpi.Datatype{})
		_, negative := mpi.UnpackExternal(mpi.External32, buf, -1, d)
		for i, w := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrTruncate, short}, {mpi.ErrArg, outside}, {mpi.ErrTruncate, shortIn}, {mpi.ErrBuffer, bad},
			{mpi.ErrType, null}, {mpi.ErrCount, count}, {mpi.ErrCount, huge}, {mpi.ErrArg, name},
			{mpi.ErrTruncate, externalShort}, {mpi.ErrConversion, long}, {mpi.ErrType, externalNull}, {mpi.ErrArg, negative},
		} {
			if err := wantClass(w.err, w.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
}
