package verbs

import "fmt"

// OpcodeError says that a work request cannot be posted because of its opcode,
// its flags or what it lacks. It wraps ErrInvalid.
type OpcodeError struct {
	Opcode Opcode
	Type   QPType
	Why    string
}

func (e *OpcodeError) Error() string {
	return fmt.Sprintf("%v: %v cannot be posted to a queue pair of type %v: %s", ErrInvalid, e.Opcode, e.Type, e.Why)
}

// Unwrap returns ErrInvalid.
func (e *OpcodeError) Unwrap() error { return ErrInvalid }

// types is a set of queue pair types.
type types uint8

const (
	onRD types = 1 << RD
	onUD types = 1 << UD
	onRC types = 1 << RC
)

// sglRule says what the scatter/gather list of a request holds.
type sglRule uint8

const (
	anySGL  sglRule = iota
	noSGL           // the request moves no data
	wordSGL         // one element of 8 bytes: the result
)

// law is what may be said in a work request with one opcode.
type law struct {
	on    types     // which queue pairs take it
	why   string    // why the others do not
	flags SendFlags // that have a meaning; Fence has none on UD, where nothing can be waited for, and unreliableOnly only there
	sgl   sglRule
	rkey  bool // needs RKey, unless it moves no data
	inv   bool // needs InvKey
	bind  bool // needs Bind
}

// unreliableOnly are flags that have a meaning on UD only.
const unreliableOnly = Numbered | Bulk | BulkNext

// Why an opcode cannot be posted.
const (
	whyNoSendImm  = "iWARP has no Send with immediate data; use RDMA_WRITE_WITH_IMM of length 0"
	whyOneSided   = "it needs a reliable transport; UD has SEND and RDMA_WRITE_RECORD"
	whyInv        = "it needs a reliable transport, or the key would stay valid unnoticed; use SEND, and LOCAL_INV at the target"
	whyRecord     = "Write-Record is of datagrams; use RDMA_WRITE_WITH_IMM, which completes at the target too"
	whyCompletion = "it is the opcode of a completion"
)

// laws is the legality table: ibv_post_send(3), with what datagram iWARP adds
// and takes away.
var laws = [opcodeCount]law{
	OpSend:              {on: onRD | onUD | onRC, flags: Signaled | Inline | Solicited | Fence | Bulk | BulkNext | More},
	OpSendWithInv:       {on: onRD | onRC, why: whyInv, flags: Signaled | Inline | Solicited | Fence, inv: true},
	OpSendWithImm:       {why: whyNoSendImm},
	OpRDMAWrite:         {on: onRD | onRC, why: whyOneSided, flags: Signaled | Inline | Fence | More, rkey: true},
	OpRDMAWriteWithImm:  {on: onRD | onRC, why: whyOneSided, flags: Signaled | Inline | Solicited | Fence, rkey: true},
	OpRDMARead:          {on: onRD | onRC, why: whyOneSided, flags: Signaled | Fence, rkey: true},
	OpAtomicCmpAndSwp:   {on: onRD | onRC, why: whyOneSided, flags: Signaled | Fence, rkey: true, sgl: wordSGL},
	OpAtomicFetchAndAdd: {on: onRD | onRC, why: whyOneSided, flags: Signaled | Fence, rkey: true, sgl: wordSGL},
	OpAtomicSwap:        {on: onRD | onRC, why: whyOneSided, flags: Signaled | Fence, rkey: true, sgl: wordSGL},
	OpRDMAWriteRecord:   {on: onRD | onUD, why: whyRecord, flags: Signaled | Inline | Fence | unreliableOnly, rkey: true},
	OpLocalInv:          {on: onRD | onUD | onRC, flags: Signaled | Fence, inv: true, sgl: noSGL},
	OpBindMW:            {on: onRD | onUD | onRC, flags: Signaled | Fence, bind: true, sgl: noSGL},

	OpRecv:                {why: whyCompletion},
	OpRecvRDMAWithImm:     {why: whyCompletion},
	OpRecvRDMAWriteRecord: {why: whyCompletion},
}

// allows reports why a request with this opcode cannot be posted to a queue
// pair of this type; nil when it can.
func (t QPType) allows(op Opcode) error {
	switch {
	case op >= opcodeCount || op == 0:
		return &OpcodeError{op, t, "there is no such opcode"}
	case t < RD || t > RC:
		return &OpcodeError{op, t, "there is no such type"}
	}
	if l := &laws[op]; l.on>>t&1 == 0 {
		return &OpcodeError{op, t, l.why}
	}
	return nil
}

// checkLegal holds a request to the legality table: opcode, flags, and what
// belongs to them. What its keys and addresses name is not looked at.
func (t QPType) checkLegal(wr *SendWR) error {
	if wr.Opcode >= opcodeCount || laws[wr.Opcode].on>>t&1 == 0 {
		return t.allows(wr.Opcode)
	}
	l := &laws[wr.Opcode]
	flags := l.flags
	if t == UD {
		flags &^= Fence
	} else {
		flags &^= unreliableOnly
	}
	if wr.Flags&^flags != 0 || l.sgl != anySGL || l.inv || l.bind || l.rkey && wr.RKey == 0 || wr.NumSGE > MaxSGE || wr.uncounted() {
		return t.checkDetails(wr, l, flags)
	}
	return nil
}

// checkDetails says what checkLegal leaves: requests that are rare, and errors.
func (t QPType) checkDetails(wr *SendWR, l *law, flags SendFlags) error {
	if wr.NumSGE > MaxSGE {
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	}
	total, why := wr.size(), ""
	switch bad := wr.Flags &^ flags; {
	case bad&Inline != 0:
		why = "Inline is for data that goes out: SEND, RDMA_WRITE and their like"
	case bad&Solicited != 0:
		why = "Solicited is for SEND and RDMA_WRITE_WITH_IMM, which make a completion at the target"
	case bad&Fence != 0:
		why = "Fence waits for Reads and atomics, of which UD has none"
	case bad&Numbered != 0:
		why = "Numbered is for RDMA_WRITE_RECORD on UD: elsewhere nothing is written twice"
	case bad&(Bulk|BulkNext) != 0:
		why = "Bulk and BulkNext are for SEND and RDMA_WRITE_RECORD on UD: RD chooses the way itself, and RC has one"
	case bad&More != 0:
		why = "More is for SEND and RDMA_WRITE, which wait for the next one"
	case l.sgl == noSGL && wr.NumSGE != 0:
		why = "it moves no data: NumSGE must be 0"
	case l.sgl != noSGL && wr.uncounted():
		why = uncounted
	case l.sgl == wordSGL && (wr.NumSGE != 1 || total != 8):
		why = "its result is 8 bytes: the scatter/gather list must be one element of these"
	case l.inv && wr.InvKey == 0:
		why = "InvKey is missing: the key to end"
	case l.bind && wr.Bind == nil:
		why = "Bind is missing: what to bind"
	case l.rkey && wr.RKey == 0 && total > 0:
		why = "RKey is missing: the key that the target gave out"
	default:
		return nil
	}
	return &OpcodeError{wr.Opcode, t, why}
}

// uncounted is what is wrong with a request that has elements and no number.
const uncounted = "NumSGE is 0, but SGL[0] is filled in: set NumSGE to how many elements there are, or clear them"

// uncounted reports whether a request has elements and says that it has none.
func (wr *SendWR) uncounted() bool {
	return wr.NumSGE == 0 && wr.SGL[0].Length != 0 && wr.Flags&Inline == 0
}

// size returns how many bytes a request moves.
func (wr *SendWR) size() (total uint64) {
	if wr.Flags&Inline != 0 {
		return uint64(len(wr.InlineData))
	}
	for i := range wr.SGL[:wr.NumSGE] {
		total += uint64(wr.SGL[i].Length)
	}
	return total
}
