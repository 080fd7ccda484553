package mpi

// TypeClass is a kind of numbers (MPI 4.1, section 19.1.5).
type TypeClass int

// Classes of types.
const (
	TypeClassReal    TypeClass = iota + 1 // MPI_TYPECLASS_REAL
	TypeClassInteger                      // MPI_TYPECLASS_INTEGER
	TypeClassComplex                      // MPI_TYPECLASS_COMPLEX
)

// TypeMatchSize returns the predefined datatype of a class whose elements have so
// many bytes (MPI_Type_match_size). It is one of Fortran's, as MPI has it.
func TypeMatchSize(class TypeClass, bytes int) (Datatype, error) {
	var candidates []Datatype
	switch class {
	case TypeClassReal:
		candidates = []Datatype{TypeReal4, TypeReal8, TypeReal16}
	case TypeClassInteger:
		candidates = []Datatype{TypeInteger1, TypeInteger2, TypeInteger4, TypeInteger8, TypeInteger16}
	case TypeClassComplex:
		candidates = []Datatype{TypeComplex8, TypeComplex16, TypeComplex32}
	default:
		return Datatype{}, fail(ErrArg, "TypeMatchSize", "there is no class %d; there is TypeClassReal, TypeClassInteger and TypeClassComplex", int(class))
	}
	for _, t := range candidates {
		if t.Size() == bytes {
			return t, nil
		}
	}
	return Datatype{}, fail(ErrArg, "TypeMatchSize", "no type of this class has %d bytes", bytes)
}
