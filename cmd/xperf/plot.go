package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/plot"
)

// keep remembers what was measured for --plot.
func (p *program) keep(row bench.Row) {
	for _, r := range row.Results {
		if r.Rounds > 0 {
			p.results = append(p.results, r)
		}
	}
}

// draw writes the charts that --plot asks for of what was measured so far.
func (p *program) draw(o *options) error {
	if o.plot == "" || len(p.results) == 0 {
		return nil
	}
	return writePlot(o.plot, bench.Charts(p.results))
}

// writePlot writes charts to a file, all of them or nothing.
func writePlot(file string, charts []plot.Chart) error {
	return writeDrawing(file, func(w io.Writer) error { return plot.Write(w, charts) })
}

// writeDrawing writes what draw draws to a file, all of it or nothing.
func writeDrawing(file string, draw func(io.Writer) error) error {
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// plotFiles draws what earlier runs have written with --json.
func (p *program) plotFiles(o *options) error {
	for _, name := range o.files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		results, err := bench.ReadResults(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.results = append(p.results, results...)
	}
	if len(p.results) == 0 {
		return fmt.Errorf("there are no results in %q", o.files)
	}
	if o.plot != "" {
		return p.draw(o)
	}
	return plot.Write(p.out, bench.Charts(p.results))
}
