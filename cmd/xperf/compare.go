package main

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/bench"
)

// compare prints latency and bandwidth of MPI over AF_XDP beside MPI over
// kernel UDP and a plain TCP connection, each on hosts of its own, all
// measured in turns.
func (p *program) compare(o *options) error {
	contenders, err := bench.Contenders(bench.Root())
	if err != nil {
		return err
	}
	if !bench.Root() {
		p.notice("not root: no network namespaces and no AF_XDP, so kernel sockets are measured alone, on loopback of this host")
	}
	places := make([]*bench.Place, len(contenders))
	for i := range contenders {
		if places[i], err = p.openPlace(o); err != nil {
			return err
		}
	}
	for _, kind := range []bench.Kind{bench.PingPong, bench.Bandwidth} {
		if err := p.compareKind(o, kind, contenders, places); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) compareKind(o *options, kind bench.Kind, contenders []bench.Contender, places []*bench.Place) error {
	var sessions []*bench.Session
	for i, c := range contenders {
		spec := c.Latency
		if kind == bench.Bandwidth {
			spec = c.Bandwidth
		}
		spec.MTU = o.spec.MTU
		s, err := p.connect(places[i], spec, "")
		if err != nil {
			return errors.Join(err, closeAll(sessions))
		}
		sessions = append(sessions, s)
	}
	if !o.json {
		p.clear()
		if kind == bench.PingPong {
			s := sessions[0]
			if _, err := fmt.Fprintf(p.out, "%s, MTU %d, %s\n", s.Carrier, s.Spec.MTU, places[0].Name); err != nil {
				return errors.Join(err, closeAll(sessions))
			}
		}
		if err := bench.WriteComparison(p.out, kind, contenders); err != nil {
			return errors.Join(err, closeAll(sessions))
		}
	}
	rounds := 3
	if o.given["rounds"] {
		rounds = o.rounds
	}
	m := bench.Measurement{Rounds: rounds, Quick: true, Progress: p.progress}
	err := m.Measure(sessions, func(row bench.Row) error {
		p.clear()
		if o.json {
			row.Ratio = nil // there are columns and no A and B
			return row.WriteJSON(p.out)
		}
		return row.WriteColumns(p.out, kind)
	})
	return errors.Join(err, closeAll(sessions))
}
