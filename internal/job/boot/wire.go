package boot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// A rank and its launcher talk in JSON, one object per line, over a socket
// that the rank inherits. The rank says hello, the launcher says welcome, the
// rank puts values and fences, and the launcher answers each fence with
// everything that was put since the one before. A launcher that lets ranks die
// alone tells the others. It may ask at any time what a rank does.

// WireVersion is the version of the protocol. A rank and a launcher of
// different versions refuse each other.
const WireVersion = 5

// MaxLine is the longest line of the protocol in bytes.
const MaxLine = 64 << 20

// Op says what a line means.
type Op string

// What a rank says.
const (
	OpHello    Op = "hello"
	OpPut      Op = "put"
	OpFence    Op = "fence"
	OpAbort    Op = "abort"
	OpFinalize Op = "finalize"
	OpState    Op = "state" // an answer to the launcher's
)

// What a launcher says, besides OpState.
const (
	OpWelcome Op = "welcome"
	OpFenced  Op = "fenced"
	OpEnded   Op = "ended"
)

// Request is a line from a rank.
type Request struct {
	Op      Op     `json:"op"`
	Version int    `json:"version,omitempty"` // hello
	Key     string `json:"key,omitempty"`     // put
	Value   []byte `json:"value,omitempty"`   // put, state
	Code    int    `json:"code,omitempty"`    // abort
	Why     string `json:"why,omitempty"`     // abort
}

// Value is what a rank has put.
type Value struct {
	Rank  int    `json:"rank"`
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// Reply is a line from a launcher.
type Reply struct {
	Op      Op      `json:"op"`
	Version int     `json:"version,omitempty"`        // welcome
	JobKey  uint64  `json:"job_key,string,omitempty"` // welcome
	Secret  []byte  `json:"secret,omitempty"`         // welcome: of a job that is encrypted
	Values  []Value `json:"values,omitempty"`         // fenced
	Ranks   []int   `json:"ranks,omitempty"`          // ended
}

// ParseRequest reads a line from a rank.
func ParseRequest(line []byte) (Request, error) {
	var r Request
	if err := unmarshal(line, &r); err != nil {
		return Request{}, err
	}
	switch r.Op {
	case OpHello:
		if r.Version != WireVersion {
			return Request{}, versionError(r.Version)
		}
	case OpPut:
		if err := checkKey(r.Key); err != nil {
			return Request{}, err
		}
	case OpFence, OpAbort, OpFinalize, OpState:
	default:
		return Request{}, fmt.Errorf("unknown request %.32q", r.Op)
	}
	return r, nil
}

// ParseReply reads a line from a launcher.
func ParseReply(line []byte) (Reply, error) {
	var r Reply
	if err := unmarshal(line, &r); err != nil {
		return Reply{}, err
	}
	switch r.Op {
	case OpWelcome:
		if r.Version != WireVersion {
			return Reply{}, versionError(r.Version)
		}
		if n := len(r.Secret); n != 0 && n != SecretLen {
			return Reply{}, fmt.Errorf("secret of %d bytes", n)
		}
	case OpFenced:
		for _, v := range r.Values {
			if v.Rank < 0 {
				return Reply{}, fmt.Errorf("value of rank %d", v.Rank)
			}
			if err := checkKey(v.Key); err != nil {
				return Reply{}, err
			}
		}
	case OpEnded:
		for _, rank := range r.Ranks {
			if rank < 0 {
				return Reply{}, fmt.Errorf("end of rank %d", rank)
			}
		}
	case OpState:
	default:
		return Reply{}, fmt.Errorf("unknown reply %.32q", r.Op)
	}
	return r, nil
}

func unmarshal(line []byte, into any) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("malformed line %.64q: %w", line, err)
	}
	return nil
}

func versionError(got int) error {
	return fmt.Errorf("xrun and the program speak different versions (%d here, %d there): build both from the same source", WireVersion, got)
}

func checkKey(key string) error {
	if key == "" || !utf8.ValidString(key) {
		return fmt.Errorf("key %.32q: want a non-empty UTF-8 string", key)
	}
	return nil
}

// AppendLine appends v as one line.
func AppendLine(b []byte, v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	return append(append(b, line...), '\n'), nil
}

// ErrLongLine says that a peer sent more bytes without an end than it may.
var ErrLongLine = errors.New("line too long")

// LineReader reads lines of limited length, or pieces of a known length.
type LineReader struct {
	r   *bufio.Reader
	buf []byte
	max int
}

// NewLineReader returns a LineReader on r, of lines of up to MaxLine bytes.
func NewLineReader(r io.Reader) *LineReader {
	return &LineReader{r: bufio.NewReader(r), max: MaxLine}
}

// NewRequestReader returns a LineReader on what a rank says, in lines of up to MaxRequest
// bytes.
func NewRequestReader(r io.Reader) *LineReader {
	return &LineReader{r: bufio.NewReader(r), max: MaxRequest}
}

// Next returns the next line without its end. The bytes are valid until the
// next call. Input that ends inside a line gives io.ErrUnexpectedEOF.
func (l *LineReader) Next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		if len(l.buf) > l.max {
			return nil, l.tooLong()
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(l.buf, []byte{'\n'}), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

func (l *LineReader) tooLong() error { return fmt.Errorf("%w: more than %d bytes", ErrLongLine, l.max) }

// Piece returns the next n bytes, valid until the next call. Input that ends
// inside them gives io.ErrUnexpectedEOF.
func (l *LineReader) Piece(n int) ([]byte, error) {
	if n > l.max {
		return nil, l.tooLong()
	}
	l.buf = slices.Grow(l.buf[:0], n)[:n]
	_, err := io.ReadFull(l.r, l.buf)
	return l.buf, err
}
