// Package rma is one-sided communication (MPI 4.1, chapter 12) below its types: windows
// with bytes at offsets, epochs, the locks of a target, and the operations.
//
// What is one piece of memory on both sides and goes through the network is an RDMA
// Write, or an RDMA Read when it is long. Everything else is active messages
// (p2p.Active): a message says what is to be done with which ranges of the target's
// memory, and the target, or its ghost, does it in its next step, whatever its rank has called. Reads
// and short Gets cost the same, for the target's processor serves both.
//
// What completes what: messages and Writes to one rank are taken in in the order in which
// they were posted, and a Write is placed when the message behind it is handled. So one
// word behind the operations of an epoch, flush, unlock or complete, covers all of them,
// and its answer says that they are in the target's memory. The completion of a Write by
// itself says that of a Write over reliable datagrams, where an acknowledgement is sent
// for what was placed, but only that the memory is free again over TCP; it is used for
// nothing else anywhere. A Read is complete with its data.
//
// Atomicity and order of accumulates (section 12.7.1) follow: all accumulates on the
// memory of a rank are done by that rank, or by its ghost, those from itself too, one after the other, and
// those of one origin in its order; or by atomic instructions, where ranks of a host have
// memory in common (shared.go). What is one word of 8 bytes may be an atomic of verbs, which the
// engine of that same process does (verbs.go).
//
// Ghosts are processes that serve memory of the ranks of their host instead of these. Which
// process serves a target is looked up in one place (target.world); what does it is the same code
// (server).
//
// All is called inside (see p2p.Endpoint.Inside), and waits there.
package rma
