package dtype

// The loops of the reductions. Go's compiler does not unroll loops, and the
// bounds and the counter cost more than the arithmetic; so they take eight
// elements at a time, as arrays, whose bounds are checked once.
const unroll = 8

func sum[T numberType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = b[0]+a[0], b[1]+a[1], b[2]+a[2], b[3]+a[3]
		b[4], b[5], b[6], b[7] = b[4]+a[4], b[5]+a[5], b[6]+a[6], b[7]+a[7]
	}
	for i, v := range in {
		inout[i] += v
	}
}

func prod[T numberType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = b[0]*a[0], b[1]*a[1], b[2]*a[2], b[3]*a[3]
		b[4], b[5], b[6], b[7] = b[4]*a[4], b[5]*a[5], b[6]*a[6], b[7]*a[7]
	}
	for i, v := range in {
		inout[i] *= v
	}
}

// prodComplex is prod for complex128. The conversions keep the compiler from
// fusing a multiplication with a sum where the processor can: ranks that were
// built for different processors get the same bits.
func prodComplex(in, inout []complex128) {
	for i, a := range in {
		b := inout[i]
		inout[i] = complex(
			float64(real(a)*real(b))-float64(imag(a)*imag(b)),
			float64(real(a)*imag(b))+float64(imag(a)*real(b)))
	}
}

func maximum[T orderedType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = max(b[0], a[0]), max(b[1], a[1]), max(b[2], a[2]), max(b[3], a[3])
		b[4], b[5], b[6], b[7] = max(b[4], a[4]), max(b[5], a[5]), max(b[6], a[6]), max(b[7], a[7])
	}
	for i, v := range in {
		inout[i] = max(inout[i], v)
	}
}

func minimum[T orderedType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = min(b[0], a[0]), min(b[1], a[1]), min(b[2], a[2]), min(b[3], a[3])
		b[4], b[5], b[6], b[7] = min(b[4], a[4]), min(b[5], a[5]), min(b[6], a[6]), min(b[7], a[7])
	}
	for i, v := range in {
		inout[i] = min(inout[i], v)
	}
}

func band[T integerType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = b[0]&a[0], b[1]&a[1], b[2]&a[2], b[3]&a[3]
		b[4], b[5], b[6], b[7] = b[4]&a[4], b[5]&a[5], b[6]&a[6], b[7]&a[7]
	}
	for i, v := range in {
		inout[i] &= v
	}
}

func bor[T integerType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = b[0]|a[0], b[1]|a[1], b[2]|a[2], b[3]|a[3]
		b[4], b[5], b[6], b[7] = b[4]|a[4], b[5]|a[5], b[6]|a[6], b[7]|a[7]
	}
	for i, v := range in {
		inout[i] |= v
	}
}

func bxor[T integerType](in, inout []T) {
	for ; len(in) >= unroll; in, inout = in[unroll:], inout[unroll:] {
		a, b := (*[unroll]T)(in), (*[unroll]T)(inout)
		b[0], b[1], b[2], b[3] = b[0]^a[0], b[1]^a[1], b[2]^a[2], b[3]^a[3]
		b[4], b[5], b[6], b[7] = b[4]^a[4], b[5]^a[5], b[6]^a[6], b[7]^a[7]
	}
	for i, v := range in {
		inout[i] ^= v
	}
}

func land[T integerType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] = truth[T](v != 0 && inout[i] != 0)
	}
}

func lor[T integerType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] = truth[T](v|inout[i] != 0)
	}
}

func lxor[T integerType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] = truth[T]((v != 0) != (inout[i] != 0))
	}
}

func truth[T integerType](b bool) T {
	if b {
		return 1
	}
	return 0
}
