package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// Op is a reduction (MPI_Op, MPI 4.1, section 6.9): one of the predefined ones,
// or one that a user has written.
type Op struct {
	rule        rule
	user        UserFunc
	only        *Type // what user is for; nil: everything
	commutative bool
}

// UserFunc sets inout[i] to in[i] op inout[i] for n elements of type t
// (MPI_User_function). Both slices start at the lowest displacement of the n
// elements, which is the first result of t.Span(n) and 0 for the predefined
// types. It must be associative and must not keep the slices.
type UserFunc func(in, inout []byte, n int, t *Type)

// NewOp makes an operation of fn (MPI_Op_create). If it is not commutative, the
// operands are combined in the order of the ranks.
func NewOp(fn UserFunc, commutative bool) (*Op, error) {
	if fn == nil {
		return nil, fail(InvalidOp, "Op_create", "there is no function (nil)")
	}
	return &Op{rule: ruleUser, user: fn, commutative: commutative}, nil
}

// NewOpFor is NewOp of a function that is for elements of one type only.
func NewOpFor(only *Type, fn UserFunc, commutative bool) (*Op, error) {
	op, err := NewOp(fn, commutative)
	if err == nil {
		op.only = only
	}
	return op, err
}

type rule uint8

const (
	ruleUser rule = iota
	ruleSum
	ruleProd
	ruleMax
	ruleMin
	ruleLand
	ruleLor
	ruleLxor
	ruleBand
	ruleBor
	ruleBxor
	ruleMaxloc
	ruleMinloc
	ruleReplace
	ruleNoOp
	rules
)

// The predefined operations (MPI 4.1, sections 6.9.2, 6.9.4 and 12.3.4).
var (
	Sum     = predefinedOp(ruleSum)     // MPI_SUM
	Prod    = predefinedOp(ruleProd)    // MPI_PROD
	Max     = predefinedOp(ruleMax)     // MPI_MAX; of a NaN and anything it is NaN
	Min     = predefinedOp(ruleMin)     // MPI_MIN; of a NaN and anything it is NaN
	Land    = predefinedOp(ruleLand)    // MPI_LAND
	Lor     = predefinedOp(ruleLor)     // MPI_LOR
	Lxor    = predefinedOp(ruleLxor)    // MPI_LXOR
	Band    = predefinedOp(ruleBand)    // MPI_BAND
	Bor     = predefinedOp(ruleBor)     // MPI_BOR
	Bxor    = predefinedOp(ruleBxor)    // MPI_BXOR
	Maxloc  = predefinedOp(ruleMaxloc)  // MPI_MAXLOC
	Minloc  = predefinedOp(ruleMinloc)  // MPI_MINLOC
	Replace = predefinedOp(ruleReplace) // MPI_REPLACE, for accumulates only
	NoOp    = predefinedOp(ruleNoOp)    // MPI_NO_OP, for accumulates only
)

func predefinedOp(r rule) *Op { return &Op{rule: r, commutative: r != ruleReplace && r != ruleNoOp} }

var ruleNames = [rules]string{
	"user-defined", "MPI_SUM", "MPI_PROD", "MPI_MAX", "MPI_MIN", "MPI_LAND", "MPI_LOR", "MPI_LXOR",
	"MPI_BAND", "MPI_BOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC", "MPI_REPLACE", "MPI_NO_OP",
}

func (o *Op) String() string { return ruleNames[o.rule] }

// Commutative reports whether operands may change places (MPI_Op_commutative).
func (o *Op) Commutative() bool { return o.commutative }

// Predefined reports whether o is one of the predefined operations.
func (o *Op) Predefined() bool { return o.rule != ruleUser }

// legal says which types each operation is for (MPI 4.1, section 6.9.2), and that logical
// ones are for addresses and counts, too, as they are with MPICH and Open MPI.
var legal = [rules]groups{
	ruleSum:    arithmetic | 1<<groupComplex,
	ruleProd:   arithmetic | 1<<groupComplex,
	ruleMax:    arithmetic,
	ruleMin:    arithmetic,
	ruleLand:   logical,
	ruleLor:    logical,
	ruleLxor:   logical,
	ruleBand:   bitwise,
	ruleBor:    bitwise,
	ruleBxor:   bitwise,
	ruleMaxloc: 1 << groupPair,
	ruleMinloc: 1 << groupPair,
	// An accumulate may replace elements of every predefined type.
	ruleReplace: ^groups(0),
	ruleNoOp:    ^groups(0),
}

// groups is a set of groups, one bit each.
type groups uint16

const (
	arithmetic groups = 1<<groupCInteger | 1<<groupFortranInt | 1<<groupFloat | 1<<groupMultiLanguage
	logical    groups = 1<<groupCInteger | 1<<groupLogical | 1<<groupMultiLanguage
	bitwise    groups = 1<<groupCInteger | 1<<groupFortranInt | 1<<groupByte | 1<<groupMultiLanguage
)

// Reduction is an operation on a type. It is a value that allocates nothing.
type Reduction struct {
	op     *Op
	typ    *Type
	kernel kernel
}

// On returns how o reduces elements of t. Predefined operations are for
// predefined types, and not each for all: else the error is of the class
// InvalidOp.
func (o *Op) On(t *Type) (Reduction, error) {
	if o == nil || t == nil {
		return Reduction{}, fail(InvalidOp, "Reduce", "the operation or the type is nil")
	}
	if o.rule == ruleUser && o.only != nil && o.only != t {
		return Reduction{}, fail(InvalidOp, "Reduce", "the operation is for elements of one type (%v), which this is not (%v)", o.only, t)
	}
	if o.rule == ruleUser {
		return Reduction{op: o, typ: t}, nil
	}
	if t.kind == Derived {
		return Reduction{}, fail(InvalidOp, "Reduce", "%v is for predefined types; write an operation of your own for a derived one", o)
	}
	if info := &kinds[t.kind]; legal[o.rule]>>info.group&1 == 0 {
		return Reduction{}, fail(InvalidOp, "Reduce", "%v is not for %v", o, t)
	}
	return Reduction{op: o, typ: t, kernel: kernels[o.rule][kinds[t.kind].machine]}, nil
}

// Apply sets inout[i] to in[i] op inout[i] for n elements, which lie in memory
// as the type says. Both slices start at the lowest displacement of the n
// elements and reach at least to the highest; they do not overlap and need no
// alignment, but it is faster when they are aligned as C aligns the type.
func (r Reduction) Apply(in, inout []byte, n int) {
	if n <= 0 {
		return
	}
	if r.op.rule == ruleUser {
		r.op.user(in, inout, n, r.typ)
		return
	}
	m := &layouts[kinds[r.typ.kind].machine]
	bytes := (n-1)*m.extent + m.end
	in, inout = in[:bytes], inout[:bytes]
	if (mem.AddressOf(in)|mem.AddressOf(inout))%m.align == 0 {
		r.kernel(in, inout, n)
		return
	}
	r.kernel.unaligned(in, inout, n, m)
}
