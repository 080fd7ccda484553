package mpi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// The collectives over data are tested as those over slices are, against what one
// loop would compute. Every rank has its elements in a layout of its own, with the
// same signature, and what lies between them must stay as it is.

// room is memory for elements in some layout.
type room struct {
	l   layout
	n   int
	mem []byte
}

func (r room) data() mpi.Data { return mpi.Bytes(r.mem, 0, r.n, r.l.t) }

// fill puts packed elements into the memory, from element at on.
func (r room) fill(packed []byte, at int) room {
	if len(packed) > 0 {
		r.l.unpack(r.mem[at*r.l.extent:], packed, len(packed)/r.l.size())
	}
	return r
}

// typedOracle tests the collectives over data of one signature, length and form.
type typedOracle struct {
	c     *mpi.Comm
	n     int // elements
	form  form
	elems []basic
	own   *rand.Rand // for the layouts of this rank
}

// room is blank memory for n elements.
func (o *typedOracle) room(n int) room {
	l := mixed(o.own, o.elems)
	if o.elems[0].t == mpi.TypeInt32 { // all are
		l = uniform(o.own, o.elems[0], len(o.elems))
	}
	return room{l, n, blank(l.span(n))}
}

// vec is what rank r has: n packed elements. Some are for rank to only.
func (o *typedOracle) vec(r, to, n int) []byte {
	size := 0
	for _, e := range o.elems {
		size += e.size
	}
	b := make([]byte, n*size)
	for i := range b {
		b[i] = byte(7*r + 31*to + 3*i + i/256)
	}
	return b
}

// check compares the memory with blank memory that has packed elements at some
// elements.
func (o *typedOracle) check(what string, r room, packed []byte, at int) error {
	want := room{r.l, r.n, blank(len(r.mem))}.fill(packed, at)
	return sameBytes(what, r.mem, want.mem)
}

func (o *typedOracle) all() error {
	for _, test := range []func() error{o.bcast, o.gather, o.gatherv, o.allgather, o.alltoall, o.alltoallw, o.neighbors} {
		if err := test(); err != nil {
			return fmt.Errorf("rank %d of %d, %d elements, form %d: %w", o.c.Rank(), o.c.Size(), o.n, o.form, err)
		}
	}
	return nil
}

// roots are those to test with: all of them where that is no great matter.
func (o *typedOracle) roots() (roots []int) {
	p := o.c.Size()
	if o.n > 5 || p > 5 {
		return []int{p / 2, (p/2 + 1) % p}
	}
	for r := range p {
		roots = append(roots, r)
	}
	return roots
}

func (o *typedOracle) bcast() error {
	for _, root := range o.roots() {
		v := o.room(o.n)
		if o.c.Rank() == root {
			v.fill(o.vec(root, 0, o.n), 0)
		}
		d := v.data()
		err := o.form.call(
			func() error { return o.c.Bcast(d, root) },
			func() (mpi.Request, error) { return o.c.Ibcast(d, root) },
			func() (*mpi.Persistent, error) { return o.c.BcastInit(d, root) })
		if err = errors.Join(err, o.check("Bcast", v, o.vec(root, 0, o.n), 0)); err != nil {
			return err
		}
	}
	return nil
}

// concat is the vectors of all ranks.
func (o *typedOracle) concat(n int) (all []byte) {
	for r := range o.c.Size() {
		all = append(all, o.vec(r, 0, n)...)
	}
	return all
}

func (o *typedOracle) gather() error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	for _, root := range o.roots() {
		inPlace := root%2 == 1 && me == root
		mine, all := o.room(o.n).fill(o.vec(me, 0, o.n), 0), room{}
		send, recv := mine.data(), mpi.Data{}
		if me == root {
			all = o.room(o.n * p)
			recv = all.data()
		}
		if inPlace {
			all.fill(o.vec(me, 0, o.n), me*o.n)
			send = mpi.Data{}
		}
		err := o.form.call(
			func() error { return c.Gather(send, recv, root) },
			func() (mpi.Request, error) { return c.Igather(send, recv, root) },
			func() (*mpi.Persistent, error) { return c.GatherInit(send, recv, root) })
		if me == root {
			err = errors.Join(err, o.check("Gather", all, o.concat(o.n), 0))
		}
		back := o.room(o.n)
		into := back.data()
		if inPlace {
			back, into = mine, mpi.Data{}
		}
		err = errors.Join(err, o.form.call(
			func() error { return c.Scatter(recv, into, root) },
			func() (mpi.Request, error) { return c.Iscatter(recv, into, root) },
			func() (*mpi.Persistent, error) { return c.ScatterInit(recv, into, root) }),
			o.check("Scatter", back, o.vec(me, 0, o.n), 0))
		if err != nil {
			return err
		}
	}
	return nil
}

// lengths are different for each rank, and places with gaps, the last rank first.
func (o *typedOracle) lengths() (counts, displs []int, total int) {
	p := o.c.Size()
	counts, displs = make([]int, p), make([]int, p)
	for r := p - 1; r >= 0; r-- {
		counts[r], displs[r] = o.n*(r%3), total
		total += counts[r] + 1
	}
	return counts, displs, total
}

// checkv is check of what a v form has gathered.
func (o *typedOracle) checkv(what string, r room, counts, displs []int) error {
	want := room{r.l, r.n, blank(len(r.mem))}
	for i, n := range counts {
		want.fill(o.vec(i, 0, n), displs[i])
	}
	return sameBytes(what, r.mem, want.mem)
}

func (o *typedOracle) gatherv() error {
	c, me := o.c, o.c.Rank()
	counts, displs, total := o.lengths()
	for _, root := range o.roots() {
		mine, all, recv := o.room(counts[me]).fill(o.vec(me, 0, counts[me]), 0), room{}, mpi.Data{}
		send := mine.data()
		if me == root {
			all = o.room(total)
			recv = all.data()
			if root%2 == 1 {
				all.fill(o.vec(me, 0, counts[me]), displs[me])
				send = mpi.Data{}
			}
		}
		err := o.form.call(
			func() error { return c.Gatherv(send, recv, counts, displs, root) },
			func() (mpi.Request, error) { return c.Igatherv(send, recv, counts, displs, root) },
			func() (*mpi.Persistent, error) { return c.GathervInit(send, recv, counts, displs, root) })
		if me == root {
			err = errors.Join(err, o.checkv("Gatherv", all, counts, displs))
		}
		back := o.room(counts[me])
		into := back.data()
		err = errors.Join(err, o.form.call(
			func() error { return c.Scatterv(recv, counts, displs, into, root) },
			func() (mpi.Request, error) { return c.Iscatterv(recv, counts, displs, into, root) },
			func() (*mpi.Persistent, error) { return c.ScattervInit(recv, counts, displs, into, root) }),
			o.check("Scatterv", back, o.vec(me, 0, counts[me]), 0))
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *typedOracle) allgather() error {
	c, me := o.c, o.c.Rank()
	counts, displs, total := o.lengths()
	for _, inPlace := range []bool{false, true} {
		mine, minev := o.room(o.n).fill(o.vec(me, 0, o.n), 0), o.room(counts[me]).fill(o.vec(me, 0, counts[me]), 0)
		all, allv := o.room(o.n*c.Size()), o.room(total)
		send, sendv := mine.data(), minev.data()
		if inPlace {
			all.fill(o.vec(me, 0, o.n), me*o.n)
			allv.fill(o.vec(me, 0, counts[me]), displs[me])
			send, sendv = mpi.Data{}, mpi.Data{}
		}
		recv, recvv := all.data(), allv.data()
		err := errors.Join(o.form.call(
			func() error { return c.Allgather(send, recv) },
			func() (mpi.Request, error) { return c.Iallgather(send, recv) },
			func() (*mpi.Persistent, error) { return c.AllgatherInit(send, recv) },
		), o.form.call(
			func() error { return c.Allgatherv(sendv, recvv, counts, displs) },
			func() (mpi.Request, error) { return c.Iallgatherv(sendv, recvv, counts, displs) },
			func() (*mpi.Persistent, error) { return c.AllgathervInit(sendv, recvv, counts, displs) },
		), o.check("Allgather", all, o.concat(o.n), 0), o.checkv("Allgatherv", allv, counts, displs))
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *typedOracle) alltoall() error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	for _, inPlace := range []bool{false, true} {
		if inPlace && o.form == persistent {
			continue // twice is as never
		}
		out, in := o.room(o.n*p), o.room(o.n*p)
		counts, displs, total := make([]int, p), make([]int, p), 0
		for r := range p {
			counts[r], displs[r] = o.n*((r+me)%3), total
			total += counts[r] + 1
		}
		outv, inv := o.room(total), o.room(total)
		wantv := room{inv.l, total, blank(len(inv.mem))}
		var want []byte
		for r := range p {
			src, srcv := out, outv
			if inPlace {
				src, srcv = in, inv
			}
			src.fill(o.vec(me, r, o.n), r*o.n)
			srcv.fill(o.vec(me, r, counts[r]), displs[r])
			want = append(want, o.vec(r, me, o.n)...)
			wantv.fill(o.vec(r, me, counts[r]), displs[r])
		}
		send, recv, sendv, recvv, sendCounts := out.data(), in.data(), outv.data(), inv.data(), counts
		if inPlace {
			send, sendv, sendCounts = mpi.Data{}, mpi.Data{}, nil
		}
		err := errors.Join(o.form.call(
			func() error { return c.Alltoall(send, recv) },
			func() (mpi.Request, error) { return c.Ialltoall(send, recv) },
			func() (*mpi.Persistent, error) { return c.AlltoallInit(send, recv) },
		), o.form.call(
			func() error { return c.Alltoallv(sendv, sendCounts, displs, recvv, counts, displs) },
			func() (mpi.Request, error) { return c.Ialltoallv(sendv, sendCounts, displs, recvv, counts, displs) },
			func() (*mpi.Persistent, error) {
				return c.AlltoallvInit(sendv, sendCounts, displs, recvv, counts, displs)
			},
		), o.check("Alltoall", in, want, 0), sameBytes("Alltoallv", inv.mem, wantv.mem))
		if err != nil {
			return fmt.Errorf("in place %v: %w", inPlace, err)
		}
	}
	return nil
}

func (o *typedOracle) alltoallw() error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	for _, inPlace := range []bool{false, true} {
		if inPlace && o.form == persistent {
			continue
		}
		var send, recv []mpi.Data
		in := make([]room, p)
		for r := range p {
			n := o.n * ((r + me) % 3)
			in[r] = o.room(n)
			recv = append(recv, in[r].data())
			if inPlace {
				in[r].fill(o.vec(me, r, n), 0)
			} else {
				send = append(send, o.room(n).fill(o.vec(me, r, n), 0).data())
			}
		}
		err := o.form.call(
			func() error { return c.Alltoallw(send, recv) },
			func() (mpi.Request, error) { return c.Ialltoallw(send, recv) },
			func() (*mpi.Persistent, error) { return c.AlltoallwInit(send, recv) })
		for r := range p {
			err = errors.Join(err, o.check("Alltoallw", in[r], o.vec(r, me, o.n*((r+me)%3)), 0))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// neighbors uses a line, whose ends have a neighbour on one side only.
func (o *typedOracle) neighbors() error {
	line, err := o.c.CartCreate([]int{o.c.Size()}, []bool{false}, false)
	if err != nil {
		return err
	}
	me, p := line.Rank(), line.Size()
	sides := []int{me - 1, me + 1}
	counts, displs := []int{o.n, o.n}, []int{0, o.n + 1}
	mine := o.room(o.n).fill(o.vec(me, 0, o.n), 0)
	out, outw := o.room(2*o.n+1), []mpi.Data{}
	same, samev, apart, apartv := o.room(2*o.n), o.room(2*o.n+1), o.room(2*o.n), o.room(2*o.n+1)
	wants := []room{same, samev, apart, apartv}
	for i := range wants {
		wants[i].mem = blank(len(wants[i].mem))
	}
	inw, wantw := make([]room, 2), make([]room, 2)
	for i, r := range sides {
		out.fill(o.vec(me, r+1, o.n), displs[i])
		outw = append(outw, o.room(o.n).fill(o.vec(me, r+1, o.n), 0).data())
		inw[i] = o.room(o.n)
		wantw[i] = room{inw[i].l, o.n, blank(len(inw[i].mem))}
		if r < 0 || r >= p {
			continue
		}
		wants[0].fill(o.vec(r, 0, o.n), i*o.n)
		wants[1].fill(o.vec(r, 0, o.n), displs[i])
		wants[2].fill(o.vec(r, me+1, o.n), i*o.n)
		wants[3].fill(o.vec(r, me+1, o.n), displs[i])
		wantw[i].fill(o.vec(r, me+1, o.n), 0)
	}
	even := o.room(2 * o.n)
	for i, r := range sides {
		even.fill(o.vec(me, r+1, o.n), i*o.n)
	}
	recvw := []mpi.Data{inw[0].data(), inw[1].data()}
	err = errors.Join(o.form.call(
		func() error { return line.NeighborAllgather(mine.data(), same.data()) },
		func() (mpi.Request, error) { return line.IneighborAllgather(mine.data(), same.data()) },
		func() (*mpi.Persistent, error) { return line.NeighborAllgatherInit(mine.data(), same.data()) },
	), o.form.call(
		func() error { return line.NeighborAllgatherv(mine.data(), samev.data(), counts, displs) },
		func() (mpi.Request, error) {
			return line.IneighborAllgatherv(mine.data(), samev.data(), counts, displs)
		},
		func() (*mpi.Persistent, error) {
			return line.NeighborAllgathervInit(mine.data(), samev.data(), counts, displs)
		},
	), o.form.call(
		func() error { return line.NeighborAlltoall(even.data(), apart.data()) },
		func() (mpi.Request, error) { return line.IneighborAlltoall(even.data(), apart.data()) },
		func() (*mpi.Persistent, error) { return line.NeighborAlltoallInit(even.data(), apart.data()) },
	), o.form.call(
		func() error { return line.NeighborAlltoallv(out.data(), counts, displs, apartv.data(), counts, displs) },
		func() (mpi.Request, error) {
			return line.IneighborAlltoallv(out.data(), counts, displs, apartv.data(), counts, displs)
		},
		func() (*mpi.Persistent, error) {
			return line.NeighborAlltoallvInit(out.data(), counts, displs, apartv.data(), counts, displs)
		},
	), o.form.call(
		func() error { return line.NeighborAlltoallw(outw, recvw) },
		func() (mpi.Request, error) { return line.IneighborAlltoallw(outw, recvw) },
		func() (*mpi.Persistent, error) { return line.NeighborAlltoallwInit(outw, recvw) },
	))
	for i, got := range []room{same, samev, apart, apartv} {
		err = errors.Join(err, sameBytes(fmt.Sprintf("neighbours, call %d", i), got.mem, wants[i].mem))
	}
	for i := range inw {
		err = errors.Join(err, sameBytes("NeighborAlltoallw", inw[i].mem, wantw[i].mem))
	}
	return errors.Join(err, line.Free())
}

// sum is the sum of the vectors of int32 of ranks from..to-1.
func (o *typedOracle) sum(n, from, to int) []byte {
	sum := make([]byte, len(o.vec(0, 0, n)))
	for r := from; r < to; r++ {
		v := o.vec(r, 0, n)
		for i := 0; i < len(v); i += 4 {
			binary.LittleEndian.PutUint32(sum[i:], binary.LittleEndian.Uint32(sum[i:])+binary.LittleEndian.Uint32(v[i:]))
		}
	}
	return sum
}

// reductions are the collectives that reduce, of columns of int32.
func (o *typedOracle) reductions() error {
	for _, inPlace := range []bool{false, true} {
		if inPlace && o.form == persistent {
			continue
		}
		for _, test := range []func(inPlace bool) error{o.reduce, o.reduceScatter, o.scan} {
			if err := test(inPlace); err != nil {
				return fmt.Errorf("rank %d of %d, %d elements, form %d, in place %v: %w", o.c.Rank(), o.c.Size(), o.n, o.form, inPlace, err)
			}
		}
	}
	return nil
}

// operands are the send and the receive buffer of a reduction.
func (o *typedOracle) operands(n, to int, inPlace bool) (send mpi.Data, got room) {
	me := o.c.Rank()
	if inPlace {
		return mpi.Data{}, o.room(n).fill(o.vec(me, 0, n), 0)
	}
	return o.room(n).fill(o.vec(me, 0, n), 0).data(), o.room(to)
}

func (o *typedOracle) reduce(inPlace bool) error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	for _, root := range o.roots() {
		send, got := o.operands(o.n, o.n, inPlace && me == root)
		recv := got.data()
		err := o.form.call(
			func() error { return c.Reduce(send, recv, mpi.OpSum, root) },
			func() (mpi.Request, error) { return c.Ireduce(send, recv, mpi.OpSum, root) },
			func() (*mpi.Persistent, error) { return c.ReduceInit(send, recv, mpi.OpSum, root) })
		if me == root {
			err = errors.Join(err, o.check("Reduce", got, o.sum(o.n, 0, p), 0))
		}
		if err != nil {
			return err
		}
	}
	send, got := o.operands(o.n, o.n, inPlace)
	recv := got.data()
	return errors.Join(o.form.call(
		func() error { return c.Allreduce(send, recv, mpi.OpSum) },
		func() (mpi.Request, error) { return c.Iallreduce(send, recv, mpi.OpSum) },
		func() (*mpi.Persistent, error) { return c.AllreduceInit(send, recv, mpi.OpSum) },
	), o.check("Allreduce", got, o.sum(o.n, 0, p), 0))
}

func (o *typedOracle) reduceScatter(inPlace bool) error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	counts, begin, total := make([]int, p), 0, 0
	for r := range counts {
		if r == me {
			begin = total
		}
		counts[r] = o.n * ((r + 1) % 3)
		total += counts[r]
	}
	send, got := o.operands(total, counts[me], inPlace)
	sendB, gotB := o.operands(o.n*p, o.n, inPlace)
	recv, recvB := got.data(), gotB.data()
	err := errors.Join(o.form.call(
		func() error { return c.ReduceScatter(send, recv, counts, mpi.OpSum) },
		func() (mpi.Request, error) { return c.IreduceScatter(send, recv, counts, mpi.OpSum) },
		func() (*mpi.Persistent, error) { return c.ReduceScatterInit(send, recv, counts, mpi.OpSum) },
	), o.form.call(
		func() error { return c.ReduceScatterBlock(sendB, recvB, mpi.OpSum) },
		func() (mpi.Request, error) { return c.IreduceScatterBlock(sendB, recvB, mpi.OpSum) },
		func() (*mpi.Persistent, error) { return c.ReduceScatterBlockInit(sendB, recvB, mpi.OpSum) }))
	if err != nil {
		return err
	}
	size := len(o.vec(0, 0, 1))
	part := o.sum(total, 0, p)[begin*size : (begin+counts[me])*size]
	partB := o.sum(o.n*p, 0, p)[me*o.n*size : (me+1)*o.n*size]
	if !slices.Equal(got.l.pack(got.mem, counts[me]), part) || !slices.Equal(gotB.l.pack(gotB.mem, o.n), partB) {
		return errors.New("ReduceScatter: not the sums")
	}
	return nil
}

func (o *typedOracle) scan(inPlace bool) error {
	c, me := o.c, o.c.Rank()
	send, got := o.operands(o.n, o.n, inPlace)
	sendX, gotX := o.operands(o.n, o.n, inPlace)
	recv, recvX := got.data(), gotX.data()
	err := errors.Join(o.form.call(
		func() error { return c.Scan(send, recv, mpi.OpSum) },
		func() (mpi.Request, error) { return c.Iscan(send, recv, mpi.OpSum) },
		func() (*mpi.Persistent, error) { return c.ScanInit(send, recv, mpi.OpSum) },
	), o.form.call(
		func() error { return c.Exscan(sendX, recvX, mpi.OpSum) },
		func() (mpi.Request, error) { return c.Iexscan(sendX, recvX, mpi.OpSum) },
		func() (*mpi.Persistent, error) { return c.ExscanInit(sendX, recvX, mpi.OpSum) },
	), o.check("Scan", got, o.sum(o.n, 0, me+1), 0))
	switch {
	case me > 0:
		return errors.Join(err, o.check("Exscan", gotX, o.sum(o.n, 0, me), 0))
	case inPlace:
		return errors.Join(err, o.check("Exscan", gotX, o.vec(0, 0, o.n), 0))
	}
	return errors.Join(err, sameBytes("Exscan on rank 0", gotX.mem, blank(len(gotX.mem))))
}

func TestTypedCollectives_likeTheOracle(t *testing.T) {
	kinds := basics()
	for p := 1; p <= 13; p++ {
		if slow && p%4 != 0 {
			continue
		}
		err := mpi.Run(p, func(proc *mpi.Proc) error {
			c := proc.World()
			own := rand.New(rand.NewPCG(uint64(p), uint64(c.Rank())))
			for _, f := range []form{blocking, nonblocking, persistent} {
				for _, n := range []int{0, 1, 5, 300} {
					if n > 5 && f != form(p%3) {
						continue
					}
					mixed := &typedOracle{c, n, f, []basic{kinds[2], kinds[0], kinds[3], kinds[1]}, own}
					ints := &typedOracle{c, n, f, []basic{{mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}}, own}
					if err := errors.Join(mixed.all(), ints.reductions()); err != nil {
						return err
					}
				}
			}
			if p > 4 {
				return nil
			}
			long := &typedOracle{c, 20_000, form(p % 3), []basic{{mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}}, own}
			return errors.Join(long.all(), long.reductions())
		})
		if err != nil {
			t.Fatalf("%d ranks: %v", p, err)
		}
	}
}
