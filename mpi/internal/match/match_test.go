package match

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// item is what the tests queue. id is unique.
type item struct {
	entry Entry[item]
	id    int
}

func newItem(id int, e Envelope) *item {
	it := &item{id: id}
	it.entry.Envelope, it.entry.Owner = e, it
	return it
}

func owner(e *Entry[item]) *item {
	if e == nil {
		return nil
	}
	return e.Owner
}

// fits is MPI's matching rule, word for word.
func fits(receive, message Envelope) bool {
	return receive.Context == message.Context &&
		(receive.Source == Any || receive.Source == message.Source) &&
		(receive.Tag == Any || receive.Tag == message.Tag)
}

// oracle is the queue as the standard describes it: a list searched from its
// oldest end.
type oracle []*item

func (o *oracle) take(fit func(Envelope) bool) *item {
	for i, it := range *o {
		if fit(it.entry.Envelope) {
			*o = append((*o)[:i], (*o)[i+1:]...)
			return it
		}
	}
	return nil
}

func (o oracle) find(fit func(Envelope) bool) *item {
	for _, it := range o {
		if fit(it.entry.Envelope) {
			return it
		}
	}
	return nil
}

func TestPosted_oldestFirstAcrossWildcards(t *testing.T) {
	message := Envelope{1, 7, 9}
	patterns := []Envelope{{1, 7, 9}, {1, Any, 9}, {1, 7, Any}, {1, Any, Any}}
	for first := range patterns {
		for second := range patterns {
			var q Posted[item]
			a, b := newItem(0, patterns[first]), newItem(1, patterns[second])
			q.Post(&a.entry)
			q.Post(&b.entry)
			for i, want := range []*item{a, b, nil} {
				if got := owner(q.Match(message)); got != want {
					t.Errorf("posted %v then %v: message %d went to %v", patterns[first], patterns[second], i, got)
				}
			}
		}
	}
}

func TestPosted_contextsAreApart(t *testing.T) {
	var q Posted[item]
	it := newItem(0, Envelope{1, Any, Any})
	q.Post(&it.entry)
	if q.Match(Envelope{2, 0, 0}) != nil {
		t.Fatal("a receive with wildcards took a message of another communicator")
	}
	if q.Match(Envelope{1, 0, 0}) == nil {
		t.Fatal("the receive is gone")
	}
}

func TestUnexpected_arrivalOrder(t *testing.T) {
	var q Unexpected[item]
	sent := []Envelope{{1, 3, 5}, {1, 4, 5}, {1, 3, 6}, {1, 3, 5}}
	var items []*item
	for i, e := range sent {
		items = append(items, newItem(i, e))
		q.Add(&items[i].entry)
	}
	for _, step := range []struct {
		receive Envelope
		want    int
	}{
		{Envelope{1, 3, 6}, 2},
		{Envelope{1, Any, 5}, 0},
		{Envelope{1, 3, Any}, 3},
		{Envelope{1, Any, Any}, 1},
	} {
		if e := q.Find(step.receive); owner(e) != items[step.want] {
			t.Errorf("Find(%v) = %v, want message %d", step.receive, owner(e), step.want)
		}
		if e := q.Match(step.receive); owner(e) != items[step.want] {
			t.Errorf("Match(%v) = %v, want message %d", step.receive, owner(e), step.want)
		}
	}
	if q.Len() != 0 || q.Match(Envelope{1, Any, Any}) != nil {
		t.Error("messages are left")
	}
}

func TestUnexpected_huge(t *testing.T) {
	var q Unexpected[item]
	const n = 20000
	for i := range n {
		it := newItem(i, Envelope{1, int32(i % 7), 1<<31 - 1 - int32(i%3)})
		q.Add(&it.entry)
	}
	for i := range n {
		if got := owner(q.Match(Envelope{1, Any, Any})); got == nil || got.id != i {
			t.Fatalf("message %d: got %v", i, got)
		}
	}
}

// pair runs one operation on the queues and on the oracle, and fails when
// they disagree.
type pair struct {
	t          testing.TB
	posted     Posted[item]
	unexpected Unexpected[item]
	receives   oracle
	messages   oracle
	ids        int
}

func (p *pair) same(what string, got, want *item) {
	if got != want {
		p.t.Fatalf("%s: got %v, the standard wants %v", what, got, want)
	}
}

// receive does what MPI_Irecv does.
func (p *pair) receive(r Envelope) {
	fit := func(m Envelope) bool { return fits(r, m) }
	p.same(fmt.Sprint("probe ", r), owner(p.unexpected.Find(r)), p.messages.find(fit))
	got := owner(p.unexpected.Match(r))
	p.same(fmt.Sprint("receive ", r), got, p.messages.take(fit))
	if got == nil {
		p.ids++
		it := newItem(p.ids, r)
		p.posted.Post(&it.entry)
		p.receives = append(p.receives, it)
	}
}

// arrive does what the arrival of a message does.
func (p *pair) arrive(m Envelope) {
	got := owner(p.posted.Match(m))
	p.same(fmt.Sprint("message ", m), got, p.receives.take(func(r Envelope) bool { return fits(r, m) }))
	if got == nil {
		p.ids++
		it := newItem(p.ids, m)
		p.unexpected.Add(&it.entry)
		p.messages = append(p.messages, it)
	}
}

// cancel removes an entry that waits.
func (p *pair) cancel(n int) {
	if len(p.receives) > 0 {
		it := p.receives[n%len(p.receives)]
		p.receives.take(func(Envelope) bool { return false })
		for i, have := range p.receives {
			if have == it {
				p.receives = append(p.receives[:i], p.receives[i+1:]...)
				break
			}
		}
		p.posted.Remove(&it.entry)
	}
	if p.posted.Len() != len(p.receives) || p.unexpected.Len() != len(p.messages) {
		p.t.Fatalf("lengths %d %d, want %d %d", p.posted.Len(), p.unexpected.Len(), len(p.receives), len(p.messages))
	}
}

func TestMatch_againstOracle(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := &pair{t: t}
		// How many values there are decides how long the queues grow; the
		// bias decides which of the two does.
		sources, tags, contexts := 1+rnd.IntN(5), 1+rnd.IntN(6), 1+rnd.IntN(3)
		wild, bias := rnd.Float64()*0.6, 0.3+rnd.Float64()*0.4
		for range 1500 {
			e := Envelope{uint32(rnd.IntN(contexts)), int32(rnd.IntN(sources)), int32(rnd.IntN(tags))}
			switch u := rnd.Float64(); {
			case u < 0.02:
				p.cancel(rnd.IntN(1 << 20))
			case u < bias:
				p.arrive(e)
			default:
				if rnd.Float64() < wild {
					e.Source = Any
				}
				if rnd.Float64() < wild {
					e.Tag = Any
				}
				p.receive(e)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestMatch_exhaustive tries every sequence of five operations (of four with
// the race detector) over two sources, two tags and their wildcards.
func TestMatch_exhaustive(t *testing.T) {
	var ops []func(*pair)
	for _, s := range []int32{0, 1, Any} {
		for _, g := range []int32{0, 1, Any} {
			e := Envelope{3, s, g}
			ops = append(ops, func(p *pair) { p.receive(e) })
			if s != Any && g != Any {
				ops = append(ops, func(p *pair) { p.arrive(e) })
			}
		}
	}
	depth, total := 5, 1
	if slow {
		depth = 4
	}
	for range depth {
		total *= len(ops)
	}
	for n := range total {
		p := &pair{t: t}
		for rest, i := n, 0; i < depth; i++ {
			ops[rest%len(ops)](p)
			rest /= len(ops)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte{0x00, 0x81, 0x42, 0xff, 0x10})
	f.Add([]byte{0x07, 0x39, 0x01, 0x3f, 0x87, 0x81, 0x97, 0x89}) // wildcards, and two are cancelled
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := &pair{t: t}
		for _, op := range ops {
			e := Envelope{uint32(op >> 6 & 1), int32(op >> 3 & 7), int32(op & 7)}
			if op&0x80 != 0 && e.Tag == 7 {
				p.cancel(int(e.Source))
				continue
			}
			if op&0x80 != 0 {
				p.arrive(e)
				continue
			}
			if e.Source == 7 {
				e.Source = Any
			}
			if e.Tag == 7 {
				e.Tag = Any
			}
			p.receive(e)
		}
		p.cancel(len(ops))
	})
}

func TestAllocs_match(t *testing.T) {
	var posted Posted[item]
	var unexpected Unexpected[item]
	exact, wild := newItem(0, Envelope{1, 2, 3}), newItem(1, Envelope{1, Any, Any})
	late := newItem(2, Envelope{1, 2, 3})
	n := testing.AllocsPerRun(100, func() {
		posted.Post(&exact.entry)
		posted.Post(&wild.entry)
		posted.Match(Envelope{1, 2, 3})
		posted.Match(Envelope{1, 2, 3})
		unexpected.Add(&late.entry)
		unexpected.Match(Envelope{1, Any, 3})
	})
	if n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}

func BenchmarkPosted(b *testing.B) {
	var q Posted[item]
	it := newItem(0, Envelope{1, 2, 3})
	for b.Loop() {
		q.Post(&it.entry)
		q.Match(Envelope{1, 2, 3})
	}
}

func BenchmarkUnexpected(b *testing.B) {
	var q Unexpected[item]
	it := newItem(0, Envelope{1, 2, 3})
	for b.Loop() {
		q.Add(&it.entry)
		q.Match(Envelope{1, 2, 3})
	}
}
