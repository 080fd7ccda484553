package dtype

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// What is reduced 32 bytes at a time is the same as one element at a time, at all lengths and
// with zeros of both signs, infinities and NaN; and nothing beside it is touched.
func TestVectorize(t *testing.T) {
	if !cpu.X86.HasAVX2 {
		t.Skip("the processor has no AVX2")
	}
	vector, scalar := kernels, scalarKernels()
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for rule := range rules {
		for m, l := range layouts {
			if scalar[rule][m] == nil || rule == ruleNoOp || rule == ruleReplace {
				continue
			}
			changed++
			for n := range 3*vectorBlock/l.extent + 2 {
				in, inout := make([]byte, 4*vectorBlock+64), make([]byte, 4*vectorBlock+64)
				special(r, in, machine(m))
				special(r, inout, machine(m))
				want := bytes.Clone(inout)
				if n > 0 {
					end := (n-1)*l.extent + l.end
					vector[rule][m](in[16:16+end], inout[16:16+end], n)
					scalar[rule][m](in[16:16+end], want[16:16+end], n)
				}
				if canonical(inout, machine(m)); !bytes.Equal(inout, canonical(want, machine(m))) {
					t.Fatalf("rule %d of machine type %d, %d elements:\n%x\nwant\n%x", rule, m, n, inout, want)
				}
			}
		}
	}
	if changed < 50 {
		t.Errorf("%d kernels only", changed)
	}
}

// special makes elements of random bits, and a third of those of floats what is special of them.
func special(r *rand.Rand, b []byte, m machine) {
	for i, w := 0, mem.ScalarsOf[uint64](b[:len(b)&^7]); i < len(w); i++ {
		w[i] = r.Uint64()
	}
	values := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1}
	switch m {
	case mFloat32, mComplex64:
		for i, f := 0, mem.ScalarsOf[float32](b[:len(b)&^7]); i < len(f); i += 1 + r.IntN(3) {
			f[i] = float32(values[r.IntN(len(values))])
		}
	case mFloat64, mComplex128:
		for i, f := 0, mem.ScalarsOf[float64](b[:len(b)&^7]); i < len(f); i += 1 + r.IntN(3) {
			f[i] = values[r.IntN(len(values))]
		}
	}
}

// canonical makes all NaN the same one.
func canonical(b []byte, m machine) []byte {
	switch m {
	case mFloat32, mComplex64:
		for i, f := range mem.ScalarsOf[float32](b[:len(b)&^7]) {
			if f != f {
				mem.ScalarsOf[float32](b[:len(b)&^7])[i] = float32(math.NaN())
			}
		}
	case mFloat64, mComplex128:
		for i, f := range mem.ScalarsOf[float64](b[:len(b)&^7]) {
			if f != f {
				mem.ScalarsOf[float64](b[:len(b)&^7])[i] = math.NaN()
			}
		}
	}
	return b
}

// BenchmarkVectorize is 32 bytes at a time beside one element at a time.
func BenchmarkVectorize(b *testing.B) {
	in, inout := make([]byte, 16384), make([]byte, 16384)
	for name, all := range map[string][rules][machines]kernel{"vector": kernels, "scalar": scalarKernels()} {
		for _, c := range []struct {
			name string
			rule rule
			m    machine
		}{{"sum/float64", ruleSum, mFloat64}, {"sum/float32", ruleSum, mFloat32}, {"sum/int32", ruleSum, mInt32}, {"max/float64", ruleMax, mFloat64}} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					all[c.rule][c.m](in, inout, len(in)/layouts[c.m].extent)
				}
			})
		}
	}
}
