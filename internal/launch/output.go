package launch

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
)

// maxLine is the most bytes of a line that wait for its end. Longer lines are
// passed on in pieces.
const maxLine = 64 << 10

// forward passes what a rank writes on as whole lines: emit gets one or
// several, and at the end, or when a line is very long, what there is.
func forward(r io.Reader, emit func([]byte)) {
	buf := make([]byte, 0, maxLine)
	for {
		begun := len(buf) // bytes of a line whose end is yet to come
		n, err := r.Read(buf[begun:cap(buf)])
		buf = buf[:begun+n]
		whole := 0
		if end := bytes.LastIndexByte(buf[begun:], '\n'); end >= 0 {
			whole = begun + end + 1
		} else if len(buf) == cap(buf) {
			whole = len(buf)
		}
		if err != nil {
			whole = len(buf)
		}
		if whole > 0 {
			emit(buf[:whole])
			buf = buf[:copy(buf, buf[whole:])]
		}
		if err != nil {
			return
		}
	}
}

// printer merges the output of the ranks line by line.
type printer struct {
	mu      sync.Mutex
	tag     bool
	streams [2]stream // output and error output
	files   *outputFiles

	order bool // output by rank, or as it comes
	turn  int  // the rank whose output is not held back
	gone  map[int]bool
	held  map[int][]byte
}

type stream struct {
	w    io.Writer
	rank int // whose line is unfinished, or -1
	buf  []byte
	file *os.File // that it is, or nil
}

// newPrinter returns the printer of a job with these files.
func newPrinter(c Config, files *outputFiles) *printer {
	return &printer{
		tag: c.TagOutput, streams: [2]stream{{w: c.Stdout, rank: -1}, {w: c.Stderr, rank: -1}}, files: files,
		order: c.OrderOutput, gone: map[int]bool{}, held: map[int][]byte{},
	}
}

// errors returns where agents, and what starts them on other hosts, write what is
// wrong. A file is theirs as it is; whatever else there is takes one at a time.
func (p *printer) errors() io.Writer {
	switch w := p.streams[1].w.(type) {
	case nil:
		return nil
	case *os.File:
		return w
	}
	return (*agentErrors)(p)
}

type agentErrors printer

func (e *agentErrors) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams[1].w.Write(b)
}

// print writes what a rank has written: lines, the last one perhaps
// unfinished. A line that another rank has left unfinished is ended first.
func (p *printer) print(rank int, stderr bool, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.order && !stderr && rank > p.turn {
		p.held[rank] = append(p.held[rank], data...)
		return
	}
	p.write(rank, stderr, data)
}

// ended notes that all of a rank's output is there, which may be what the
// output of others waits for.
func (p *printer) ended(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[rank] = true
	for p.gone[p.turn] {
		delete(p.gone, p.turn)
		p.turn++
		p.write(p.turn, false, p.held[p.turn])
		delete(p.held, p.turn)
	}
}

// close writes what is held back: nothing more comes that it could wait for. It
// returns what went wrong with files.
func (p *printer) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rank := range slices.Sorted(maps.Keys(p.held)) {
		p.write(rank, false, p.held[rank])
	}
	clear(p.held)
	return p.files.close()
}

func (p *printer) write(rank int, stderr bool, data []byte) {
	if len(data) == 0 {
		return
	}
	which := 0
	if stderr {
		which = 1
	}
	s := &p.streams[which]
	if files := p.files.of[which]; files != nil {
		s = files[rank]
	}
	if s.w == nil {
		return
	}
	s.buf = s.buf[:0]
	begun := s.rank == rank
	if s.rank >= 0 && !begun {
		s.buf = append(s.buf, '\n')
	}
	for line := range bytes.Lines(data) {
		if p.tag && !begun {
			s.buf = fmt.Appendf(s.buf, "[%d] ", rank)
		}
		s.buf = append(s.buf, line...)
		begun = false
	}
	s.rank = -1
	if data[len(data)-1] != '\n' {
		s.rank = rank
	}
	if _, err := s.w.Write(s.buf); err != nil { // a closed terminal is no reason to end the job
		p.files.failed(s, err)
	}
}
