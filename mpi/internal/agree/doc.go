// Package agree lets the ranks of a communicator agree on a vector of bits,
// also while some of them die: the heart of MPI's fault tolerance (ULFM), on
// which MPI_Comm_agree and MPI_Comm_shrink stand.
//
// # What is promised
//
// All ranks begin the same agreement, each with bits of its own. A decision is
// the AND of the bits of all ranks that live, and possibly of some that died
// meanwhile; the first bits of it, one for each rank, say which were alive.
//
//   - Termination: as long as one rank lives, all that live decide.
//   - Uniform agreement: no two ranks decide differently, not even when one of
//     them dies right after it has decided.
//   - Validity: only bits of ranks that began are in the decision; a rank that
//     lives, or dies after the decision, has its bits in it.
//
// # What is assumed
//
// Messages between two live ranks arrive once and in order. Losses are told
// sooner or later to all, and are true: a rank that is called lost takes part no more,
// and nothing from it is handed to Receive afterwards. (A rank that is only slow
// is made to fit: package p2p ends a rank that is told of its own loss.)
//
// # How
//
// It is three-phase commit (Skeen: Nonblocking Commit Protocols, SIGMOD 1981)
// with the lowest live rank as the coordinator, as in the agreements of
// MPI_Comm_validate (Hursey, Naughton, Vallee, Graham: A Log-Scaling Fault
// Tolerant Agreement Algorithm for a Fault Tolerant MPI, EuroMPI 2011; Buntinas:
// Scalable Distributed Consensus to Support MPI Fault Tolerance, IPDPS 2012):
//
//	all    -> coordinator   Contribute: my bits
//	coordinator -> all      Propose:    the AND of them
//	all    -> coordinator   Lock:       I hold the proposal
//	coordinator -> all      Decide
//
// When the coordinator dies, every rank tells the next one what it holds: its
// contribution, the proposal that it has locked, or the decision. The new
// coordinator waits for word from all that live, takes a proposal that it is told
// of for its own, and goes on from there. A decision was sent only after all
// that lived held the same proposal, so every later coordinator is told of it.
//
// It costs 4(p-1) messages and four latencies, all through one rank; ERA
// (Herault et al., SC 2015) goes along a tree, which pays from hundreds of ranks
// on.
package agree
