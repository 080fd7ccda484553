package rma

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// ownWindow is a window of a job of one rank, with memory in the middle of more.
func ownWindow(all []byte, margin int) *Window {
	w := &Window{
		flow: flow{targets: make([]target, 1), ranks: 1, idle: -1},
	}
	w.self = w
	w.here = server{self: w, ranks: 1, memory: memory{mem: all[margin : len(all)-margin : len(all)-margin]}}
	w.targets[0].Remote = Remote{Size: uint64(len(w.here.mem)), Unit: 1}
	w.targets[0].chunk = selfChunk
	return w
}

func body(kind dtype.Kind, op uint8, blocks []block, data ...byte) []byte {
	f := front{kind: kind, op: op, n: copy(new(front).blocks[:], blocks)}
	copy(f.blocks[:], blocks)
	b := make([]byte, frontLen+f.n*blockLen)
	f.put(b)
	return append(b, data...)
}

// Nothing that arrives reaches memory outside of the window, or makes the target panic.
func FuzzActive(f *testing.F) {
	eight := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	sum, _ := number(dtype.Sum)
	maxloc, _ := number(dtype.Maxloc)
	f.Add(sayPut, uint32(0), body(dtype.Byte.Kind(), 0, []block{{0, 4}, {60, 4}}, eight...))
	f.Add(sayPut|sayFlush<<behindShift, uint32(0), body(dtype.Byte.Kind(), 0, []block{{56, 8}}, eight...))
	f.Add(sayPut, uint32(0), body(dtype.Byte.Kind(), 0, []block{{57, 8}}, eight...))
	f.Add(sayPut, uint32(0), body(dtype.Byte.Kind(), 0, []block{{1<<64 - 4, 8}}, eight...))
	f.Add(sayAccumulate, uint32(0), body(dtype.Int64.Kind(), sum, []block{{8, 8}}, eight...))
	f.Add(sayAccumulate, uint32(0), body(dtype.ShortInt.Kind(), maxloc, []block{{56, 6}}, eight[:6]...))
	f.Add(sayAccumulate, uint32(0), body(dtype.ShortInt.Kind(), maxloc, []block{{58, 6}}, eight[:6]...))
	f.Add(sayFetch, uint32(0), body(dtype.Int64.Kind(), sum, []block{{8, 8}}, eight...))
	f.Add(sayGet, uint32(0), body(dtype.Byte.Kind(), 0, []block{{0, 64}}))
	f.Add(sayGet, uint32(0), body(dtype.Byte.Kind(), 0, []block{{0, 1 << 31}}))
	f.Add(saySwap, uint32(0), body(dtype.Int32.Kind(), 0, []block{{60, 4}}, eight...))
	f.Add(sayData, uint32(1<<31), eight)
	f.Add(sayLock, uint32(7), []byte(nil))
	f.Add(sayUnlock, uint32(1), []byte(nil))
	f.Fuzz(func(t *testing.T, what int32, id uint32, b []byte) {
		const margin = 64
		all := bytes.Repeat([]byte{0xa5}, 3*margin)
		w := ownWindow(all, margin)
		if what < 0 { // no header has that
			return
		}
		w.Active(0, what, id, b)
		if guard := bytes.Repeat([]byte{0xa5}, margin); !bytes.Equal(all[:margin], guard) || !bytes.Equal(all[2*margin:], guard) {
			t.Errorf("what %d, %x: memory outside of the window has changed", what, b)
		}
	})
}
