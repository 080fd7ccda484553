package mpi

import "github.com/xwarp/xwarp/mpi/internal/dtype"

// The predefined datatypes (MPI 4.1, tables 3.1 to 3.4 and section 6.9.4), with
// the sizes of C and Fortran on 64-bit Linux. They are committed. The ones of
// Go's own types are what [TypeOf] returns: MPI_INT64_T for int and int64,
// MPI_DOUBLE for float64, and so on.
var (
	TypeByte                 = Datatype{dtype.Byte}                 // MPI_BYTE
	TypePacked               = Datatype{dtype.Packed}               // MPI_PACKED
	TypeChar                 = Datatype{dtype.Char}                 // MPI_CHAR
	TypeSignedChar           = Datatype{dtype.SignedChar}           // MPI_SIGNED_CHAR
	TypeUnsignedChar         = Datatype{dtype.UnsignedChar}         // MPI_UNSIGNED_CHAR
	TypeWChar                = Datatype{dtype.WChar}                // MPI_WCHAR
	TypeShort                = Datatype{dtype.Short}                // MPI_SHORT
	TypeUnsignedShort        = Datatype{dtype.UnsignedShort}        // MPI_UNSIGNED_SHORT
	TypeInt                  = Datatype{dtype.Int}                  // MPI_INT
	TypeUnsigned             = Datatype{dtype.Unsigned}             // MPI_UNSIGNED
	TypeLong                 = Datatype{dtype.Long}                 // MPI_LONG
	TypeUnsignedLong         = Datatype{dtype.UnsignedLong}         // MPI_UNSIGNED_LONG
	TypeLongLong             = Datatype{dtype.LongLong}             // MPI_LONG_LONG
	TypeUnsignedLongLong     = Datatype{dtype.UnsignedLongLong}     // MPI_UNSIGNED_LONG_LONG
	TypeInt8                 = Datatype{dtype.Int8}                 // MPI_INT8_T
	TypeInt16                = Datatype{dtype.Int16}                // MPI_INT16_T
	TypeInt32                = Datatype{dtype.Int32}                // MPI_INT32_T
	TypeInt64                = Datatype{dtype.Int64}                // MPI_INT64_T
	TypeUint8                = Datatype{dtype.Uint8}                // MPI_UINT8_T
	TypeUint16               = Datatype{dtype.Uint16}               // MPI_UINT16_T
	TypeUint32               = Datatype{dtype.Uint32}               // MPI_UINT32_T
	TypeUint64               = Datatype{dtype.Uint64}               // MPI_UINT64_T
	TypeFloat                = Datatype{dtype.Float}                // MPI_FLOAT
	TypeDouble               = Datatype{dtype.Double}               // MPI_DOUBLE
	TypeLongDouble           = Datatype{dtype.LongDouble}           // MPI_LONG_DOUBLE
	TypeCBool                = Datatype{dtype.CBool}                // MPI_C_BOOL
	TypeCFloatComplex        = Datatype{dtype.CFloatComplex}        // MPI_C_FLOAT_COMPLEX and MPI_C_COMPLEX
	TypeCDoubleComplex       = Datatype{dtype.CDoubleComplex}       // MPI_C_DOUBLE_COMPLEX
	TypeCLongDoubleComplex   = Datatype{dtype.CLongDoubleComplex}   // MPI_C_LONG_DOUBLE_COMPLEX
	TypeAint                 = Datatype{dtype.Aint}                 // MPI_AINT
	TypeOffset               = Datatype{dtype.Offset}               // MPI_OFFSET
	TypeCount                = Datatype{dtype.Count}                // MPI_COUNT
	TypeCXXBool              = Datatype{dtype.CXXBool}              // MPI_CXX_BOOL
	TypeCXXFloatComplex      = Datatype{dtype.CXXFloatComplex}      // MPI_CXX_FLOAT_COMPLEX
	TypeCXXDoubleComplex     = Datatype{dtype.CXXDoubleComplex}     // MPI_CXX_DOUBLE_COMPLEX
	TypeCXXLongDoubleComplex = Datatype{dtype.CXXLongDoubleComplex} // MPI_CXX_LONG_DOUBLE_COMPLEX
	TypeCharacter            = Datatype{dtype.Character}            // MPI_CHARACTER
	TypeLogical              = Datatype{dtype.Logical}              // MPI_LOGICAL
	TypeInteger              = Datatype{dtype.Integer}              // MPI_INTEGER
	TypeInteger1             = Datatype{dtype.Integer1}             // MPI_INTEGER1
	TypeInteger2             = Datatype{dtype.Integer2}             // MPI_INTEGER2
	TypeInteger4             = Datatype{dtype.Integer4}             // MPI_INTEGER4
	TypeInteger8             = Datatype{dtype.Integer8}             // MPI_INTEGER8
	TypeReal                 = Datatype{dtype.Real}                 // MPI_REAL
	TypeReal4                = Datatype{dtype.Real4}                // MPI_REAL4
	TypeReal8                = Datatype{dtype.Real8}                // MPI_REAL8
	TypeDoublePrecision      = Datatype{dtype.DoublePrecision}      // MPI_DOUBLE_PRECISION
	TypeComplex              = Datatype{dtype.Complex}              // MPI_COMPLEX
	TypeComplex8             = Datatype{dtype.Complex8}             // MPI_COMPLEX8
	TypeComplex16            = Datatype{dtype.Complex16}            // MPI_COMPLEX16
	TypeDoubleComplex        = Datatype{dtype.DoubleComplex}        // MPI_DOUBLE_COMPLEX
	TypeFloatInt             = Datatype{dtype.FloatInt}             // MPI_FLOAT_INT
	TypeDoubleInt            = Datatype{dtype.DoubleInt}            // MPI_DOUBLE_INT
	TypeLongInt              = Datatype{dtype.LongInt}              // MPI_LONG_INT
	TypeShortInt             = Datatype{dtype.ShortInt}             // MPI_SHORT_INT
	TypeTwoInt               = Datatype{dtype.TwoInt}               // MPI_2INT
	TypeLongDoubleInt        = Datatype{dtype.LongDoubleInt}        // MPI_LONG_DOUBLE_INT
	TypeTwoReal              = Datatype{dtype.TwoReal}              // MPI_2REAL
	TypeTwoDoublePrecision   = Datatype{dtype.TwoDoublePrecision}   // MPI_2DOUBLE_PRECISION
	TypeTwoInteger           = Datatype{dtype.TwoInteger}           // MPI_2INTEGER
	TypeInteger16            = Datatype{dtype.Integer16}            // MPI_INTEGER16, which no operation reduces
	TypeReal16               = Datatype{dtype.Real16}               // MPI_REAL16, as well
	TypeComplex32            = Datatype{dtype.Complex32}            // MPI_COMPLEX32, as well
)
