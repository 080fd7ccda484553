package pmi

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// conn is a process' connection to its launcher. A goroutine reads, so that
// the end of the launcher is noticed between requests, too.
type conn struct {
	socket  io.ReadWriteCloser
	version int        // of PMI, 1 or 2
	asking  sync.Mutex // one question at a time
	writing sync.Mutex
	answers chan Message
	lost    chan struct{} // closed when the launcher is gone
	cause   error         // why lost; valid once lost is closed
}

func newConn(socket io.ReadWriteCloser, lines *boot.LineReader, version int) *conn {
	c := &conn{socket: socket, version: version, answers: make(chan Message, 1), lost: make(chan struct{})}
	go c.read(lines)
	return c
}

// Lost is closed when the launcher is gone.
func (c *conn) Lost() <-chan struct{} { return c.lost }

func (c *conn) read(lines *boot.LineReader) {
	defer close(c.lost)
	next, parse := lines.Next, Parse
	if c.version == 2 {
		next, parse = func() ([]byte, error) { return readFrame(lines) }, ParseFrame
	}
	for {
		text, err := next()
		if err != nil {
			c.cause = fmt.Errorf("%w (%w)", boot.ErrLost, err)
			return
		}
		m, err := parse(text)
		if err != nil {
			c.cause = fmt.Errorf("pmi: launcher: %w", err)
			return
		}
		select {
		case c.answers <- m:
		default:
			c.cause = fmt.Errorf("pmi: launcher: %q, and nobody has asked", m.Cmd)
			return
		}
	}
}

func (c *conn) send(m Message) error {
	text, err := encode(m, c.version)
	if err != nil {
		return fmt.Errorf("pmi: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.socket.Write(text); err != nil {
		return fmt.Errorf("%w (%w)", boot.ErrLost, err)
	}
	return nil
}

// encode returns a message as a version of PMI has it.
func encode(m Message, version int) ([]byte, error) {
	if version == 2 {
		return AppendFrame(nil, m)
	}
	return Append(nil, m)
}

// errRefused is wrapped by what ask returns for an answer that says no.
var errRefused = errors.New("the launcher refuses")

// ask sends a question and returns the answer, which has to be want.
func (c *conn) ask(want string, m Message) (Message, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.send(m); err != nil {
		return Message{}, err
	}
	select {
	case answer := <-c.answers:
		return answer, checkAnswer(answer, m.Cmd, want)
	case <-c.lost:
	}
	select {
	case answer := <-c.answers: // its last words
		return answer, checkAnswer(answer, m.Cmd, want)
	default:
		return Message{}, c.cause
	}
}

func checkAnswer(answer Message, asked, want string) error {
	if answer.Cmd != want {
		return fmt.Errorf("pmi: launcher: answers %s with %s: want %s", asked, answer.Cmd, want)
	}
	if rc := answer.Get("rc"); rc != "" && rc != "0" {
		return fmt.Errorf("pmi: %w %s (rc=%s, %s)", errRefused, asked, rc, answer.Get("msg")+answer.Get("errmsg"))
	}
	return nil
}

// question is a message with keys and values in turn.
func question(cmd string, keysAndValues ...string) Message {
	m := Message{Cmd: cmd}
	for i := 0; i < len(keysAndValues); i += 2 {
		m.Attrs = append(m.Attrs, Attr{keysAndValues[i], keysAndValues[i+1]})
	}
	return m
}
