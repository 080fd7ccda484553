package dtype

func sum[T numberType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] += v
	}
}

// The kernel of integers of 8 and 16 bits adds a word of them at a time: the
// carry out of each lane is kept away from the next one by adding the highest
// bits apart (Warren, Hacker's Delight, section 2-18).

func sumBytes(in, inout []uint64)  { sumLanes(in, inout, 0x8080808080808080) }
func sumHalves(in, inout []uint64) { sumLanes(in, inout, 0x8000800080008000) }

func sumLanes(in, inout []uint64, high uint64) {
	inout = inout[:len(in)]
	for i, a := range in {
		b := inout[i]
		inout[i] = (a&^high + b&^high) ^ (a^b)&high
	}
}

func prod[T numberType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] *= v
	}
}

func maximum[T orderedType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] = max(inout[i], v)
	}
}

func minimum[T orderedType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] = min(inout[i], v)
	}
}

func band[T integerType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] &= v
	}
}

func bor[T integerType](in, inout []T) {
	inout = inout[:len(in)]
	for i, v := range in {
		inout[i] |= v
	}
}

func bxor[T integerType](in, inout []T) {
	inout = inout[:len(in)]
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
