package bench

import (
	"fmt"
	"io"

	"github.com/xwarp/xwarp/internal/base/trace"
)

// knowing is a Bench on a carrier that counts what it loses.
type knowing interface {
	losses() trace.Losses
	detail() string // how the carrier is used
}

func lossesOf(b Bench) (l trace.Losses) {
	if k, ok := b.(knowing); ok {
		l = k.losses()
	}
	return l
}

func detailOf(b Bench) string {
	if k, ok := b.(knowing); ok {
		return k.detail()
	}
	return ""
}

func (f *frameBench) losses() trace.Losses { return f.port.Stats().Losses() }
func (f *frameBench) detail() string       { return f.port.Caps().Detail() }

func (p *endpoint) losses() trace.Losses { return p.ctx.Losses() }
func (p *endpoint) detail() string       { return p.ctx.Attr().CarrierDetail }

func (m *mpiBench) losses() trace.Losses { return m.ctx.Losses() }
func (m *mpiBench) detail() string       { return m.ctx.Attr().CarrierDetail }

// Losses is what the carriers of both ends have lost, of frames and datagrams.
type Losses struct {
	Here  trace.Losses `json:"here"`
	There trace.Losses `json:"there"`
}

// note notes what both ends have lost since the test was opened.
func (s *Session) note(here trace.Losses, there *trace.Losses) {
	s.lost.Here = here
	if there != nil {
		s.lost.There = *there
	}
}

// lostSince returns what was lost since it was asked the last time, or nil.
func (s *Session) lostSince() *Losses {
	l := &Losses{s.lost.Here.Since(s.told.Here), s.lost.There.Since(s.told.There)}
	s.told = s.lost
	if *l == (Losses{}) {
		return nil
	}
	return l
}

// explain adds to an error what this end has lost, which may be why the other one
// seems silent.
func explain(err error, b Bench) error {
	if text := lossesOf(b).String(); err != nil && text != "" {
		return fmt.Errorf("%w; here %s", err, text)
	}
	return err
}

// warn tells what is lost and should not be. That there is no room is common where
// nothing waits for the receiver, and the tables have what became of it.
func (l *Losses) warn(w io.Writer) error {
	if l == nil {
		return nil
	}
	for _, end := range []struct {
		name string
		lost trace.Losses
	}{{"here", l.Here}, {"at the other end", l.There}} {
		end.lost.NoRoom = 0
		if text := end.lost.String(); text != "" {
			if _, err := fmt.Fprintf(w, "# %s %s\n", end.name, text); err != nil {
				return err
			}
		}
	}
	return nil
}
