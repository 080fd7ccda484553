package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/bench"
)

// compare prints latency and bandwidth of several ways to move messages side
// by side, each on hosts of its own, all measured in turns.
func (p *program) compare(o *options) error {
	comparison, err := bench.FindComparison(o.table, bench.Root())
	if err != nil {
		return err
	}
	if o.given["size"] {
		comparison.Only(o.spec.Sizes)
	}
	if !bench.Root() {
		p.notice("not root: no network namespaces and no AF_XDP, so kernel sockets are measured alone, on loopback of this host")
	}
	places := make([]*bench.Place, len(comparison.Contenders))
	for i := range places {
		if places[i], err = p.openPlace(o); err != nil {
			return err
		}
	}
	for _, kind := range []bench.Kind{bench.PingPong, bench.Bandwidth} {
		if err := p.compareKind(o, kind, comparison, places); err != nil {
			return err
		}
	}
	return p.draw(o)
}

func (p *program) compareKind(o *options, kind bench.Kind, c bench.Comparison, places []*bench.Place) (err error) {
	var sessions []*bench.Session
	defer func() { err = errors.Join(err, closeAll(sessions)) }()
	table := bench.Table{W: p.out, Kind: kind, Markdown: o.markdown}
	for i, contender := range c.Contenders {
		spec := contender.Latency
		if kind == bench.Bandwidth {
			spec = contender.Bandwidth
		}
		spec.MTU, spec.Loss = o.spec.MTU, o.spec.Loss
		s, err := p.connect(places[i], spec, "")
		if errors.Is(err, bench.ErrNoSize) {
			continue // no column
		}
		if err != nil {
			return err
		}
		sessions, table.Contenders = append(sessions, s), append(table.Contenders, contender)
	}
	if len(sessions) == 0 {
		return fmt.Errorf("%w: not by any column of %s", bench.ErrNoSize, c.Name)
	}
	if !o.json {
		p.clear()
		if kind == bench.PingPong {
			if _, err := fmt.Fprintf(p.out, "%s, MTU %d, %s\n", sessions[0].Carrier, sessions[0].Spec.MTU, places[0].Name); err != nil {
				return err
			}
		}
		if err := table.Head(); err != nil {
			return err
		}
	}
	m := bench.Measurement{Rounds: cmp.Or(o.rounds, 3), Duration: o.duration, Quick: true, Progress: p.progress}
	err = m.Tabulate(sessions, c.Sizes, func(size int, row bench.Row) error {
		p.clear()
		p.keep(row)
		if o.json {
			return row.WriteJSON(p.out)
		}
		return table.Row(size, row)
	})
	if err != nil || o.json {
		return err
	}
	return table.Foot()
}
