package dtype

import "fmt"

// Class says what kind of error an [Error] is. Each has an error class of MPI,
// which its comment names (MPI 4.1, section 9.4).
type Class int

// Classes of errors.
const (
	InvalidBuffer    Class = iota // MPI_ERR_BUFFER
	InvalidCount                  // MPI_ERR_COUNT
	InvalidType                   // MPI_ERR_TYPE
	InvalidOp                     // MPI_ERR_OP
	InvalidArgument               // MPI_ERR_ARG
	InvalidDims                   // MPI_ERR_DIMS
	Truncated                     // MPI_ERR_TRUNCATE
	ConversionFailed              // MPI_ERR_CONVERSION
)

var classNames = [...]string{
	InvalidBuffer: "invalid buffer", InvalidCount: "invalid count", InvalidType: "invalid datatype",
	InvalidOp: "invalid operation", InvalidArgument: "invalid argument", InvalidDims: "invalid dimensions",
	Truncated: "truncated", ConversionFailed: "conversion failed",
}

func (c Class) String() string { return classNames[c] }

// Error is what every function of this package returns when it fails.
type Error struct {
	Class  Class
	Op     string // the call: "Vector", "Pack_external", ...
	Detail string // what is wrong, and what to do
}

func (e *Error) Error() string {
	return "datatype: " + e.Op + ": " + e.Class.String() + ": " + e.Detail
}

func fail(class Class, op, format string, args ...any) error {
	return &Error{Class: class, Op: op, Detail: fmt.Sprintf(format, args...)}
}
