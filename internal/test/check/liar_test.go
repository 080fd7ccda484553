package check

import (
	"bytes"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// liar stands between the workload and the model and tells one lie, as an
// implementation with a bug would make the workload tell it.
type liar struct {
	*Model
	lie   string
	after int  // occasions to let pass first
	told  bool // the lie
	kept  func()
	from  int
	life  *Life
	last  []byte
}

// now reports whether this is the occasion to lie.
func (l *liar) now(lie string) bool {
	if lie != l.lie || l.told {
		return false
	}
	l.after--
	l.told = l.after < 0
	return l.told
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i%len(b)] ^= 0x10
	return b
}

func (l *liar) Received(life *Life, wc *verbs.WC, from int, data []byte) {
	good := wc.Status == verbs.Success && wc.Opcode == verbs.OpRecv && len(data) >= 8
	switch {
	case good && l.now("delivery lost"):
		return
	case good && l.now("delivered twice"):
		l.Model.Received(life, wc, from, data)
		l.Receiving(life, wc.WRID)
	case good && l.now("delivered again after others"):
		again, bytes := *wc, bytes.Clone(data)
		again.WRID = 1 << 60
		l.from, l.life = from, life
		l.kept = func() {
			l.Receiving(life, again.WRID)
			l.Model.Received(life, &again, from, bytes)
		}
	case good && l.now("message changed"):
		data = flip(data, l.after&0xff)
	case good && len(data) > 1 && l.now("message cut off"):
		data = data[:len(data)-1]
	case good && l.now("sender mixed up"):
		from = life.Host
	case good && l.now("out of order"):
		first, bytes := *wc, bytes.Clone(data)
		l.from, l.life = from, life
		l.kept = func() { l.Model.Received(life, &first, from, bytes) }
		return
	case good && l.now("receive completed twice"):
		l.Model.Received(life, wc, from, data)
	case good && l.now("receive failed"):
		bad := *wc
		bad.Status = verbs.LocLenErr
		wc = &bad
	case good && l.now("invalidated nothing"):
		bad := *wc
		bad.Flags |= verbs.WCWithInv
		wc = &bad
	case l.kept != nil && from == l.from && life == l.life:
		l.Model.Received(life, wc, from, data)
		l.kept()
		l.kept = nil
		return
	}
	l.Model.Received(life, wc, from, data)
}

func (l *liar) Completed(life *Life, wc *verbs.WC, data []byte) {
	o := l.ops[wc.WRID]
	bad := *wc
	switch {
	case o.Stream != nil && l.now("completion lost"):
		return
	case o.Stream != nil && l.now("completed twice"):
		l.Model.Completed(life, wc, data)
	case o.Stream != nil && l.now("failed without reason"):
		bad.Status = verbs.RetryExcErr
	case o.Stream != nil && l.now("refused without reason"):
		bad.Status = verbs.RemAccessErr
	case l.now("wrong opcode"):
		bad.Opcode = verbs.OpBindMW
	case l.now("unknown request"):
		bad.WRID++
	case o.Code == verbs.OpRDMARead && o.Len > 0 && l.now("read changed"):
		data = flip(data, 0)
	case o.Code == verbs.OpRDMARead && l.stale(o, data) && l.now("read too early"):
		data = o.view.base
	case o.Code == verbs.OpAtomicFetchAndAdd && len(data) > 0 && data[0] != 0 && l.now("atomic returned nothing"):
		data = make([]byte, 8)
	case o.Code == verbs.OpAtomicSwap && l.last != nil && !bytes.Equal(l.last, data) && l.now("swap returned the same as another"):
		data = l.last
	case o.Code == verbs.OpAtomicFetchAndAdd && l.now("atomic returned too much"):
		data = bytes.Repeat([]byte{0x15}, 8)
	case o.Code == verbs.OpAtomicSwap && l.now("swap returned what nobody put there"):
		data = flip(data, 3)
	case o.Wrong != "" && (o.Code == verbs.OpRDMARead || o.atomic()) && l.now("refused request succeeds"):
		bad.Status = verbs.Success
	}
	if o.Code == verbs.OpAtomicSwap && l.lie == "swap returned the same as another" {
		l.last = bytes.Clone(data)
	}
	l.Model.Completed(life, &bad, data)
}

// stale reports whether what a Read would have returned when it was posted is
// wrong now, because of what the same host had written before.
func (l *liar) stale(o *Op, data []byte) bool {
	for i := range data {
		for _, w := range o.view.may {
			if w.covers(o.offset()+i) && w.placed <= o.posted && w.posted > o.view.since[i] && data[i] != o.view.base[i] {
				return true
			}
		}
	}
	return false
}

func (l *liar) Posted(o *Op) {
	l.Model.Posted(o)
	if !o.Signaled && l.now("completion of what was not signalled") {
		l.Model.Completed(o.Life, &verbs.WC{WRID: o.ID, Opcode: o.Code}, nil)
	}
}

func (l *liar) Looked(r *Region, mem []byte) {
	changed := false // by what has surely happened
	for i, b := range mem {
		for _, w := range r.writes {
			changed = changed || b != r.base[i] && w.covers(i) && w.placed <= l.Model.now() && w.posted >= r.looks[r.since[i]]
		}
	}
	quiet := !r.Words && len(r.writes) == 0
	switch {
	case quiet && l.now("memory changed"):
		mem = flip(mem, 100)
	case changed && l.now("write lost"):
		mem = r.base
	case changed && l.now("write undone"):
		before := bytes.Clone(r.base)
		l.Model.Looked(r, mem)
		mem = before
	case changed && l.now("write shifted by a byte"):
		mem = append(bytes.Clone(mem[1:]), mem[0])
	case r.Words && mem[0]&1 != 0 && l.now("add done twice"):
		mem = bytes.Clone(mem)
		mem[0]++
	case r.Words && mem[0]&1 != 0 && r.cells[0].ops[0].op.ok && l.now("add undone"):
		mem = bytes.Clone(mem)
		mem[0]--
	}
	l.Model.Looked(r, mem)
}

func (l *liar) ReceivedUD(life *Life, wc *verbs.WC, from int, qpn uint32, data []byte) {
	good := wc.Status == verbs.Success
	switch {
	case good && l.now("datagram changed"):
		data = flip(data, 9)
	case good && l.now("datagram cut off"):
		data = data[:len(data)-1]
	case good && l.now("datagram of another host"):
		from = life.Host
	case good && l.now("datagram to another queue pair"):
		qpn++
	case good && l.now("datagram delivered too often"):
		for range l.rules.Copies {
			l.Model.ReceivedUD(life, wc, from, qpn, data)
			l.Receiving(life, wc.WRID)
		}
	}
	l.Model.ReceivedUD(life, wc, from, qpn, data)
}

func (l *liar) Recorded(life *Life, wc *verbs.WC, from int, r *Region, mem []byte) {
	bad, rec := *wc, *wc.Record
	bad.Record = &rec
	rec.Valid = slices.Clone(rec.Valid)
	switch {
	case rec.Whole && l.now("record claims what is not there"):
		mem = flip(mem, int(rec.Addr))
	case rec.Whole && l.now("record is longer than the message"):
		rec.Valid[0].End++
		bad.ByteLen++
	case rec.Whole && l.recordAt(r, &rec, from).Stream != nil && l.now("record ends twice"):
		l.Model.Recorded(life, wc, from, r, mem)
	case rec.Whole && l.now("record is not whole"):
		rec.Whole = false
	case l.now("record of nobody"):
		rec.Addr++
	}
	l.Model.Recorded(life, &bad, from, r, mem)
}

// Every lie is found out in every run that gives an occasion for it; and there
// are such runs.
func TestModel_findsOut(t *testing.T) {
	if slow {
		t.Skip("takes minutes with the race detector")
	}
	for _, lie := range []string{
		"delivery lost", "delivered twice", "delivered again after others", "message changed", "message cut off",
		"sender mixed up", "out of order", "receive completed twice", "receive failed", "invalidated nothing",
		"completion lost", "completed twice", "failed without reason", "refused without reason", "wrong opcode",
		"unknown request", "completion of what was not signalled",
		"memory changed", "write lost", "write undone", "write shifted by a byte",
		"read changed", "read too early", "atomic returned nothing", "atomic returned too much",
		"swap returned what nobody put there", "swap returned the same as another", "add done twice", "add undone",
		"refused request succeeds",
		"datagram changed", "datagram cut off", "datagram of another host", "datagram to another queue pair",
		"datagram delivered too often",
		"record claims what is not there", "record is longer than the message", "record ends twice", "record is not whole",
		"record of nobody",
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			told := 0
			for seed := uint64(0); told < 3 && seed < 400; seed++ {
				s := NewScenario(seed)
				if !s.Rules().Lossless || s.Wrong != (lie == "refused request succeeds") || s.Window {
					continue
				}
				var l *liar
				_, err := Play(s, Options{Through: func(m *Model) Witness {
					l = &liar{Model: m, lie: lie, after: int(seed % 3)}
					return l
				}})
				if l.told && err == nil && l.kept == nil {
					t.Errorf("seed %d: nobody noticed", seed)
				}
				if l.told && err != nil {
					told++
				}
			}
			if told < 3 {
				t.Errorf("found out in %d runs", told)
			}
		})
	}
}
