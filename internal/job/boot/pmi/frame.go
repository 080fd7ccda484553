package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// After its first line version 2 speaks in frames: six bytes with the length of
// what follows in decimal, blanks on one side or the other, and then
// "cmd=name;key=value;key=value;". A semicolon in a value is doubled; values may
// hold anything else.

// lengthSize is the size of the length of a frame, and maxFrame what it can say.
const (
	lengthSize = 6
	maxFrame   = 999_999
)

// ErrLength says that a frame does not begin with its length.
var ErrLength = errors.New("pmi: no length of a command")

// readFrame returns the next frame without its length. It is valid until the next
// call.
func readFrame(r *boot.LineReader) ([]byte, error) {
	head, err := r.Piece(lengthSize)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(strings.Trim(string(head), " "), 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrLength, head)
	}
	return r.Piece(int(n))
}

// ParseFrame reads a frame without its length.
func ParseFrame(frame []byte) (Message, error) {
	var m Message
	for i, rest := 0, frame; len(rest) > 0; i++ {
		pair, after, ok := cutPair(rest)
		if !ok {
			return Message{}, fmt.Errorf("%.64q does not end with a semicolon", frame)
		}
		rest = after
		key, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || key == "" || strings.Contains(key, ";"):
			return Message{}, fmt.Errorf("%.32q in %.64q is no key=value", pair, frame)
		case i > 0:
			m.Attrs = append(m.Attrs, Attr{key, value})
		case key != "cmd" || value == "":
			return Message{}, fmt.Errorf("%.64q does not start with cmd=", frame)
		default:
			m.Cmd = value
		}
	}
	if m.Cmd == "" {
		return Message{}, fmt.Errorf("empty command")
	}
	return m, nil
}

// cutPair returns what is before the first semicolon that is not doubled, with the
// doubled ones made one, and what is after it.
func cutPair(b []byte) (pair string, rest []byte, ok bool) {
	var text []byte
	for {
		end := bytes.IndexByte(b, ';')
		if end < 0 {
			return "", nil, false
		}
		text, b = append(text, b[:end]...), b[end+1:]
		if len(b) == 0 || b[0] != ';' {
			return string(text), b, true
		}
		text, b = append(text, ';'), b[1:]
	}
}

// AppendFrame appends m as a frame with its length.
func AppendFrame(b []byte, m Message) ([]byte, error) {
	var body []byte
	for _, a := range append([]Attr{{"cmd", m.Cmd}}, m.Attrs...) {
		if a.Key == "" || strings.ContainsAny(a.Key, "=;") {
			return b, fmt.Errorf("%.32q: key %.32q", m.Cmd, a.Key)
		}
		body = append(append(append(body, a.Key...), '='), strings.ReplaceAll(a.Value, ";", ";;")...)
		body = append(body, ';')
	}
	switch {
	case m.Cmd == "":
		return b, fmt.Errorf("no command")
	case len(body) > maxFrame:
		return b, fmt.Errorf("%.32q: %d bytes, and a command of PMI has up to %d", m.Cmd, len(body), maxFrame)
	}
	return append(fmt.Appendf(b, "%-*d", lengthSize, len(body)), body...), nil
}
