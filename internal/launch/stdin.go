package launch

import "io"

// stdinPump reads the standard input for rank 0, one piece at a time: the next
// one when the rank has taken the one before. So a rank that does not read
// does not make us read either.
type stdinPump struct {
	data chan []byte // pieces; an empty one is the end
	next chan struct{}
	done chan struct{}
}

func newStdinPump(r io.Reader) *stdinPump {
	p := &stdinPump{data: make(chan []byte), next: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run(r)
	return p
}

// run stays blocked in Read for as long as r does, also after the job.
func (p *stdinPump) run(r io.Reader) {
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

func (p *stdinPump) wanted() bool {
	select {
	case <-p.next:
		return true
	case <-p.done:
		return false
	}
}

// more asks for the next piece. It never blocks.
func (p *stdinPump) more() {
	select {
	case p.next <- struct{}{}:
	default:
	}
}

func (p *stdinPump) close() { close(p.done) }
