package rma

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// What active messages say. The bodies are, numbers in network order and data as they lie
// in memory:
//
//	 0       1       2               4                       12              16
//	+-------+-------+---------------+-----------------------+---------------+------
//	| kind  | op    | blocks        | offset                | bytes         | ...
//	+-------+-------+---------------+-----------------------+---------------+------
//
// so many blocks, and behind them the packed data. Blocks are ranges of the target's memory,
// in the order of the data; of accumulates they consist of whole elements of a predefined
// type (kind), or are one element each where that has gaps.
const (
	sayPut        int32 = iota // write the data
	sayAccumulate              // combine the data with what is there
	sayFetch                   // the same, and answer with what was there; id is the record's
	sayGet                     // answer with what is there; id is the record's
	saySwap                    // data are two elements: if the first one is there, put the second one there; and answer with what was there
	sayData                    // the answer; id is the record's
	sayRefused                 // there is no such memory; id is the record's, or noRecord
	sayFlush                   // answer when all before is done
	sayFlushed
	sayLock   // id is the mode
	sayTry    // the same, but do not keep it waiting
	sayLocked // the lock is there
	sayBusy   // it cannot be given now
	sayUnlock // give the lock back; id is 1 to ask for an answer, a sayFlushed
	sayPost   // the exposure epoch has begun
	sayComplete
	sayRetry  // a rank of the target's host has given its lock back, for which ranks of others wait
	sayServe  // to a ghost: serve this memory of mine; an order
	sayServed // it does; id is the key, the body the address
	sayLeave  // it is to do so no more; the answer is a sayFlushed
	sayBoard  // to a ghost: where is your board? The body is the interval; the answer is a sayServed with its number as the address
	sayWants  // of a ghost to another one: what the ranks of its host want; the answer is a sayFlushed
	sayEnd
)

// behindShift is where a message that brings operations has what is to be said behind
// them: sayFlush, sayUnlock or sayComplete, whose id is that of the message.
const behindShift = 8

// clientShift is where a message between an origin and a ghost has the number of the target
// among those that the ghost serves, from 1 on. 0 is a message between ranks.
const (
	clientShift = 16
	clientMost  = 1<<15 - 1
)

const noRecord = 1<<32 - 1

const (
	frontLen  = 4  // bytes before the blocks
	blockLen  = 12 // of each
	maxBlocks = 64 // in one message
)

// block is a range of a target's memory.
type block struct {
	off uint64
	len uint32
}

// front is what a body begins with, before the data.
type front struct {
	kind   dtype.Kind
	op     uint8 // index in operations
	n      int
	blocks [maxBlocks]block
}

// put writes f and returns how long it is.
func (f *front) put(b []byte) int {
	b[0], b[1] = byte(f.kind), f.op
	binary.BigEndian.PutUint16(b[2:], uint16(f.n))
	at := frontLen
	for _, r := range f.blocks[:f.n] {
		binary.BigEndian.PutUint64(b[at:], r.off)
		binary.BigEndian.PutUint32(b[at+8:], r.len)
		at += blockLen
	}
	return at
}

// bytes returns how long all blocks are.
func (f *front) bytes() (n int) {
	for _, r := range f.blocks[:f.n] {
		n += int(r.len)
	}
	return n
}

// get reads a front, and returns the data behind it. false: our code has not made it.
func (f *front) get(b []byte) (data []byte, ok bool) {
	if len(b) < frontLen {
		return nil, false
	}
	f.kind, f.op, f.n = dtype.Kind(b[0]), b[1], int(binary.BigEndian.Uint16(b[2:]))
	end := frontLen + f.n*blockLen
	if f.n > maxBlocks || len(b) < end || f.kind >= dtype.Derived || int(f.op) >= len(operations) {
		return nil, false
	}
	for i := range f.blocks[:f.n] {
		at := frontLen + i*blockLen
		f.blocks[i] = block{binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint32(b[at+8:])}
	}
	return b[end:], true
}

// operations are the predefined operations, by their numbers on the wire.
var operations = [...]*dtype.Op{
	dtype.Replace, dtype.NoOp, dtype.Sum, dtype.Prod, dtype.Max, dtype.Min, dtype.Land, dtype.Lor, dtype.Lxor,
	dtype.Band, dtype.Bor, dtype.Bxor, dtype.Maxloc, dtype.Minloc,
}

// number returns the number of an operation on the wire. false: it has none, for it is not
// predefined.
func number(op *dtype.Op) (uint8, bool) {
	for i, o := range operations {
		if o == op {
			return uint8(i), true
		}
	}
	return 0, false
}
