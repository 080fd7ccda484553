package dtype

import "encoding/binary"

// size80 is how far apart two long doubles are.
const size80 = 16

// extended enters the kernels of long double and of what is made of it.
func extended(t *[rules][machines]kernel) {
	sum := lift80(float80.add)
	t[ruleSum][mFloat80] = sum
	t[ruleProd][mFloat80] = lift80(float80.mul)
	t[ruleMax][mFloat80] = lift80(float80.max)
	t[ruleMin][mFloat80] = lift80(float80.min)
	t[ruleSum][mComplex160] = func(in, inout []byte, n int) { sum(in, inout, 2*n) }
	t[ruleProd][mComplex160] = prodComplex160
	t[ruleMaxloc][mPairFloat80] = func(in, inout []byte, n int) { locate80(in, inout, n, true) }
	t[ruleMinloc][mPairFloat80] = func(in, inout []byte, n int) { locate80(in, inout, n, false) }
}

func lift80(op func(x, y float80) float80) kernel {
	return func(in, inout []byte, n int) {
		for i := range n {
			at := i * size80
			op(load80(in[at:]), load80(inout[at:])).store(inout[at:])
		}
	}
}

func prodComplex160(in, inout []byte, n int) {
	for i := range n {
		a, b := in[i*2*size80:], inout[i*2*size80:]
		ar, ai, br, bi := load80(a), load80(a[size80:]), load80(b), load80(b[size80:])
		ar.mul(br).add(ai.mul(bi).neg()).store(b)
		ar.mul(bi).add(ai.mul(br)).store(b[size80:])
	}
}

// locate80 is locate for long double and int.
func locate80(in, inout []byte, n int, largest bool) {
	for i := range n {
		a, b := in[i*2*size80:], inout[i*2*size80:]
		v, best := load80(a), load80(b)
		index, bestIndex := int32(binary.LittleEndian.Uint32(a[size80:])), int32(binary.LittleEndian.Uint32(b[size80:]))
		switch {
		case v.equal(best):
			index = min(index, bestIndex)
		case largest && best.less(v), !largest && v.less(best), v.isNaN():
			v.store(b)
		default:
			continue
		}
		binary.LittleEndian.PutUint32(b[size80:], uint32(index))
	}
}
