package boot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What may be put fits into a line that a launcher and ranks take, whatever it is.
func TestQuota_fitsALine(t *testing.T) {
	for _, c := range []struct {
		key   string
		value []byte
	}{{"<", nil}, {strings.Repeat("<", MaxKey), nil}, {strings.Repeat("\u2028", MaxKey/3), []byte{1}}, {"k", bytes.Repeat([]byte{255}, MaxValue)}} {
		var q Quota
		var values []Value
		for q.TakeTotal(c.key, c.value) == nil {
			values = append(values, Value{1 << 16, c.key, c.value})
		}
		line, err := AppendLine(nil, Reply{Op: OpFenced, Values: values})
		if err != nil || len(line) > MaxLine {
			t.Errorf("%d values of %d and %d bytes: a line of %d, %v", len(values), len(c.key), len(c.value), len(line), err)
		}
	}
}

func TestQuota_refuses(t *testing.T) {
	var q Quota
	for what, err := range map[string]error{
		"a key has 257 bytes, and may have 256":                           q.Take(strings.Repeat("k", MaxKey+1), nil),
		`the value of "key" has 65537 bytes, and may have 65536`:          q.Take("key", make([]byte, MaxValue+1)),
		"a rank may put 1024 KiB in all; send what is more as messages":   takeAll(q.Take),
		"the ranks of a job may put 48 MiB together; use fewer ranks, or": takeAll(new(Quota).TakeTotal),
	} {
		if !errors.Is(err, ErrQuota) || !strings.Contains(fmt.Sprint(err), what) {
			t.Errorf("%v; want %q", err, what)
		}
	}
}

func takeAll(take func(string, []byte) error) (err error) {
	for err == nil {
		err = take("k", make([]byte, 1000))
	}
	return err
}

// A rank that puts too much is told so before its launcher ends the job.
func TestJoin_putsTooMuch(t *testing.T) {
	l, j := joinTo(t)
	go func() {
		for {
			if _, err := l.lines.Next(); err != nil {
				return
			}
		}
	}()
	if err := takeAll(func(k string, v []byte) error { return j.Put(k, string(v)) }); !errors.Is(err, ErrQuota) {
		t.Error(err)
	}
}

// What ranks say about themselves is no longer than what launchers read.
func TestJoin_longWords(t *testing.T) {
	l, j := joinTo(t)
	l.lines = NewRequestReader(l.f)
	go j.Abort(1, strings.Repeat("\x01", MaxRequest))
	if r := l.expect(OpAbort); len(r.Why) != maxWhy {
		t.Errorf("%d bytes of why", len(r.Why))
	}
	j.(Stateful).OnState(func() string { return strings.Repeat("x", MaxRequest) })
	l.say(Reply{Op: OpState})
	if r := l.expect(OpState); len(r.Value) != maxState {
		t.Errorf("%d bytes of what it does", len(r.Value))
	}
}

func TestNewRequestReader_refusesLongLines(t *testing.T) {
	r := NewRequestReader(strings.NewReader(strings.Repeat("x", MaxRequest+10_000) + "\n"))
	if _, err := r.Next(); !errors.Is(err, ErrLongLine) || !strings.Contains(err.Error(), "more than 524288 bytes") {
		t.Error(err)
	}
	if _, err := r.Piece(MaxRequest + 1); !errors.Is(err, ErrLongLine) {
		t.Error(err)
	}
}
