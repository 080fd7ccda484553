package launch

import "io"

// stdinReader reads the standard input for the ranks that get it, one piece at a
// time: the next one when they have taken the one before. So a rank that does not
// read does not make us read either.
type stdinReader struct {
	data chan []byte // pieces; an empty one is the end
	next chan struct{}
	done chan struct{}
}

func newStdinReader(r io.Reader) *stdinReader {
	p := &stdinReader{data: make(chan []byte), next: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run(r)
	return p
}

// run stays blocked in Read for as long as r does, also after the job.
func (p *stdinReader) run(r io.Reader) {
	for p.wanted() {
		piece := make([]byte, 32<<10)
		n := 0
		for err := error(nil); r != nil && n == 0 && err == nil; {
			n, err = r.Read(piece)
		}
		select {
		case p.data <- piece[:n]:
		case <-p.done:
			return
		}
		if n == 0 {
			return
		}
	}
}

func (p *stdinReader) wanted() bool {
	select {
	case <-p.next:
		return true
	case <-p.done:
		return false
	}
}

// more asks for the next piece. It never blocks.
func (p *stdinReader) more() {
	select {
	case p.next <- struct{}{}:
	default:
	}
}

func (p *stdinReader) close() { close(p.done) }

// readers are the ranks that get the standard input.
type readers struct {
	busy    map[int]bool // true for those that have not taken the last piece yet, or have not been started
	waiting int          // how many that are
}

// newReaders returns the ranks that Config.StdinTo names.
func (c *Config) newReaders(size int) readers {
	r := readers{busy: map[int]bool{}}
	for rank := range size {
		if c.StdinTo == rank || c.StdinTo == StdinAll {
			r.busy[rank] = true
		}
	}
	r.waiting = len(r.busy)
	return r
}

// room notes that a rank can take a piece. It reports whether all can.
func (r *readers) room(rank int) bool {
	if !r.busy[rank] {
		return false
	}
	r.busy[rank] = false
	return r.next()
}

// gone notes that a rank takes no more. It reports whether the others all can.
func (r *readers) gone(rank int) bool {
	busy, reads := r.busy[rank]
	delete(r.busy, rank)
	if !reads || !busy {
		return false
	}
	return r.next()
}

// next counts down. When there is room for a piece everywhere it takes it.
func (r *readers) next() bool {
	if r.waiting--; r.waiting > 0 {
		return false
	}
	for rank := range r.busy {
		r.busy[rank] = true
	}
	r.waiting = len(r.busy)
	return r.waiting > 0
}
