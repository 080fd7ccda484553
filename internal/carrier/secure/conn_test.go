package secure

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// tapped is a connection of which a test keeps what is sent, and changes it.
type tapped struct {
	net.Conn
	sent   []byte
	change func([]byte) []byte // of one Write; nil: as it is
}

func (c *tapped) Write(b []byte) (int, error) {
	c.sent = append(c.sent, b...)
	out := b
	if c.change != nil {
		out = c.change(slices.Clone(b))
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sockets returns the two ends of a connection over loopback.
func sockets(t *testing.T) (dialed, accepted *tapped) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return &tapped{Conn: a}, &tapped{Conn: b}
}

// conns returns the ends of an encrypted connection, and what is below the first.
func conns(t *testing.T, first, second []byte) (a, b *Conn, below *tapped) {
	t.Helper()
	x, y := sockets(t)
	done := make(chan error)
	go func() {
		var err error
		b, err = NewConn(y, second, false)
		done <- err
	}()
	a, err := NewConn(x, first, true)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return a, b, x
}

// Whole texts go both ways at once, nothing of them can be read on the way, and the end is
// authentic.
func TestConn_exchange(t *testing.T) {
	a, b, below := conns(t, counting(), counting())
	text := strings.Repeat("it can be read. ", 30_000)
	done := make(chan error, 2)
	for _, from := range []*Conn{a, b} {
		go func() {
			_, err := from.Write([]byte(text))
			done <- errors.Join(err, from.send(kindEnd, nil))
		}()
	}
	for _, to := range []*Conn{a, b} {
		if got, err := io.ReadAll(to); string(got) != text || err != nil {
			t.Errorf("%d bytes arrive of %d: %v", len(got), len(text), err)
		}
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if bytes.Contains(below.sent, []byte("read")) {
		t.Error("it is in clear")
	}
	a, b, _ = conns(t, counting(), counting())
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if n, err := b.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	_ = a.Close() // again: nothing happens
}

// Records that are changed, sent twice, left out or cut off, and ends with different secrets
// or that do not encrypt, are errors that say so.
func TestConn_tampered(t *testing.T) {
	const text = "one record"
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"changed":    {func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, ErrForged},
		"sent twice": {func(b []byte) []byte { return append(b, b...) }, ErrForged},
		"cut off":    {func(b []byte) []byte { return b[:len(b)-1] }, ErrCutOff},
		"too long":   {func(b []byte) []byte { b[1] = 0xff; return b }, ErrForged},
		"left out":   {func([]byte) []byte { return nil }, ErrCutOff},
	} {
		a, b, below := conns(t, counting(), counting())
		below.change = c.change
		if _, err := a.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		below.Close()
		got, err := io.ReadAll(b)
		if !errors.Is(err, c.want) || string(got) != "" && string(got) != text || name == "changed" && len(got) > 0 {
			t.Errorf("%s: %q, %v, want %v", name, got, err, c.want)
		}
		if _, again := b.Read(make([]byte, 1)); !errors.Is(again, c.want) {
			t.Errorf("%s: then %v", name, again)
		}
	}
	a, b, _ := conns(t, counting(), bytes.Repeat([]byte{9}, SecretLen))
	for _, ends := range [][2]*Conn{{a, b}, {b, a}} {
		if _, err := ends[0].Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := ends[1].Read(make([]byte, 10)); !errors.Is(err, ErrForged) {
			t.Errorf("another secret: %v", err)
		}
	}
	for _, says := range []string{`{"op":"hello","version":3}`, "xw", ""} {
		x, y := sockets(t)
		if _, err := y.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
		if err := y.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := NewConn(x, counting(), true); !errors.Is(err, ErrNotSecure) {
			t.Errorf("%q instead of a preamble: %v", says, err)
		}
	}
}
