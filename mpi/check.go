package mpi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Where Config.Check says so, all ranks tell one another what they are about to do
// before they do a collective: its name, its root, its predefined operation and how
// many bytes there are, where these must be the same on all of them. That is an
// exchange of the same form whatever the collective is, with its tag, so that ranks
// which call different ones meet in it all the same. Each of them finds the same first
// difference and returns it as an error, and nothing else is sent: the communicator
// can be used afterwards.

// sign is what has to be the same on all ranks besides the name; -1 and "" mean that
// nothing has.
type sign struct {
	root  int
	bytes int // of the vector, or of the part of a rank
	elem  int // bytes of an element that is reduced
	op    string
}

// unsigned has to do with nothing.
var unsigned = sign{root: -1, bytes: -1, elem: -1}

// signs notes how many bytes the ranks have to agree on.
func (k *call) signs(bytes int) {
	if k.ok() && k.c.p.check {
		k.sign.bytes = bytes
	}
}

// signsReduction notes a reduction.
func (k *call) signsReduction(r *reduction, d, other Data) {
	if k.c == nil || !k.c.p.check { // ReduceLocal has no communicator
		return
	}
	if !other.none() {
		d = other
	}
	k.sign.bytes = d.size()
	if k.sign.elem = r.elem; r.typed.op != nil {
		k.sign.elem = -1
		if r.typed.op.Predefined() {
			k.sign.op = r.typed.op.String()
		}
	}
}

// A signature on its way: name and operation, filled up with zeros, and the numbers.
const (
	signName = 48
	signOp   = 24
	signLen  = signName + signOp + 3*8
)

func (k *call) encodeSign() []byte {
	s := k.sign
	if k.c.Inter() { // roots are given in other ways, and sides have vectors of their own
		s = unsigned
	}
	b := make([]byte, signName+signOp, signLen)
	copy(b[:signName], k.op)
	copy(b[signName:], s.op)
	for _, n := range []int{s.root, s.bytes, s.elem} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func decodeSign(b []byte) (name string, s sign) {
	number := func(i int) int { return int(binary.BigEndian.Uint64(b[signName+signOp+8*i:])) }
	name = string(bytes.TrimRight(b[:signName], "\x00"))
	s.op = string(bytes.TrimRight(b[signName:signName+signOp], "\x00"))
	s.root, s.bytes, s.elem = number(0), number(1), number(2)
	return name, s
}

// checking is the exchange of signatures.
type checking struct {
	s            coll.Schedule
	ours, theirs []byte // signatures of the ranks; theirs: of the remote group
}

// newCheck plans the exchange for a call whose tag is known.
func (k *call) newCheck() *checking {
	x := &checking{}
	x.s.Tag = k.s.Tag
	mine, team := k.encodeSign(), coll.Team{Me: k.c.rank, Size: k.c.size}
	if k.c.Inter() {
		team = k.inter().Local
		x.theirs = make([]byte, k.c.size*signLen)
	}
	x.ours = make([]byte, team.Size*signLen)
	coll.AllgatherBruck(&x.s, team, mine, x.s.Even(x.ours, team.Size))
	if k.c.Inter() {
		k.inter().Allgather(&x.s, mine, x.theirs)
	}
	return x
}

// checkNow is the check of a blocking call. It is called inside.
func (k *call) checkNow() error {
	x := k.newCheck()
	if err := x.s.Run(k); err != nil {
		return err
	}
	return x.compare(k.op)
}

// checks reports whether a call that goes on in steps is one that all ranks make.
func (k *call) checks() bool {
	_, dup := k.task.(*dup)
	return k.c.p.check && (k.task == nil || dup)
}

// checkOn goes on with the check of a call that goes on in steps, and reports whether
// it is over. What it finds is in k.err.
func (k *call) checkOn() (over bool) {
	x := k.check
	if !x.s.Advance(k) {
		return false
	}
	k.check = nil
	err := x.s.Err()
	if err == nil {
		err = x.compare(k.op)
	}
	if err == nil {
		return true
	}
	if d, ok := k.task.(*dup); ok {
		d.end(k, err)
	}
	k.err = err
	return true
}

// compare finds the first rank that does something else than rank 0.
func (x *checking) compare(op string) error {
	first, of := x.ours[:signLen], ""
	for i, all := range [][]byte{x.ours, x.theirs} {
		for at := 0; at < len(all); at += signLen {
			if bytes.Equal(all[at:at+signLen], first) {
				continue
			}
			if i == 1 {
				of = " of the other group"
			}
			rank := at / signLen
			there, here := describe(all[at:at+signLen], first)
			return &Error{Class: ErrOther, Op: op, Rank: rank, Detail: fmt.Sprintf(
				"the ranks do different things: rank %d%s called %s, rank 0 called %s", rank, of, there, here)}
		}
	}
	return nil
}

// describe tells two calls apart: by their names and roots, or else by the rest.
func describe(a, b []byte) (there, here string) {
	nameA, signA := decodeSign(a)
	nameB, signB := decodeSign(b)
	rest := nameA == nameB && signA.root == signB.root
	return nameA + signA.text(rest), nameB + signB.text(rest)
}

func (s sign) text(rest bool) string {
	var parts []string
	if s.root >= 0 {
		parts = append(parts, fmt.Sprintf("root %d", s.root))
	}
	if rest && s.op != "" {
		parts = append(parts, s.op)
	}
	if rest && s.bytes >= 0 {
		parts = append(parts, fmt.Sprintf("%d bytes", s.bytes))
	}
	if rest && s.elem >= 0 {
		parts = append(parts, fmt.Sprintf("in elements of %d", s.elem))
	}
	if parts == nil {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
