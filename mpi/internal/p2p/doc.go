// Package p2p moves MPI messages between ranks over one reliable datagram
// queue pair.
//
//	eager       envelope + data in one Send. Up to 240 bytes inline, above
//	            that from a registered buffer of our own, so that the sender's
//	            memory is free when the call returns.
//	rendezvous  RTS ->  the receiver finds the matching receive
//	            <- CTS  key, address and size of its buffer
//	            Write, FIN ->  data straight from memory to memory; the FIN is
//	            ordered after it. What a datatype picks out is packed into
//	            buffers of our own and written from there
//	read        rendezvous the other way round, if Config.Rendezvous says so: the
//	            RTS lends the sender's memory, and the receiver reads it (read.go)
//	stream      rendezvous with a receiver that has to unpack: its CTS asks for
//	            a series of messages instead of Writes
//	channel        to ranks on the same host the same messages go through shared
//	            memory; of a long one the RTS says where it lies, and the
//	            receiver copies it from there (channel.go)
//	self        a copy, or for large messages a reference until the receive
//	            is posted
//
// Everything here happens inside a call of the rank's own thread; there is no
// other. An [Endpoint] is a progress.Source: it reads its completion queue
// after the queue pair has done its part of the step.
//
// Files: wire.go the bytes, request.go what the user waits for, send.go and
// recv.go the two halves, split.go messages in pieces, pending.go what waits for room, unexpected.go what nobody
// has asked for yet, rendezvous.go large messages, poll.go what comes back from
// verbs, notice.go words of our own, failure.go lost peers, group.go communicators
// that lose ranks or are revoked, agreement.go what their ranks agree on, drain.go
// the end.
package p2p
