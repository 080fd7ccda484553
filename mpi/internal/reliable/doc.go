// Package reliable makes messages and RDMA Writes over an unreliable datagram
// queue pair arrive once and in order (MPI over UD with reliability of its own,
// after Rashti, "Improving Message-Passing Performance and Scalability in
// High-Performance Clusters", Queen's University 2010, section 6.6.1).
//
// A message is cut into packets, a Write into chunks, so that each fits one
// datagram. Packets and chunks to one peer are numbered in one sequence (PSN). A
// packet is a Send with a header in front; a chunk is a Write-Record whose number
// is its PSN, and whose completion at the target tells which one has been
// placed. Nothing behind a gap is delivered before the gap is filled, so a
// message that follows a Write finds the Write done.
//
//	PostSend --> line of requests --cut--> window (internal/proto/arq) --> UD queue pair
//	   ^                                     |  ^
//	completion <---- acknowledged -----------+  +-- lost: cut again from the source
//
//	UD queue pair --> packet: in order?  yes --> message --> completion
//	             \--> chunk              no  --> held until the gap is filled
//
// Acknowledgements are cumulative and selective, ride on packets, or go alone
// after a delay. The memory of a request is its own until it is acknowledged, and
// what is lost is read from there again; inline data are copied.
//
// What is not MPI's own is that of RD too: windows, timers, keep-alive and the loss of a
// peer are those of llp.Assocs.
//
// protocol*.go, conn.go and wire.go are sans-I/O: packets and the time in, packets and
// completions out. queue_pair.go, emit.go and take.go speak verbs.
package reliable
