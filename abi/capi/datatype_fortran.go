package capi

import "github.com/xwarp/xwarp/mpi"

// parameters are what a datatype of Fortran must do: decimal digits, and the exponent.
type parameters struct{ combiner, precision, exponent int }

// contents tells how the datatype was made.
func (p *parameters) contents() contents {
	c := contents{combiner: p.combiner, integers: []int{p.precision, p.exponent}}
	if p.combiner == MPI_COMBINER_F90_INTEGER {
		c.integers = c.integers[1:]
	}
	return c
}

// A model is the numbers of a type: those of so many decimal digits and, of floating point,
// up to ten to that exponent.
type model struct {
	precision, exponent int
	t                   mpi.Datatype
}

// Models of Fortran's types, the smallest first.
var (
	realModels    = []model{{6, 37, mpi.TypeReal4}, {15, 307, mpi.TypeReal8}}
	complexModels = []model{{6, 37, mpi.TypeComplex8}, {15, 307, mpi.TypeComplex16}}
	integerModels = []model{
		{0, 2, mpi.TypeInteger1}, {0, 4, mpi.TypeInteger2}, {0, 9, mpi.TypeInteger4}, {0, 18, mpi.TypeInteger8},
	}
)

// fortran makes a datatype for numbers of Fortran.
func (l *Lib) fortran(p parameters, models []model, newtype Handles) error {
	if err := l.up(); err != nil {
		return err
	}
	l.types.mu.Lock()
	h, there := l.types.f90[p]
	l.types.mu.Unlock()
	if there {
		newtype.set(0, h)
		return nil
	}
	digits, exponent := p.precision, p.exponent
	if digits == MPI_UNDEFINED {
		digits = 0
	}
	if exponent == MPI_UNDEFINED {
		exponent = 0
	}
	for _, m := range models {
		if digits > m.precision || exponent > m.exponent {
			continue
		}
		t, err := mpi.TypeDup(m.t)
		if err != nil {
			return err
		}
		l.types.mu.Lock()
		defer l.types.mu.Unlock()
		h = l.types.made.add(madeType{Datatype: t, f90: &p, uses: 1})
		l.types.handles[t], l.types.f90[p] = h, h
		newtype.set(0, h)
		return nil
	}
	return fail(mpi.ErrArg, "there is no type for numbers of precision %d and exponent %d", p.precision, p.exponent)
}

// TypeCreateF90Real is MPI_Type_create_f90_real.
func TypeCreateF90Real(l *Lib, precision, exponent int, newtype Handles) error {
	return l.fortran(parameters{MPI_COMBINER_F90_REAL, precision, exponent}, realModels, newtype)
}

// TypeCreateF90Complex is MPI_Type_create_f90_complex.
func TypeCreateF90Complex(l *Lib, precision, exponent int, newtype Handles) error {
	return l.fortran(parameters{MPI_COMBINER_F90_COMPLEX, precision, exponent}, complexModels, newtype)
}

// TypeCreateF90Integer is MPI_Type_create_f90_integer.
func TypeCreateF90Integer(l *Lib, exponent int, newtype Handles) error {
	return l.fortran(parameters{MPI_COMBINER_F90_INTEGER, 0, exponent}, integerModels, newtype)
}
