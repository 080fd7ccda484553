package launch

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// outputPiece is the most bytes that are read of what a rank writes at a time.
const outputPiece = 64 << 10

// promptPause is how long a rank that reads a terminal says nothing more before the
// line that it has begun is shown there: it may be a question.
const promptPause = 200 * time.Millisecond

// forward passes on what a rank writes, as it comes. r is the report that says so.
func (o *outbox) forward(from io.Reader, r report) {
	for {
		b := o.lend()
		n, err := from.Read(b.data())
		if n > 0 {
			o.postOutput(r, b, n)
		} else {
			o.recycle(b)
		}
		if err != nil {
			return
		}
	}
}

// printer merges the output of the ranks line by line. It changes nothing in it, but
// for tags: a line that a rank has begun waits for its end, and without one for the
// end of the job. Only on a terminal is what has no end shown before, and ended by the
// line of another rank.
type printer struct {
	mu      sync.Mutex
	tag     bool
	streams [2]stream // output and error output
	sources [2][]source
	files   *outputFiles

	order bool // output by rank, or as it comes
	turn  int  // the rank whose output is not held back
	gone  map[int]bool
}

// stream is where output goes.
type stream struct {
	w     io.Writer
	last  *source // whose line it ends with, unfinished; or nil
	tty   bool
	alone bool // it is of one rank, and nothing can come between its pieces
	buf   []byte
	file  *os.File // that it is, or nil
}

// source is an output of a rank.
type source struct {
	rank int
	to   *stream
	held backlog     // a line that has begun, or all that waits for its turn
	ask  *time.Timer // shows what may be a question; nil: it cannot be one
}

// newPrinter returns the printer of a job with that many ranks and ghosts, and these files,
// which ranks have.
func newPrinter(c Config, ranks, ghosts int, files *outputFiles) *printer {
	p := &printer{
		tag: c.TagOutput, streams: [2]stream{{w: c.Stdout}, {w: c.Stderr}}, files: files,
		order: c.OrderOutput, gone: map[int]bool{},
	}
	same := sameFile(c.Stdout, c.Stderr)
	for which := range p.streams {
		s := &p.streams[which]
		s.tty, s.alone = isTerminal(s.w), ranks == 1 && !same
		p.sources[which] = make([]source, ranks+ghosts)
		for rank := range ranks + ghosts {
			o := &p.sources[which][rank]
			o.rank, o.to = rank, s
			if of := files.of[which]; of != nil && rank < ranks {
				o.to = of[rank]
			}
			if o.to.tty && isTerminal(c.Stdin) && rank < ranks && (c.StdinTo == rank || c.StdinTo == StdinAll) {
				o.ask = time.AfterFunc(time.Hour, func() { p.show(o) })
				o.ask.Stop() // until a line has begun
			}
		}
	}
	return p
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	if !ok || f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var no error
	err = raw.Control(func(fd uintptr) { _, no = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	return err == nil && no == nil
}

// widen gives a pipe room for many pieces, where the kernel has it: then writer and
// reader wake each other seldom.
func widen(pipe any) {
	f, ok := pipe.(*os.File)
	if !ok {
		return
	}
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

func sameFile(a, b io.Writer) bool {
	f, ok := a.(*os.File)
	g, also := b.(*os.File)
	if !ok || !also {
		return false
	}
	x, err := f.Stat()
	y, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
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

// print takes what a rank has written, as it has come.
func (p *printer) print(rank int, stderr bool, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	which := 0
	if stderr {
		which = 1
	}
	o := &p.sources[which][rank]
	switch {
	case o.to.w == nil:
	case p.order && !stderr && rank > p.turn:
		o.held.add(data)
	default:
		p.take(o, data)
	}
}

// take writes the lines whose ends have come.
func (p *printer) take(o *source, data []byte) {
	whole := len(data)
	if !o.to.alone {
		whole = bytes.LastIndexByte(data, '\n') + 1
	}
	if whole > 0 {
		p.flush(o)
		p.write(o, data[:whole])
	}
	o.held.add(data[whole:])
	if o.held.full { // there is no room for what has no end
		p.flush(o)
	}
	if o.ask != nil {
		o.ask.Reset(promptPause)
	}
}

// flush writes all that is held of a source.
func (p *printer) flush(o *source) {
	if err := o.held.drain(func(b []byte) { p.write(o, b) }); err != nil {
		p.files.failed(o.to, o.rank, err)
	}
}

// show writes a line that has only begun.
func (p *printer) show(o *source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.order || o.rank <= p.turn || o.to != &p.streams[0] {
		p.flush(o)
	}
}

// ended notes that all of a rank's output is there, which may be what the
// output of others waits for.
func (p *printer) ended(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for which := range p.sources {
		o := &p.sources[which][rank]
		if o.to.tty && (!p.order || which == 1) {
			p.flush(o)
		}
	}
	if !p.order {
		return
	}
	p.gone[rank] = true
	for p.gone[p.turn] {
		p.flush(&p.sources[0][p.turn])
		delete(p.gone, p.turn)
		if p.turn++; p.turn == len(p.sources[0]) {
			return
		}
		o := &p.sources[0][p.turn]
		held := o.held
		o.held = backlog{}
		if err := held.drain(func(b []byte) { p.take(o, b) }); err != nil {
			p.files.failed(o.to, o.rank, err)
		}
	}
}

// close writes what is held back: nothing more comes that it could wait for. It
// returns what went wrong. A job that was killed leaves it as it is while a goroutine
// waits for a reader that does not read.
func (p *printer) close(killed bool) error {
	if !p.mu.TryLock() {
		if killed {
			return nil
		}
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	for which := range p.sources {
		for rank := range p.sources[which] {
			p.flush(&p.sources[which][rank])
		}
	}
	return p.files.close()
}

// write writes what a rank has written.
func (p *printer) write(o *source, data []byte) {
	s := o.to
	if len(data) == 0 {
		return
	}
	begun := s.last == o
	s.buf = s.buf[:0]
	if s.last != nil && !begun && (p.tag || s.tty) {
		s.buf = append(s.buf, '\n')
	}
	s.last = nil
	if data[len(data)-1] != '\n' {
		s.last = o
	}
	if p.tag {
		s.appendTagged(o.rank, begun, data)
		data = nil
	}
	if len(s.buf) > 0 {
		data = append(s.buf, data...)
		s.buf = data[:0]
	}
	if _, err := s.w.Write(data); err != nil { // a closed terminal is no reason to end the job
		p.files.failed(s, o.rank, err)
	}
}

// appendTagged appends lines with the number of their rank in front of each, but for
// the rest of one that has begun.
func (s *stream) appendTagged(rank int, begun bool, data []byte) {
	tag := append(strconv.AppendInt([]byte{'['}, int64(rank), 10), "] "...)
	for line := range bytes.Lines(data) {
		if !begun {
			s.buf = append(s.buf, tag...)
		}
		s.buf = append(s.buf, line...)
		begun = false
	}
}
