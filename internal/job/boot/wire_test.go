package boot

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestParseRequest_roundTrip(t *testing.T) {
	for _, want := range []Request{
		{Op: OpHello, Version: WireVersion},
		{Op: OpPut, Key: "addr", Value: []byte{0, 0xff, '\n', 'x'}},
		{Op: OpFence},
		{Op: OpAbort, Code: 7, Why: "line one\nline two"},
		{Op: OpFinalize},
	} {
		line, err := AppendLine(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseRequest(line[:len(line)-1])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", line, got, err, want)
		}
		if bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Errorf("%q is not one line", line)
		}
	}
}

func TestParseReply_roundTrip(t *testing.T) {
	for _, want := range []Reply{
		{Op: OpWelcome, Version: WireVersion, JobKey: 1<<64 - 1},
		{Op: OpFenced},
		{Op: OpEnded, Ranks: []int{7, 0}},
		{Op: OpFenced, Values: []Value{{Rank: 3, Key: "a", Value: []byte("b")}, {Key: "empty", Value: []byte{}}}},
	} {
		line, err := AppendLine(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseReply(line[:len(line)-1])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", line, got, err, want)
		}
	}
}

func TestParse_refusesNonsense(t *testing.T) {
	for _, line := range []string{
		"", "x", "{}", `{"op":"dance"}`, `{"op":"fence"} {}`, `{"op":"fence"`, `[]`, `null`,
		`{"op":"put"}`, `{"op":"put","key":"a","value":"not base64!"}`, `{"op":"put","key":7}`,
		`{"op":"hello"}`, `{"op":"hello","version":999}`, `{"op":"abort","code":"x"}`,
		`{"op":"welcome","version":1}`, `{"op":"welcome","version":2,"job_key":7}`,
		`{"op":"fenced","values":[{"rank":-1,"key":"a"}]}`, `{"op":"fenced","values":[{"rank":1}]}`,
		`{"op":"ended","ranks":[3,-1]}`,
	} {
		if r, err := ParseRequest([]byte(line)); err == nil {
			t.Errorf("request %q: %+v", line, r)
		}
		if r, err := ParseReply([]byte(line)); err == nil {
			t.Errorf("reply %q: %+v", line, r)
		}
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	r := NewLineReader(strings.NewReader("one\n\n" + long + "\nrest"))
	for _, want := range []string{"one", "", long} {
		got, err := r.Next()
		if err != nil || string(got) != want {
			t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
		}
	}
	if got, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v at the end of half a line", got, err)
	}
	if _, err := NewLineReader(strings.NewReader("")).Next(); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
	r = NewLineReader(strings.NewReader(long))
	r.max = 1000
	if _, err := r.Next(); !errors.Is(err, ErrLongLine) {
		t.Errorf("%v for a long line", err)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"op":"put","key":"addr","value":"AAEC"}`))
	f.Add([]byte(`{"op":"abort","code":7,"why":"x"}`))
	f.Add([]byte(`{"op":"hello","version":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRequest(line)
		if err != nil {
			return
		}
		again, err := AppendLine(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := ParseRequest(again); err != nil || r2.Op != r.Op || r2.Key != r.Key || !bytes.Equal(r2.Value, r.Value) {
			t.Errorf("%q became %+v, then %+v, %v", line, r, r2, err)
		}
	})
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte(`{"op":"welcome","version":2,"job_key":"7"}`))
	f.Add([]byte(`{"op":"fenced","values":[{"rank":0,"key":"a","value":"AA=="}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseReply(line)
		if err != nil {
			return
		}
		again, err := AppendLine(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := ParseReply(again); err != nil || r2.Op != r.Op || len(r2.Values) != len(r.Values) || r2.JobKey != r.JobKey {
			t.Errorf("%q became %+v, then %+v, %v", line, r, r2, err)
		}
	})
}
