package mpi_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/xwarp/xwarp/mpi"
)

// layout is a datatype and what it means, written down by the definition (MPI 4.1,
// section 5.1): where each predefined element lies, in the order of the signature.
// The tests compare what messages do with what a loop over this list does.
type layout struct {
	t      mpi.Datatype
	at     []int // bytes
	sizes  []int // of the elements
	extent int
}

// basic is a predefined datatype with its size.
type basic struct {
	t    mpi.Datatype
	size int
}

func basics() []basic {
	return []basic{
		{mpi.TypeByte, 1}, {mpi.TypeShort, 2}, {mpi.TypeInt, 4}, {mpi.TypeDouble, 8}, {mpi.TypeCDoubleComplex, 16},
	}
}

// must is for datatypes that a test itself has made up.
func must(t mpi.Datatype, err error) mpi.Datatype {
	if err == nil {
		err = t.Commit()
	}
	if err != nil {
		panic(err)
	}
	return t
}

// span returns how long the memory of count elements is.
func (l layout) span(count int) int {
	end := 0
	for i, at := range l.at {
		end = max(end, at+l.sizes[i], at+l.sizes[i]+(count-1)*l.extent)
	}
	return end
}

// pack is what the bytes of count elements are, one behind the other.
func (l layout) pack(mem []byte, count int) []byte {
	var out []byte
	for n := range count {
		for i, at := range l.at {
			out = append(out, mem[n*l.extent+at:][:l.sizes[i]]...)
		}
	}
	return out
}

// unpack puts as many bytes as there are.
func (l layout) unpack(mem, packed []byte, count int) {
	for n := range count {
		for i, at := range l.at {
			packed = packed[copy(mem[n*l.extent+at:][:l.sizes[i]], packed):]
		}
	}
}

func (l layout) size() (n int) {
	for _, s := range l.sizes {
		n += s
	}
	return n
}

// mixed is a structure of the given elements, which lie in any order in memory,
// with gaps.
func mixed(rng *rand.Rand, elems []basic) layout {
	l := layout{at: make([]int, len(elems))}
	lengths, types := make([]int, len(elems)), make([]mpi.Datatype, len(elems))
	end := 0
	for _, i := range rng.Perm(len(elems)) {
		l.at[i] = end + rng.IntN(3)
		end = l.at[i] + elems[i].size
	}
	for i, e := range elems {
		lengths[i], types[i] = 1, e.t
		l.sizes = append(l.sizes, e.size)
	}
	l.extent = end + rng.IntN(4)
	l.t = must(mpi.TypeResized(must(mpi.TypeStruct(lengths, l.at, types)), 0, l.extent))
	return l
}

// uniform is n elements of one datatype, in one of many ways.
func uniform(rng *rand.Rand, e basic, n int) layout {
	l := layout{}
	for range n {
		l.sizes = append(l.sizes, e.size)
	}
	switch rng.IntN(5) {
	case 0: // side by side
		l.t = must(mpi.TypeContiguous(n, e.t))
		for i := range n {
			l.at = append(l.at, i*e.size)
		}
	case 1: // blocks at equal distances
		length := 1 + rng.IntN(3)
		for n%length != 0 {
			length--
		}
		stride := length + rng.IntN(3)
		l.t = must(mpi.TypeVector(n/length, length, stride, e.t))
		for i := range n {
			l.at = append(l.at, (i/length*stride+i%length)*e.size)
		}
	case 2: // blocks anywhere
		var lengths, displacements []int
		for left, end := n, 0; left > 0; {
			length := 1 + rng.IntN(left)
			start := end + rng.IntN(3)
			lengths, displacements = append(lengths, length), append(displacements, start)
			for i := range length {
				l.at = append(l.at, (start+i)*e.size)
			}
			end, left = start+length, left-length
		}
		l.t = must(mpi.TypeIndexed(lengths, displacements, e.t))
	case 3: // one by one, at any bytes
		displacements, end := []int(nil), 0
		for range n {
			end += rng.IntN(5)
			displacements = append(displacements, end)
			end += e.size
		}
		l.at = displacements
		l.t = must(mpi.TypeHindexedBlock(1, displacements, e.t))
	case 4: // a column of a matrix
		columns := 1 + rng.IntN(4)
		column := rng.IntN(columns)
		l.t = must(mpi.TypeSubarray([]int{n, columns}, []int{n, 1}, []int{0, column}, mpi.OrderC, e.t))
		for i := range n {
			l.at = append(l.at, (i*columns+column)*e.size)
		}
	}
	l.extent = l.span(1) + rng.IntN(9)
	l.t = must(mpi.TypeResized(l.t, 0, l.extent))
	return l
}

// twins are two datatypes with the same signature.
func twins(rng *rand.Rand) (a, b layout) {
	kinds := basics()
	if rng.IntN(2) == 0 {
		e, n := kinds[rng.IntN(len(kinds))], 1+rng.IntN(12)
		return uniform(rng, e, n), uniform(rng, e, n)
	}
	var elems []basic
	for range 1 + rng.IntN(8) {
		elems = append(elems, kinds[rng.IntN(len(kinds))])
	}
	return mixed(rng, elems), mixed(rng, elems)
}

// untouched is what memory is full of where nothing was received.
const untouched = 0xEE

func blank(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = untouched
	}
	return b
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// sameBytes compares all of a buffer, gaps and all.
func sameBytes(what string, got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#x, want %#x", what, i, len(want), got[i], want[i])
		}
	}
	return nil
}
