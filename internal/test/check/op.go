package check

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// Life is one incarnation of a host's endpoint: a context from New to Close.
type Life struct {
	Host, N int

	ended  mono.Time           // when its context was closed; Never until then
	newest map[int]*Stream     // by sending host: the last stream that delivered something
	recvs  map[uint64]struct{} // posted, not completed
	loose  []*Op               // posted, and on no stream
}

func (l *Life) String() string { return fmt.Sprintf("host %d life %d", l.Host, l.N) }

// Stream is what one life posts to one address handle: an association. It
// reaches one life of the other host at most.
type Stream struct {
	From *Life
	To   int // host

	num    int   // in the order in which From's host began them
	bound  *Life // the life that it has reached, as far as deliveries tell
	ops    []*Op // in posting order
	next   int   // ops before this one are known to have ended
	failed *Op   // the first that failed
	wrong  *Op   // the first that must be refused
	msgs   []*Op // of ops: those that consume a receive
	heard  int   // of msgs: delivered
	closed bool  // nothing more will be posted or completed
}

func (s *Stream) String() string { return fmt.Sprintf("stream %d %v -> host %d", s.num, s.From, s.To) }

// Op is a work request as the model knows it.
type Op struct {
	ID       uint64 // never 0, unique in the run: WRID, and seed of the payload
	Code     verbs.Opcode
	Life     *Life   // who posted it
	Stream   *Stream // nil on a UD queue pair, and for what concerns no peer
	Len      int     // bytes of payload
	Signaled bool
	Fence    bool
	Solicit  bool
	Grant    *Grant // one-sided operations: the key that was used
	Off      int    // and where in the region
	Cell     int    // atomics: number of the word in the region
	Compare  uint64 // OpAtomicCmpAndSwp
	Inv      *Grant // OpSendWithInv, OpLocalInv; OpBindMW: what is bound
	Imm      uint64
	Wrong    string // why it must be refused, whatever else happens; "" when it need not
	Partly   bool   // with Wrong: what of it lies inside may be written (RFC 5041 judges segments)
	ToHost   int    // UD; -1: all that are in the group
	ToQP     uint32 // UD

	pos    int // in Stream.ops
	msg    int // in Stream.msgs, or -1
	posted mono.Time
	ended  mono.Time     // when its end was known; Never until then
	done   bool          // it has had its completion, or needs none any more
	ok     bool          // done, and with success
	placed mono.Time     // from when on its effect is known to be in memory; Never until then
	copies map[*Life]int // UD: how often it arrived where
	chunks []verbs.Range // of a Write-Record on a reliable queue pair: what completions have claimed
	view   *view         // Reads: what may be returned
}

func (o *Op) String() string {
	s := fmt.Sprintf("%v #%x of %d bytes", o.Code, o.ID, o.Len)
	if o.Stream != nil {
		s += fmt.Sprintf(" (number %d of %v)", o.pos, o.Stream)
	} else {
		s += fmt.Sprintf(" (of %v)", o.Life)
	}
	if o.Grant != nil && o.Grant.Region != nil {
		s += fmt.Sprintf(" on %v+%d", o.Grant.Region, o.Off)
	}
	if o.Wrong != "" {
		s += ", which must be refused: " + o.Wrong
	}
	return s
}

// consumes reports whether the target needs a posted receive for o.
func (o *Op) consumes() bool {
	switch o.Code {
	case verbs.OpSend, verbs.OpSendWithInv, verbs.OpRDMAWriteWithImm:
		return true
	}
	return false
}

// writes reports whether o puts its payload into a region of the target.
func (o *Op) writes() bool {
	switch o.Code {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpRDMAWriteRecord:
		return true
	}
	return false
}

func (o *Op) atomic() bool {
	switch o.Code {
	case verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicSwap:
		return true
	}
	return false
}

// Fill writes the payload of request id, from offset off of its message on.
func Fill(b []byte, id uint64, off int) {
	for i := 0; i < len(b); {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], word(id, uint64(off+i)/8))
		i += copy(b[i:], w[(off+i)%8:])
	}
}

// byteOf returns one byte of what Fill writes.
func byteOf(id uint64, off int) byte { return byte(word(id, uint64(off)/8) >> (off % 8 * 8)) }

// word returns eight bytes of payload. The first eight tell who they are.
func word(id, n uint64) uint64 {
	if n == 0 {
		return id
	}
	x := id ^ n*0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// differs returns the first offset at which b is not the payload of id, or -1.
func differs(b []byte, id uint64) int {
	for i := range b {
		if b[i] != byteOf(id, i) {
			return i
		}
	}
	return -1
}
