package bench

import (
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// flow is what a client sends to one of its peers, with a window of its own. Counts
// are of messages since the test was opened.
type flow struct {
	qp     *verbs.QP
	ah     *verbs.AH // of datagrams
	qpn    uint32    // likewise
	goal   uint64    // in all
	posted uint64
	done   uint64 // the peer has them
}

// flows sends to several peers in turns.
type flows struct {
	*endpoint
	each []flow
}

// flowBits of a WRID are the number of the flow; the others count its messages.
const flowBits = 8

// push posts n messages, as many to each peer, and waits until all are done: news
// takes note of those that are. Only whole windows are sent.
func (f *flows) push(n, window int, news func() error) error {
	for i := range f.each {
		f.each[i].goal += uint64(n / len(f.each))
	}
	var turns spin
	for f.busy() {
		for posted := true; posted; {
			var err error
			if posted, err = f.round(uint64(window)); err != nil {
				return err
			}
		}
		if err := f.step(&turns); err != nil {
			return err
		}
		if err := news(); err != nil {
			return err
		}
	}
	return nil
}

func (f *flows) busy() bool {
	return slices.ContainsFunc(f.each, func(to flow) bool { return to.done != to.goal })
}

// round posts one message to each peer that has room in its window and lacks
// messages.
func (f *flows) round(window uint64) (posted bool, err error) {
	every := max(window/4, 1)
	for i := range f.each {
		to := &f.each[i]
		if to.posted == to.goal || to.posted-to.done == window {
			continue
		}
		to.posted++
		posted = true
		f.wr.AH, f.wr.RemoteQPN = to.ah, to.qpn
		f.wr.WRID = to.posted<<flowBits | uint64(i)
		f.wr.Flags &^= verbs.Signaled
		if to.posted%every == 0 || to.posted == to.goal {
			f.wr.Flags |= verbs.Signaled
		}
		if err := to.qp.PostSend(&f.wr); err != nil {
			return posted, err
		}
	}
	return posted, nil
}

// sent takes completions, each of which stands for all messages of its flow before
// it, and hands them to fn.
func (f *flows) sent(fn func(i int, count uint64)) error {
	n := f.sends.Poll(f.wc[:])
	for i := range f.wc[:n] {
		wc := &f.wc[i]
		at := int(wc.WRID & (1<<flowBits - 1))
		if wc.Status != verbs.Success {
			return f.failed(f.to(at), wc)
		}
		fn(at, wc.WRID>>flowBits)
	}
	return nil
}

// to says what is sent where, for people.
func (f *flows) to(i int) string {
	if ah := f.each[i].ah; ah != nil {
		return f.wr.Opcode.String() + " to " + ah.Remote().String()
	}
	return f.wr.Opcode.String()
}
