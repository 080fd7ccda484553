package secure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is a connection of package net in the records of streams, for ends that block. One
// goroutine may read while others write.
type Conn struct {
	net.Conn
	x     *stream // keys and the record that was received; nothing else of it is used
	write sync.Mutex
	out   []byte // the record that is sent
}

// endWait is how long Close waits for room for the record that ends the stream.
const endWait = time.Second

// NewConn exchanges preambles over inner, which it owns from now on when err is nil: with
// [NewConn] at the other end, of which one has dialed. Both need the same secret; that they
// have shows with the first record. Its errors wrap ErrNotSecure if the other end says
// something else.
func NewConn(inner net.Conn, secret []byte, dialed bool) (*Conn, error) {
	s, err := NewStreams(nil, Config{Secret: secret})
	if err != nil {
		return nil, err
	}
	x := &stream{s: s, role: accepter}
	if dialed {
		x.role = dialer
	}
	x.draw()
	if _, err := inner.Write(x.pending); err != nil {
		return nil, err
	}
	var theirs [preambleLen]byte
	if n, err := io.ReadFull(inner, theirs[:]); err != nil && string(theirs[:min(n, len(Preamble))]) == Preamble[:min(n, len(Preamble))] {
		return nil, fmt.Errorf("%w (%w)", ErrNotSecure, err)
	}
	if x.know(theirs[:]); x.err != nil {
		return nil, x.err
	}
	x.in = make([]byte, 0, recordWhole)
	return &Conn{Conn: inner, x: x, out: make([]byte, recordWhole)}, nil
}

// Write sends b in records.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.write.Lock()
	defer c.write.Unlock()
	for n < len(b) {
		k := min(len(b)-n, recordMost)
		if err := c.send(kindData, b[n:n+k]); err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// send sends one record.
func (c *Conn) send(kind byte, b []byte) error {
	_, err := c.Conn.Write(c.x.seal(kind, append(c.out[:recordLen], b...), 0))
	return err
}

// Read receives what was sent. Its errors are ErrForged, ErrCutOff, and those of the
// connection below; io.EOF is authentic.
func (c *Conn) Read(b []byte) (int, error) {
	x := c.x
	for len(x.plain) == 0 {
		switch {
		case x.err != nil:
			return 0, x.err
		case x.eof:
			return 0, io.EOF
		}
		if err := c.record(); err != nil {
			return 0, err
		}
	}
	n := copy(b, x.plain)
	x.plain = x.plain[n:]
	return n, nil
}

// record receives the next record.
func (c *Conn) record() error {
	x := c.x
	x.at, x.in = 0, x.in[:recordLen]
	_, err := io.ReadFull(c.Conn, x.in)
	if n := int(binary.BigEndian.Uint16(x.in[1:])); err == nil && n > recordMost {
		err = ErrForged
	} else if err == nil {
		x.in = x.in[:recordLen+n+TagLen]
		_, err = io.ReadFull(c.Conn, x.in[recordLen:])
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		x.err = ErrCutOff
	case err != nil:
		x.err = err
	default:
		x.record()
	}
	return x.err
}

// Close tells the other end that nothing follows, if there is room for that, and closes the
// connection below.
func (c *Conn) Close() error {
	if c.write.TryLock() { // else a writer waits for room, and closing wakes it
		late := time.AfterFunc(endWait, func() { c.Conn.Close() })
		_ = c.send(kindEnd, nil) // the other end may be gone
		late.Stop()
		c.write.Unlock()
	}
	return c.Conn.Close()
}
