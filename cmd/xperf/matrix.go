package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/peers"
)

// matrix measures what is missing of tables, keeps it, and prints what all that is kept
// comes to.
func (p *program) matrix(o *options, m peers.Measurement, tables []peers.Table) (err error) {
	var x peers.Matrix
	keep := io.Discard
	if o.out != "" {
		file, err := openMatrix(&x, o.out, tables != nil)
		if err != nil {
			return err
		}
		defer file.Close()
		keep = file
	}
	left, rows := x.Missing(tables, m.Peers)
	if o.quick {
		quick := m.Quick()
		if o.given["rounds"] {
			quick.Rounds = m.Rounds
		}
		if o.given["duration"] {
			quick.Burst = m.Burst
		}
		m = quick
	}
	emit := p.emit(o, func(peers.Table, int, []bench.Result) { rows-- })
	err = m.Measure(left, func(t peers.Table, size int, results []bench.Result) error {
		return errors.Join(x.Keep(keep, results), emit(t, size, results))
	})
	p.clear()
	if !o.json {
		err = errors.Join(err, x.Write(p.out, o.markdown))
	}
	if rows > 0 {
		p.notice("%d rows are left: runs with the same --out FILE go on where the last one ended", rows)
	}
	if o.plot == "" {
		return err
	}
	return errors.Join(err, writeDrawing(o.plot, x.Heat().Write))
}

// openMatrix reads what a file has, which may be new if it is to be added to.
func openMatrix(x *peers.Matrix, name string, add bool) (*os.File, error) {
	mode := os.O_RDONLY
	if add {
		mode = os.O_RDWR | os.O_CREATE | os.O_APPEND
	}
	file, err := os.OpenFile(name, mode, 0o644)
	if err != nil {
		return nil, err
	}
	lines, err := io.ReadAll(file)
	complete := 0
	if err == nil {
		complete, err = x.Read(lines)
	}
	if err == nil && add && complete < len(lines) {
		err = file.Truncate(int64(complete))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--out %s: %w", name, err), file.Close())
	}
	return file, nil
}
