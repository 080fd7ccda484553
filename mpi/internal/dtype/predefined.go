package dtype

// Kind names a predefined type.
type Kind uint8

// group is a set of predefined types that the same reductions are allowed on
// (MPI 4.1, section 6.9.2).
type group uint8

const (
	groupNone          group = iota // no reductions: wide characters, those of Fortran, packed data
	groupCInteger                   // C integer, and MPI_CHAR as MPICH and Open MPI have it
	groupFortranInt                 // Fortran integer
	groupFloat                      // Floating point
	groupLogical                    // Logical
	groupComplex                    // Complex
	groupByte                       // Byte
	groupMultiLanguage              // Multi-language types
	groupPair                       // for MAXLOC and MINLOC
)

// machine is how an element is represented in memory.
type machine uint8

const (
	mInt8 machine = iota
	mInt16
	mInt32
	mInt64
	mUint8
	mUint16
	mUint32
	mUint64
	mFloat32
	mFloat64
	mFloat80 // x87 extended precision in 16 bytes
	mComplex64
	mComplex128
	mComplex160 // two of mFloat80
	mPairFloat32
	mPairFloat64
	mPairInt16
	mPairInt32
	mPairInt64
	mPairFloat80
	mPairFloat32s
	mPairFloat64s
	mWord128  // 16 bytes that no operation is done with
	mWords128 // two of mWord128
	machines
)

// The predefined kinds.
const (
	kByte Kind = iota
	kPacked
	kChar
	kSignedChar
	kUnsignedChar
	kWChar
	kShort
	kUnsignedShort
	kInt
	kUnsigned
	kLong
	kUnsignedLong
	kLongLong
	kUnsignedLongLong
	kInt8
	kInt16
	kInt32
	kInt64
	kUint8
	kUint16
	kUint32
	kUint64
	kFloat
	kDouble
	kLongDouble
	kCBool
	kCFloatComplex
	kCDoubleComplex
	kCLongDoubleComplex
	kAint
	kOffset
	kCount
	kCXXBool
	kCXXFloatComplex
	kCXXDoubleComplex
	kCXXLongDoubleComplex
	kCharacter
	kLogical
	kInteger
	kInteger1
	kInteger2
	kInteger4
	kInteger8
	kReal
	kReal4
	kReal8
	kDoublePrecision
	kComplex
	kComplex8
	kComplex16
	kDoubleComplex
	kFloatInt
	kDoubleInt
	kLongInt
	kShortInt
	kTwoInt
	kLongDoubleInt
	kTwoReal
	kTwoDoublePrecision
	kTwoInteger
	kInteger16
	kReal16
	kComplex32
	// Derived is the kind of every type that was constructed.
	Derived
)

// kindInfo is what is known about a kind. Sizes and alignments are those of C
// and Fortran on 64-bit Linux.
type kindInfo struct {
	name    string
	machine machine
	group   group
	size    int // packed bytes
	align   int
	// external is the size in external32 (MPI 4.1, table 14.2).
	external int
	// first and second are the parts of a pair.
	first, second Kind
}

var kinds = [...]kindInfo{
	kByte:                 {"MPI_BYTE", mUint8, groupByte, 1, 1, 1, 0, 0},
	kPacked:               {"MPI_PACKED", mUint8, groupNone, 1, 1, 1, 0, 0},
	kChar:                 {"MPI_CHAR", mInt8, groupCInteger, 1, 1, 1, 0, 0},
	kSignedChar:           {"MPI_SIGNED_CHAR", mInt8, groupCInteger, 1, 1, 1, 0, 0},
	kUnsignedChar:         {"MPI_UNSIGNED_CHAR", mUint8, groupCInteger, 1, 1, 1, 0, 0},
	kWChar:                {"MPI_WCHAR", mInt32, groupNone, 4, 4, 2, 0, 0},
	kShort:                {"MPI_SHORT", mInt16, groupCInteger, 2, 2, 2, 0, 0},
	kUnsignedShort:        {"MPI_UNSIGNED_SHORT", mUint16, groupCInteger, 2, 2, 2, 0, 0},
	kInt:                  {"MPI_INT", mInt32, groupCInteger, 4, 4, 4, 0, 0},
	kUnsigned:             {"MPI_UNSIGNED", mUint32, groupCInteger, 4, 4, 4, 0, 0},
	kLong:                 {"MPI_LONG", mInt64, groupCInteger, 8, 8, 4, 0, 0},
	kUnsignedLong:         {"MPI_UNSIGNED_LONG", mUint64, groupCInteger, 8, 8, 4, 0, 0},
	kLongLong:             {"MPI_LONG_LONG", mInt64, groupCInteger, 8, 8, 8, 0, 0},
	kUnsignedLongLong:     {"MPI_UNSIGNED_LONG_LONG", mUint64, groupCInteger, 8, 8, 8, 0, 0},
	kInt8:                 {"MPI_INT8_T", mInt8, groupCInteger, 1, 1, 1, 0, 0},
	kInt16:                {"MPI_INT16_T", mInt16, groupCInteger, 2, 2, 2, 0, 0},
	kInt32:                {"MPI_INT32_T", mInt32, groupCInteger, 4, 4, 4, 0, 0},
	kInt64:                {"MPI_INT64_T", mInt64, groupCInteger, 8, 8, 8, 0, 0},
	kUint8:                {"MPI_UINT8_T", mUint8, groupCInteger, 1, 1, 1, 0, 0},
	kUint16:               {"MPI_UINT16_T", mUint16, groupCInteger, 2, 2, 2, 0, 0},
	kUint32:               {"MPI_UINT32_T", mUint32, groupCInteger, 4, 4, 4, 0, 0},
	kUint64:               {"MPI_UINT64_T", mUint64, groupCInteger, 8, 8, 8, 0, 0},
	kFloat:                {"MPI_FLOAT", mFloat32, groupFloat, 4, 4, 4, 0, 0},
	kDouble:               {"MPI_DOUBLE", mFloat64, groupFloat, 8, 8, 8, 0, 0},
	kLongDouble:           {"MPI_LONG_DOUBLE", mFloat80, groupFloat, 16, 16, 16, 0, 0},
	kCBool:                {"MPI_C_BOOL", mUint8, groupLogical, 1, 1, 1, 0, 0},
	kCFloatComplex:        {"MPI_C_FLOAT_COMPLEX", mComplex64, groupComplex, 8, 4, 8, 0, 0},
	kCDoubleComplex:       {"MPI_C_DOUBLE_COMPLEX", mComplex128, groupComplex, 16, 8, 16, 0, 0},
	kCLongDoubleComplex:   {"MPI_C_LONG_DOUBLE_COMPLEX", mComplex160, groupComplex, 32, 16, 32, 0, 0},
	kAint:                 {"MPI_AINT", mInt64, groupMultiLanguage, 8, 8, 8, 0, 0},
	kOffset:               {"MPI_OFFSET", mInt64, groupMultiLanguage, 8, 8, 8, 0, 0},
	kCount:                {"MPI_COUNT", mInt64, groupMultiLanguage, 8, 8, 8, 0, 0},
	kCXXBool:              {"MPI_CXX_BOOL", mUint8, groupLogical, 1, 1, 1, 0, 0},
	kCXXFloatComplex:      {"MPI_CXX_FLOAT_COMPLEX", mComplex64, groupComplex, 8, 4, 8, 0, 0},
	kCXXDoubleComplex:     {"MPI_CXX_DOUBLE_COMPLEX", mComplex128, groupComplex, 16, 8, 16, 0, 0},
	kCXXLongDoubleComplex: {"MPI_CXX_LONG_DOUBLE_COMPLEX", mComplex160, groupComplex, 32, 16, 32, 0, 0},
	kCharacter:            {"MPI_CHARACTER", mInt8, groupNone, 1, 1, 1, 0, 0},
	kLogical:              {"MPI_LOGICAL", mInt32, groupLogical, 4, 4, 4, 0, 0},
	kInteger:              {"MPI_INTEGER", mInt32, groupFortranInt, 4, 4, 4, 0, 0},
	kInteger1:             {"MPI_INTEGER1", mInt8, groupFortranInt, 1, 1, 1, 0, 0},
	kInteger2:             {"MPI_INTEGER2", mInt16, groupFortranInt, 2, 2, 2, 0, 0},
	kInteger4:             {"MPI_INTEGER4", mInt32, groupFortranInt, 4, 4, 4, 0, 0},
	kInteger8:             {"MPI_INTEGER8", mInt64, groupFortranInt, 8, 8, 8, 0, 0},
	kReal:                 {"MPI_REAL", mFloat32, groupFloat, 4, 4, 4, 0, 0},
	kReal4:                {"MPI_REAL4", mFloat32, groupFloat, 4, 4, 4, 0, 0},
	kReal8:                {"MPI_REAL8", mFloat64, groupFloat, 8, 8, 8, 0, 0},
	kDoublePrecision:      {"MPI_DOUBLE_PRECISION", mFloat64, groupFloat, 8, 8, 8, 0, 0},
	kComplex:              {"MPI_COMPLEX", mComplex64, groupComplex, 8, 4, 8, 0, 0},
	kComplex8:             {"MPI_COMPLEX8", mComplex64, groupComplex, 8, 4, 8, 0, 0},
	kComplex16:            {"MPI_COMPLEX16", mComplex128, groupComplex, 16, 8, 16, 0, 0},
	kDoubleComplex:        {"MPI_DOUBLE_COMPLEX", mComplex128, groupComplex, 16, 8, 16, 0, 0},
	kFloatInt:             {"MPI_FLOAT_INT", mPairFloat32, groupPair, 8, 4, 8, kFloat, kInt},
	kDoubleInt:            {"MPI_DOUBLE_INT", mPairFloat64, groupPair, 12, 8, 12, kDouble, kInt},
	kLongInt:              {"MPI_LONG_INT", mPairInt64, groupPair, 12, 8, 8, kLong, kInt},
	kShortInt:             {"MPI_SHORT_INT", mPairInt16, groupPair, 6, 4, 6, kShort, kInt},
	kTwoInt:               {"MPI_2INT", mPairInt32, groupPair, 8, 4, 8, kInt, kInt},
	kLongDoubleInt:        {"MPI_LONG_DOUBLE_INT", mPairFloat80, groupPair, 20, 16, 20, kLongDouble, kInt},
	kTwoReal:              {"MPI_2REAL", mPairFloat32s, groupPair, 8, 4, 8, kReal, kReal},
	kTwoDoublePrecision:   {"MPI_2DOUBLE_PRECISION", mPairFloat64s, groupPair, 16, 8, 16, kDoublePrecision, kDoublePrecision},
	kTwoInteger:           {"MPI_2INTEGER", mPairInt32, groupPair, 8, 4, 8, kInteger, kInteger},
	kInteger16:            {"MPI_INTEGER16", mWord128, groupNone, 16, 16, 16, 0, 0},
	kReal16:               {"MPI_REAL16", mWord128, groupNone, 16, 16, 16, 0, 0},
	kComplex32:            {"MPI_COMPLEX32", mWords128, groupNone, 32, 16, 32, 0, 0},
	Derived:               {"derived", 0, groupNone, 0, 0, 0, 0, 0},
}

// The predefined types (MPI 4.1, tables 3.1 to 3.4 and section 6.9.4). They are
// committed.
var (
	Byte                 = named(kByte)                 // MPI_BYTE
	Packed               = named(kPacked)               // MPI_PACKED
	Char                 = named(kChar)                 // MPI_CHAR
	SignedChar           = named(kSignedChar)           // MPI_SIGNED_CHAR
	UnsignedChar         = named(kUnsignedChar)         // MPI_UNSIGNED_CHAR
	WChar                = named(kWChar)                // MPI_WCHAR
	Short                = named(kShort)                // MPI_SHORT
	UnsignedShort        = named(kUnsignedShort)        // MPI_UNSIGNED_SHORT
	Int                  = named(kInt)                  // MPI_INT
	Unsigned             = named(kUnsigned)             // MPI_UNSIGNED
	Long                 = named(kLong)                 // MPI_LONG
	UnsignedLong         = named(kUnsignedLong)         // MPI_UNSIGNED_LONG
	LongLong             = named(kLongLong)             // MPI_LONG_LONG
	UnsignedLongLong     = named(kUnsignedLongLong)     // MPI_UNSIGNED_LONG_LONG
	Int8                 = named(kInt8)                 // MPI_INT8_T
	Int16                = named(kInt16)                // MPI_INT16_T
	Int32                = named(kInt32)                // MPI_INT32_T
	Int64                = named(kInt64)                // MPI_INT64_T
	Uint8                = named(kUint8)                // MPI_UINT8_T
	Uint16               = named(kUint16)               // MPI_UINT16_T
	Uint32               = named(kUint32)               // MPI_UINT32_T
	Uint64               = named(kUint64)               // MPI_UINT64_T
	Float                = named(kFloat)                // MPI_FLOAT
	Double               = named(kDouble)               // MPI_DOUBLE
	LongDouble           = named(kLongDouble)           // MPI_LONG_DOUBLE
	CBool                = named(kCBool)                // MPI_C_BOOL
	CFloatComplex        = named(kCFloatComplex)        // MPI_C_FLOAT_COMPLEX and MPI_C_COMPLEX
	CDoubleComplex       = named(kCDoubleComplex)       // MPI_C_DOUBLE_COMPLEX
	CLongDoubleComplex   = named(kCLongDoubleComplex)   // MPI_C_LONG_DOUBLE_COMPLEX
	Aint                 = named(kAint)                 // MPI_AINT
	Offset               = named(kOffset)               // MPI_OFFSET
	Count                = named(kCount)                // MPI_COUNT
	CXXBool              = named(kCXXBool)              // MPI_CXX_BOOL
	CXXFloatComplex      = named(kCXXFloatComplex)      // MPI_CXX_FLOAT_COMPLEX
	CXXDoubleComplex     = named(kCXXDoubleComplex)     // MPI_CXX_DOUBLE_COMPLEX
	CXXLongDoubleComplex = named(kCXXLongDoubleComplex) // MPI_CXX_LONG_DOUBLE_COMPLEX
	Character            = named(kCharacter)            // MPI_CHARACTER
	Logical              = named(kLogical)              // MPI_LOGICAL
	Integer              = named(kInteger)              // MPI_INTEGER
	Integer1             = named(kInteger1)             // MPI_INTEGER1
	Integer2             = named(kInteger2)             // MPI_INTEGER2
	Integer4             = named(kInteger4)             // MPI_INTEGER4
	Integer8             = named(kInteger8)             // MPI_INTEGER8
	Real                 = named(kReal)                 // MPI_REAL
	Real4                = named(kReal4)                // MPI_REAL4
	Real8                = named(kReal8)                // MPI_REAL8
	DoublePrecision      = named(kDoublePrecision)      // MPI_DOUBLE_PRECISION
	Complex              = named(kComplex)              // MPI_COMPLEX
	Complex8             = named(kComplex8)             // MPI_COMPLEX8
	Complex16            = named(kComplex16)            // MPI_COMPLEX16
	DoubleComplex        = named(kDoubleComplex)        // MPI_DOUBLE_COMPLEX
	FloatInt             = named(kFloatInt)             // MPI_FLOAT_INT
	DoubleInt            = named(kDoubleInt)            // MPI_DOUBLE_INT
	LongInt              = named(kLongInt)              // MPI_LONG_INT
	ShortInt             = named(kShortInt)             // MPI_SHORT_INT
	TwoInt               = named(kTwoInt)               // MPI_2INT
	LongDoubleInt        = named(kLongDoubleInt)        // MPI_LONG_DOUBLE_INT
	TwoReal              = named(kTwoReal)              // MPI_2REAL
	TwoDoublePrecision   = named(kTwoDoublePrecision)   // MPI_2DOUBLE_PRECISION
	TwoInteger           = named(kTwoInteger)           // MPI_2INTEGER
	Integer16            = named(kInteger16)            // MPI_INTEGER16
	Real16               = named(kReal16)               // MPI_REAL16
	Complex32            = named(kComplex32)            // MPI_COMPLEX32
)

// predefinedTypes has them by kind.
var predefinedTypes = [Derived]*Type{
	Byte, Packed, Char, SignedChar, UnsignedChar, WChar, Short, UnsignedShort, Int, Unsigned, Long, UnsignedLong,
	LongLong, UnsignedLongLong, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float, Double, LongDouble,
	CBool, CFloatComplex, CDoubleComplex, CLongDoubleComplex, Aint, Offset, Count, CXXBool, CXXFloatComplex,
	CXXDoubleComplex, CXXLongDoubleComplex, Character, Logical, Integer, Integer1, Integer2, Integer4, Integer8,
	Real, Real4, Real8, DoublePrecision, Complex, Complex8, Complex16, DoubleComplex,
	FloatInt, DoubleInt, LongInt, ShortInt, TwoInt, LongDoubleInt, TwoReal, TwoDoublePrecision, TwoInteger,
	Integer16, Real16, Complex32,
}

// named makes the predefined type of a kind.
func named(k Kind) *Type {
	t := &Type{shape: element(k), kind: k, made: Contents{Combiner: CombinerNamed}, committed: true}
	if kinds[k].group == groupPair {
		t.shape = join([]shape{element(kinds[k].first), element(kinds[k].second).move(secondAt(k))})
		t.of = k
	}
	t.dense = t.denseSize()
	return t
}

func element(k Kind) shape {
	info := &kinds[k]
	return shape{size: info.size, align: info.align, of: k, trueUB: info.size, prog: placed{nd: block(info.size)}, sig: run(k, 1)}
}

// secondAt returns where the second part of a pair lies: a C compiler aligns
// it.
func secondAt(k Kind) int {
	first, second := kinds[kinds[k].first], kinds[kinds[k].second]
	return (first.size + second.align - 1) / second.align * second.align
}

// Type returns the predefined type of a kind, nil for [Derived].
func (k Kind) Type() *Type {
	if k >= Derived {
		return nil
	}
	return predefinedTypes[k]
}
