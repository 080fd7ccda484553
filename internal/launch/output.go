package launch

import (
	"bytes"
	"fmt"
	"io"
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
}

type stream struct {
	w    io.Writer
	rank int // whose line is unfinished, or -1
	buf  []byte
}

func newPrinter(stdout, stderr io.Writer, tag bool) *printer {
	return &printer{tag: tag, streams: [2]stream{{w: stdout, rank: -1}, {w: stderr, rank: -1}}}
}

// print writes what a rank has written: lines, the last one perhaps
// unfinished. A line that another rank has left unfinished is ended first.
func (p *printer) print(rank int, stderr bool, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.streams[0]
	if stderr {
		s = &p.streams[1]
	}
	if s.w == nil || len(data) == 0 {
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
	_, _ = s.w.Write(s.buf) // a closed terminal is no reason to end the job
}
