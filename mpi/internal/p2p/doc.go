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
// An Endpoint is made of parts with a state of their own, which use one another's methods:
//
//	sender      brings messages to the transport of their peer, in order, and decides
//	            which begin without an RTS: send.go, pending.go, notice.go
//	network     queue pairs and their buffers: network.go, ud.go, rc.go, hybrid.go
//	neighbours  channels of shared memory: channel.go, channel_tune.go
//	matching    messages and receives: recv.go, unexpected.go, message.go
//	rendezvous  long messages, and how each crosses (clear): rendezvous.go
//	reads, pulls, pieces   the other ways: read.go, channel_pull.go; split.go, idle_tune.go
//	poller      what arrives and completes: poll.go; wire.go has the bytes
//	driver      what a goroutine does that waits: driver.go, progress_lock.go, waits.go
//	requestPool what the user waits for: request.go, queue.go
//	groups      communicators and their agreements: group.go, agreement.go
//	failures    lost ranks: failure.go
//
// network and neighbours know nothing of the other parts, but for what they count. Both
// append to a batch (batch.go) when messages follow one another.
package p2p
