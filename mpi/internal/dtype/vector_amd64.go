package dtype

import "golang.org/x/sys/cpu"

// vectorize has what the processor does to 32 bytes at once done so: Go's compiler
// makes no such code. What it has no instruction for stays as it is: products of bytes,
// of 64 bits and of complex numbers, orders of 64 bits.
func vectorize(t [rules][machines]kernel) [rules][machines]kernel {
	if !cpu.X86.HasAVX2 {
		return t
	}
	for _, v := range []struct {
		rule     rule
		loop     func(in, inout *byte, blocks int)
		machines []machine
	}{
		{ruleSum, addFloat32, []machine{mFloat32, mComplex64}},
		{ruleSum, addFloat64, []machine{mFloat64, mComplex128}},
		{ruleSum, add8, []machine{mInt8, mUint8}},
		{ruleSum, add16, []machine{mInt16, mUint16}},
		{ruleSum, add32, []machine{mInt32, mUint32}},
		{ruleSum, add64, []machine{mInt64, mUint64}},
		{ruleProd, mulFloat32, []machine{mFloat32}},
		{ruleProd, mulFloat64, []machine{mFloat64}},
		{ruleProd, mul16, []machine{mInt16, mUint16}},
		{ruleProd, mul32, []machine{mInt32, mUint32}},
		{ruleMax, maxFloat32, []machine{mFloat32}},
		{ruleMax, maxFloat64, []machine{mFloat64}},
		{ruleMax, maxInt8, []machine{mInt8}},
		{ruleMax, maxInt16, []machine{mInt16}},
		{ruleMax, maxInt32, []machine{mInt32}},
		{ruleMax, maxUint8, []machine{mUint8}},
		{ruleMax, maxUint16, []machine{mUint16}},
		{ruleMax, maxUint32, []machine{mUint32}},
		{ruleMin, minFloat32, []machine{mFloat32}},
		{ruleMin, minFloat64, []machine{mFloat64}},
		{ruleMin, minInt8, []machine{mInt8}},
		{ruleMin, minInt16, []machine{mInt16}},
		{ruleMin, minInt32, []machine{mInt32}},
		{ruleMin, minUint8, []machine{mUint8}},
		{ruleMin, minUint16, []machine{mUint16}},
		{ruleMin, minUint32, []machine{mUint32}},
		{ruleBand, and, integers},
		{ruleBor, or, integers},
		{ruleBxor, xor, integers},
	} {
		for _, m := range v.machines {
			t[v.rule][m] = byBlocks(v.loop, t[v.rule][m], layouts[m].extent)
		}
	}
	return t
}

var integers = []machine{mInt8, mInt16, mInt32, mInt64, mUint8, mUint16, mUint32, mUint64}

// byBlocks makes a kernel of a loop over blocks, and of one for the rest.
func byBlocks(loop func(in, inout *byte, blocks int), rest kernel, extent int) kernel {
	return func(in, inout []byte, n int) {
		if whole := len(in) / vectorBlock; whole > 0 {
			loop(&in[0], &inout[0], whole)
			done := whole * vectorBlock
			in, inout, n = in[done:], inout[done:], n-done/extent
		}
		rest(in, inout, n)
	}
}

// In vector_amd64.s.

func addFloat32(in, inout *byte, blocks int)
func addFloat64(in, inout *byte, blocks int)
func add8(in, inout *byte, blocks int)
func add16(in, inout *byte, blocks int)
func add32(in, inout *byte, blocks int)
func add64(in, inout *byte, blocks int)
func mulFloat32(in, inout *byte, blocks int)
func mulFloat64(in, inout *byte, blocks int)
func mul16(in, inout *byte, blocks int)
func mul32(in, inout *byte, blocks int)
func maxInt8(in, inout *byte, blocks int)
func maxInt16(in, inout *byte, blocks int)
func maxInt32(in, inout *byte, blocks int)
func maxUint8(in, inout *byte, blocks int)
func maxUint16(in, inout *byte, blocks int)
func maxUint32(in, inout *byte, blocks int)
func minInt8(in, inout *byte, blocks int)
func minInt16(in, inout *byte, blocks int)
func minInt32(in, inout *byte, blocks int)
func minUint8(in, inout *byte, blocks int)
func minUint16(in, inout *byte, blocks int)
func minUint32(in, inout *byte, blocks int)
func and(in, inout *byte, blocks int)
func or(in, inout *byte, blocks int)
func xor(in, inout *byte, blocks int)
func maxFloat32(in, inout *byte, blocks int)
func maxFloat64(in, inout *byte, blocks int)
func minFloat32(in, inout *byte, blocks int)
func minFloat64(in, inout *byte, blocks int)
