package p2p

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// kind is the first byte of everything that is sent.
type kind uint8

const (
	kindEager    kind = iota + 1 // a message; data follows
	kindRTS                      // request to send: a large message is waiting
	kindCTS                      // clear to send: write it there
	kindFIN                      // it was written
	kindLost                     // ranks are lost
	kindBye                      // no more messages will follow
	kindData                     // a piece of a large message, in a stream
	kindCut                      // the connection beside datagrams is of no use any more
	kindRevoke                   // the communicator is revoked
	kindAgree                    // of an agreement of the communicator
	kindPace                     // send no more without asking, or do again
	kindBatch                    // several short messages
	kindHead                     // the beginning of a message, whose rest follows
	kindRest                     // the next bytes of it
	kindRecall                   // the memory that an RTS has lent is wanted back
	kindActive                   // for the handler of the communicator
	kindRouse                    // memory that both have mapped has changed
	kindLinked                   // a message whose data goes over the connection beside datagrams
	kindHave                     // how many of those are here
	kindAgain                    // data of theirs, for the connection is broken
	kindDelegate                 // to a ghost: a large message that it is to send
	kindClaim                    // to a ghost: a CTS for what a sender has delegated to it
	kindShare                    // to a ghost: memory that it is to send from
	kindShared                   // the answer
	kindUnshare                  // to a ghost: no more
	kindInvite                   // a CTS before its time: write it there, where a ghost has the memory
	kindWhole                    // a message over the connection beside datagrams, of which no datagram tells
	kindPlaced                   // a ghost has written what a sender has delegated to it where the receiver has said
	kindSync                     // a message that the receiver answers when a receive meets it; data follows
	kindEnd
)

// Version is the version of the bytes below. Ranks compare it before they
// talk.
const Version = 18

// Every Send starts with 16 bytes, numbers in network order:
//
//	 0       1       2       4               8              12
//	+-------+-------+-------+---------------+---------------+---------------+
//	| kind  |   0   |context| source rank   | tag           | id            |
//	+-------+-------+-------+---------------+---------------+---------------+
//
// and goes on with
//
//	eager  data up to the end
//	sync   likewise; id is the sender's request. The answer, when a receive has met it, is a FIN
//	       with that id
//	RTS    length (8); id is the sender's request; through a channel, where the
//	       message lies: address (8), 0 if it cannot be read there, and that of
//	       its guard (8); through the network, if it may be read, its remote
//	       key (4) and address (8), or, if a ghost sends it, that (4) and its number
//	       among all that the sender has delegated (4)
//	CTS    receiver's request (4), remote key (4), address (8), size (8);
//	       id is the sender's request, context its; tag is 0, or 1 to ask for a stream,
//	       and then key and address are 0; then, if the RTS named a ghost, the number of the message (4)
//	FIN    nothing; id is the receiver's request, tag is 0, or 1 when the
//	       sender could not write. Or the receiver has copied or read what an
//	       RTS offered, or will not read it, or a receive has met a sync, and id is the sender's request; the tag
//	       is 2 when it has dropped the message, as a recall wanted. To a ghost with
//	       tag 3: it answers with a FIN of this id. With tag 4 the sender has let go of
//	       an invite; id is the receiver's request
//	       Over a connection beside datagrams: the sender's request (4); the answer
//	       is a FIN with that as its id, in a datagram. The tag is 5 behind a Write that
//	       no receive waits for
//	lost   all ranks that are lost (4 each); tag is how many bytes are
//	       still to come in further messages
//	bye    nothing
//	data   the next bytes of the message; id is the receiver's request
//	cut    nothing
//	revoke nothing
//	pace   nothing; tag is 1 to ask that all messages begin with an RTS, 0 to
//	       end that
//	agree  a piece of: kind (1), number (4), bits (package agree); tag is how
//	       many bytes are still to come
//	batch  messages, each of them with length (2), context (2), tag (4) in front
//	head   the first bytes of the message; id is how many there are in all
//	rest   the next ones, up to the end of the message whose head came last
//	recall nothing; id is the sender's request; tag is 0, or 1 when no receive shall
//	       meet the message any more: if one has, there is no answer; to a ghost 2 when
//	       no rank waits for the answer. With tag 3 of an invite; id is the receiver's request
//	rouse  nothing
//	linked number of the message among all whose data goes over the connection (4); id is its
//	       length (24 bits), and 1 above (8 bits) to ask for a have as soon as it is whole
//	whole  over the connection: how many messages of the receiver have come that way (4), flags (4):
//	       1 to ask for a have, 2 if the sender looks at the connection when it waits for a long
//	       message; then data up to the end. id is how many messages the sender has sent to the
//	       receiver before it, whichever way. A data message there has flags in its tag; with 4 alone it
//	       is the next bytes of a stream, as in a datagram
//	have   nothing; id is how many messages have come whole over the connection, ever; tag is flags
//	again  the next bytes of the linked messages that have not come
//	delegate key of the memory (4), number (4), offset (8), length (8), receiver's rank (4), tag (4), and how
//	       many messages without an RTS (4) and with one (4) this rank has sent there up to it, in contexts as
//	       even as this one; id is the sender's request, context that of the message
//	claim  what a CTS has, the sender's rank (4), number (4). The answer is the data and a
//	       FIN, or a FIN with tag 1: the sender is to be asked
//	share  number (8) and bytes (8) of a segment of this rank; id is the number of the share
//	shared key of the memory (4), or 0: it is not mapped; address (8); id is that number
//	unshare nothing; id is the key
//	invite messages without an RTS (4) and with one (4) that the receiver has seen of the
//	       sender in contexts as even as this one; ghost (4), key (4), address (8), size (8)
//	       of the memory; the sender's request (4) if its RTS has come, else nothing; id is
//	       the receiver's request, context and tag are those of the message. To the sender's ghost: the
//	       sender's rank (4) behind size
//	placed nothing; tag is the number of a message, its lower 31 bits. A ghost says that it has written it:
//	       to the receiver and to the sender, id is their request. The receiver says that it knows: id is the
//	       sender's request, or 0
//	active what the handler wants; tag and id too (package rma)
const (
	headerLen = 16
	rtsLen    = headerLen + 8
	ctsLen    = headerLen + 24

	finFailed    = 1 // tags of a FIN
	finCancelled = 2
	finAsks      = 3
	finRetracted = 4
	finAlone     = 5
	ctsStream    = 1 // tag of a CTS
	recallCancel = 1 // tags of a recall
	recallDrop   = 2
	recallInvite = 3
)

// header is the common part of all kinds.
type header struct {
	kind    kind
	context uint32
	source  int32
	tag     int32
	id      uint32
	near    bool // it came through a channel; not on the wire
}

func (h *header) put(b []byte) { h.pack().put(b) }

// pack returns the header as it goes over the wire.
func (h *header) pack() front {
	return front{uint64(h.kind)<<56 | uint64(uint16(h.context))<<32 | uint64(uint32(h.source)), uint64(uint32(h.tag))<<32 | uint64(h.id)}
}

// front is a header in two words.
type front struct{ first, second uint64 }

func (h front) put(b []byte) {
	_ = b[headerLen-1]
	binary.BigEndian.PutUint64(b, h.first)
	binary.BigEndian.PutUint64(b[8:], h.second)
}

// minLen is how long a message of each kind is at least.
var minLen = [kindEnd]int{
	kindEager: headerLen, kindSync: headerLen, kindRTS: rtsLen, kindCTS: ctsLen,
	kindFIN: headerLen, kindLost: headerLen, kindBye: headerLen, kindData: headerLen, kindCut: headerLen,
	kindRevoke: headerLen, kindAgree: headerLen, kindPace: headerLen, kindBatch: headerLen, kindHead: headerLen, kindRest: headerLen,
	kindRecall: headerLen, kindActive: headerLen, kindLinked: headerLen + linkedLen, kindWhole: headerLen + wholeLen, kindHave: headerLen, kindAgain: headerLen,
	kindDelegate: headerLen + delegateLen, kindClaim: claimLen,
	kindShare: headerLen + shareLen, kindShared: headerLen + sharedLen, kindUnshare: headerLen, kindInvite: headerLen + inviteLen, kindPlaced: headerLen,
}

// parse reads and checks a header. size is the number of ranks. false means
// that b was not sent by our code.
func (h *header) parse(b []byte, size int) bool {
	if len(b) < headerLen {
		return false
	}
	first, second := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]) // read once: what lies in shared memory may change
	h.kind = kind(first >> 56)
	if h.kind == 0 || h.kind >= kindEnd || len(b) < minLen[h.kind] {
		return false
	}
	h.context, h.source = uint32(uint16(first>>32)), int32(first)
	h.tag, h.id = int32(second>>32), uint32(second)
	return h.source >= 0 && int(h.source) < size && h.tag >= 0
}

func (h *header) envelope() match.Envelope {
	return match.Envelope{Context: h.context, Source: h.source, Tag: h.tag}
}

// grant is what a CTS carries beyond the header.
type grant struct {
	request uint32 // the receiver's
	rkey    uint32
	addr    uint64
	size    uint64 // bytes of room
	stream  bool   // data messages instead of Writes; told by the tag of the header
	linked  bool   // the data goes over the connection beside datagrams; receives: some of a stream has come there
	timed   bool   // sends: counts in its linkTuner
	expects bool   // counts in CMChannel.Expect
	looks   bool   // receives: likewise, for a message that may come over the connection
	joint   uint8  // receives: the copy that the sender has a part in (shm.Channel.Join); 0: none
}

func (g *grant) put(b []byte) {
	_ = b[ctsLen-1]
	binary.BigEndian.PutUint32(b[headerLen:], g.request)
	binary.BigEndian.PutUint32(b[headerLen+4:], g.rkey)
	binary.BigEndian.PutUint64(b[headerLen+8:], g.addr)
	binary.BigEndian.PutUint64(b[headerLen+16:], g.size)
}

func (g *grant) get(b []byte) {
	_ = b[ctsLen-1]
	g.request = binary.BigEndian.Uint32(b[headerLen:])
	g.rkey = binary.BigEndian.Uint32(b[headerLen+4:])
	g.addr = binary.BigEndian.Uint64(b[headerLen+8:])
	g.size = binary.BigEndian.Uint64(b[headerLen+16:])
}
