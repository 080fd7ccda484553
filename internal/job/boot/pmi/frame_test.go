package pmi

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

func TestParseFrame(t *testing.T) {
	for frame, want := range map[string]Message{
		"cmd=kvs-fence;": {Cmd: "kvs-fence"},
		"cmd=fullinit;pmijobid=3.0;pmirank=0;threaded=FALSE;": question("fullinit", "pmijobid", "3.0", "pmirank", "0", "threaded", "FALSE"),
		"cmd=kvs-put;key=a;value=;":                           question("kvs-put", "key", "a", "value", ""),
		"cmd=abort;isworld=TRUE;msg=no; more;; x=y\n;":        {},
		"cmd=abort;isworld=TRUE;msg=no;; more = y\n\x00;;;":   question("abort", "isworld", "TRUE", "msg", "no; more = y\n\x00;"),
	} {
		m, err := ParseFrame([]byte(frame))
		if want.Cmd == "" {
			if err == nil {
				t.Errorf("%q: %+v", frame, m)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%q: %+v, %v; want %+v", frame, m, err, want)
		}
	}
}

func TestParseFrame_refuses(t *testing.T) {
	for _, frame := range []string{"", ";", "cmd=;", "cmd=x", "cmd", "cmd;", "x=y;", "key=a;cmd=x;", "cmd=x;y;", "cmd=x;=y;", "cmd=x;a;;b=c;", "cmd=x;a=b;;"} {
		if m, err := ParseFrame([]byte(frame)); err == nil {
			t.Errorf("%q: %+v", frame, m)
		}
	}
}

func TestAppendFrame_refuses(t *testing.T) {
	for _, m := range []Message{
		{}, question("a", "", "x"), question("a", "k=", "x"), question("a", "k;", "x"), question("a", "k", strings.Repeat("x", maxFrame)),
	} {
		if b, err := AppendFrame([]byte("before"), m); err == nil || string(b) != "before" {
			t.Errorf("%.20q: %.20q", m.Cmd, b)
		}
	}
}

// The length has blanks on the left in hydra and on the right in Slurm.
func TestReadFrame(t *testing.T) {
	r := boot.NewLineReader(strings.NewReader("cmd=response_to_init\n    14cmd=kvs-fence;14    cmd=kvs-fence;000000" + "000009cmd=a;"))
	if line, err := r.Next(); err != nil || string(line) != "cmd=response_to_init" {
		t.Errorf("%q, %v", line, err)
	}
	for _, want := range []string{"cmd=kvs-fence;", "cmd=kvs-fence;", ""} {
		if frame, err := readFrame(r); err != nil || string(frame) != want {
			t.Errorf("%q, %v; want %q", frame, err, want)
		}
	}
	if _, err := readFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that is cut off: %v", err)
	}
	if _, err := readFrame(r); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	for _, head := range []string{"      ", "1 4   ", "-00001", "0x0010", "cmd=in"} {
		if _, err := readFrame(boot.NewLineReader(strings.NewReader(head + "..."))); !errors.Is(err, ErrLength) {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add("cmd=fullinit;pmijobid=3.0;pmirank=0;threaded=FALSE;")
	f.Add("cmd=kvs-get-response;rc=0;found=TRUE;value=(vector,(0,1,1));")
	f.Add("cmd=abort;isworld=TRUE;msg=no;; more;;;")
	f.Fuzz(func(t *testing.T, frame string) {
		m, err := ParseFrame([]byte(frame))
		if err != nil {
			return
		}
		again, err := AppendFrame(nil, m)
		if err != nil {
			if len(frame) < maxFrame {
				t.Fatalf("%q: %v", frame, err)
			}
			return
		}
		body, err := readFrame(boot.NewLineReader(strings.NewReader(string(again))))
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		if m2, err := ParseFrame(body); err != nil || !reflect.DeepEqual(m, m2) {
			t.Errorf("%q became %q: %+v, %v; want %+v", frame, again, m2, err, m)
		}
	})
}
