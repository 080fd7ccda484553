// Package check decides whether the verbs do what they promise on a network
// that does its worst. A [Model] knows, from the specification alone, what
// each posted work request may and must do to completions and to memory; a
// workload drives the real thing in the simulator and tells the model what it
// saw. Run one seed with [Run]; cmd/xcheck runs thousands.
//
// The model is written from the documentation of package verbs, the meanings
// of libibverbs, and RFC 5040, 5041 and 7306. It shares no code with what it
// checks, and its own tests feed it false observations, each of which it must
// notice: a checker that lets a lie pass proves nothing.
//
// # What is checked
//
//   - A message is delivered once, in order per association, unchanged, to one
//     life of one host, and never after a later association of its sender.
//   - A work request completes once, in posting order per peer, when it was
//     signalled or failed. Success means that its effect has happened.
//   - Memory that peers may write holds at each byte something that a request
//     was allowed to leave there; memory around it never changes.
//   - A Read returns what was there between its posting and its completion,
//     what was written before included.
//   - Atomics on a word can be put in one order that explains all that was
//     returned.
//   - What was not granted, or no longer, is refused and changes nothing.
//   - Unreliable datagrams arrive whole or not at all, and no more often than
//     the network can have doubled them. The validity map of a Write-Record
//     claims only what is there.
//   - When the network is whole again everything ends: no lost completion, no
//     buffer that was not given back, no hang.
package check
