package main

import "github.com/xwarp/xwarp/bench"

// memory prints what one end keeps for its peers.
func (p *program) memory(o *options) error {
	config := bench.MemoryConfig{Progress: p.progress}
	if o.given["peers"] {
		config.Peers = bench.MemoryPeers(o.spec.Peers)
	}
	table := bench.MemoryTable{W: p.out, Markdown: o.markdown}
	var all []bench.Footprint
	notes, err := bench.Memory(config, func(row []bench.Footprint) error {
		p.clear()
		all = append(all, row...)
		if !o.json {
			return table.Row(row)
		}
		for _, f := range row {
			if err := f.WriteJSON(p.out); err != nil {
				return err
			}
		}
		return nil
	})
	for _, note := range notes {
		p.notice("%s", note)
	}
	if err != nil {
		return err
	}
	if !o.json {
		if err := table.Foot(); err != nil {
			return err
		}
	}
	if o.plot == "" {
		return nil
	}
	return writePlot(o.plot, bench.MemoryCharts(all))
}
