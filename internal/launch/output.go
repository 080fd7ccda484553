package launch

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// maxLine is the most bytes of a line that wait for its end. Longer lines are
// passed on in pieces.
const maxLine = 64 << 10

// promptPause is how long a rank that reads the standard input says nothing more
// before the line that it has begun is shown: it may be a question.
const promptPause = 200 * time.Millisecond

// forward passes what a rank writes on as whole lines: emit gets one or
// several, and what there is at the end, when a line is very long, or, unless pause is
// 0, when for that long no more came.
func forward(r io.Reader, pause time.Duration, emit func([]byte)) {
	l := lines{buf: make([]byte, 0, maxLine), emit: emit}
	quiet := time.AfterFunc(time.Hour, l.show)
	quiet.Stop() // until something was read
	defer quiet.Stop()
	for {
		n, err := r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.add(n, err != nil)
		if err != nil {
			return
		}
		if pause > 0 {
			quiet.Reset(pause)
		}
	}
}

// lines are what a rank writes, on its way.
type lines struct {
	mu    sync.Mutex // for show
	buf   []byte     // a line whose end is yet to come
	shown int        // bytes of it that were passed on
	emit  func([]byte)
}

// add passes on the lines whose ends are among n bytes that were read into what is free
// of the buffer, or all there is.
func (l *lines) add(n int, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := len(l.buf)
	l.buf = l.buf[:begun+n]
	whole := 0
	if end := bytes.LastIndexByte(l.buf[begun:], '\n'); end >= 0 {
		whole = begun + end + 1
	}
	if all || whole == 0 && len(l.buf) == cap(l.buf) {
		whole = len(l.buf)
	}
	if whole > l.shown {
		l.emit(l.buf[l.shown:whole])
	}
	if whole > 0 {
		l.buf, l.shown = l.buf[:copy(l.buf, l.buf[whole:])], 0
	}
}

// show passes on a line that has only begun.
func (l *lines) show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown < len(l.buf) {
		l.emit(l.buf[l.shown:])
		l.shown = len(l.buf)
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
// returns what went wrong. A job that was killed leaves it as it is while somebody
// waits for a reader who does not read.
func (p *printer) close(killed bool) error {
	if !p.mu.TryLock() {
		if killed {
			return nil
		}
		p.mu.Lock()
	}
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
		p.files.failed(s, rank, err)
	}
}
