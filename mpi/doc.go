// Package mpi is MPI in Go: the names and meanings of MPI 4.1, typed slices where
// slices do, datatypes where they do not, errors instead of error handlers.
//
// A first program, to be started by xrun -n 4:
//
//	func main() {
//		p, err := mpi.Init()
//		if err != nil {
//			log.Fatal(err)
//		}
//		c := p.World()
//		part := []float64{work(c.Rank(), c.Size())}
//		if err := mpi.Allreduce(c, mpi.InPlace[float64](), part, mpi.Sum); err != nil {
//			log.Fatal(err)
//		}
//		if c.Rank() == 0 {
//			fmt.Println("the ranks together:", part[0])
//		}
//		if err := p.Finalize(); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// [Run] runs the ranks as goroutines of one process, for tests.
//
// # Messages
//
// Operations that communicate are functions of slices ([Send], [Recv], [Bcast],
// ...), because Go has no generic methods; all others are methods of [Comm]. Buffers
// are slices of any numeric type and belong to the operation from the call to
// its end: for Isend and Irecv that is when Wait or Test says so. Counts need
// not be equal on both sides, but a message that is longer than the receive
// buffer is an error. Ranks must agree on the types; they are not sent along.
//
// Messages move inside calls of this package, as in every fast MPI. A rank
// that computes for long makes those wait that send to it large messages.
//
// docs/MPI.md has MPI's procedures by name, and what does their work here.
//
// # Data
//
// Each function of slices has a method of [Comm] beside it that takes [Data]:
// elements of a [Datatype], wherever they lie in memory. Structures are one use,
// pieces of arrays the other. This sends the third column of a matrix of float64,
// which has so many rows and columns, and then a slice of structures:
//
//	column, err := mpi.TypeVector(rows, 1, columns, mpi.TypeDouble)
//	...
//	err = column.Commit()
//	...
//	err = c.Send(mpi.Typed(matrix[2:], 1, column), dest, tag)
//
//	type particle struct { Position, Velocity [3]float64; Kind int32 }
//	particles, err := mpi.TypeOf[particle]()
//	...
//	err = c.Send(particles.Slice(leaving), dest, tag)
//
// Datatypes are made once and kept. No message needs reflection, and none is packed
// as a whole on its way: the pieces go right into the buffers that frames leave from.
// Reductions of data take an [Operation]: [OpSum] and so on, which see the elements
// that datatypes are made of, or functions of structures ([Plain.Operation]).
//
// # Collectives
//
// All ranks of a communicator call the same collectives in the same order. Each
// comes in three forms: [Bcast] returns when it is done here; [Ibcast] returns a
// [Request] at once, and several may be under way at a time; [BcastInit] prepares
// it to be started many times. A send buffer nil, or the zero [Data], says that it is
// in place; one that shares memory with the receive buffer is an error of class
// ErrBuffer.
// Operations of reductions commute unless the call says [NonCommutative].
// Nonblocking collectives go on in every call of the rank that waits for anything.
//
// # Errors
//
// Every error is an [*Error] with the class that MPI gives it; [ClassOf] finds
// it. Wrong arguments change nothing. When a rank is lost, every operation
// that needs it fails with class ErrProcFailed and its number: sends to it,
// receives from it, and the collectives of communicators that it is in. Receives
// from any source of such a communicator wait for [Comm.AckFailed]. All else goes
// on. Finalize does not wait for a lost rank.
//
// By default xrun ends a job when a rank dies. Programs that want to survive run
// with xrun --disable-auto-cleanup, and have [Comm.Revoke], [Comm.Agree] and
// [Comm.Shrink] to come together again: ULFM, see examples/ulfm. [RunEach] is for
// their tests.
//
// # Sessions
//
// A [Session] is one use of MPI by a part of a program, apart from the world model and
// from other sessions: it makes communicators of process sets, and no other
// communicator is needed for that. [SessionInit] is for programs that have nothing
// else.
//
// # Goroutines
//
// One goroutine at a time may use a [Proc] and what belongs to it
// (MPI_THREAD_SERIALIZED), or any number of them after [InitThread]. Messages move
// in the goroutines that call, then too: there is none of our own.
package mpi
