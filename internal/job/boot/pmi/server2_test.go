package pmi

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// begin2 starts a session in version 2.
func begin2(t *testing.T, server *Server, rank int) (*Session, func() string) {
	t.Helper()
	s, said := listen(server, rank)
	if r, err := s.Handle([]byte("cmd=init pmi_version=2 pmi_subversion=0")); err != nil || r != nil || said() != "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" {
		t.Fatalf("%+v, %v", r, err)
	}
	return s, said
}

func TestSession_version2(t *testing.T) {
	s, said := begin2(t, NewServer("j", 4, "(vector,(0,2,2))"), 3)
	for _, c := range []struct {
		frame, answer string
		op            boot.Op // what the launcher has to do
	}{
		{"cmd=fullinit;pmirank=3;threaded=FALSE;",
			"cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=3;size=4;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;", boot.OpHello},
		{"cmd=job-getid;thrid=7;", "cmd=job-getid-response;thrid=7;jobid=xwarp-j;rc=0;", ""},
		{"cmd=info-getjobattr;key=PMI_process_mapping;wait=FALSE;", "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;", ""},
		{"cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;found=TRUE;value=4;rc=0;", ""},
		{"cmd=info-getjobattr;key=color;", "cmd=info-getjobattr-response;found=FALSE;rc=0;", ""},
		{"cmd=kvs-put;key=a;value=1;;2;", "cmd=kvs-put-response;rc=0;", boot.OpPut},
		{"cmd=kvs-put;key=;value=1;", "cmd=kvs-put-response;errmsg=invalid key or value;rc=1;", ""},
		{"cmd=kvs-put;key=a;value=" + strings.Repeat("x", 1024) + ";", "cmd=kvs-put-response;errmsg=invalid key or value;rc=1;", ""},
		{"cmd=kvs-get;key=a;", "cmd=kvs-get-response;found=TRUE;value=1;;2;rc=0;", ""},
		{"cmd=kvs-get;key=b;", "cmd=kvs-get-response;found=FALSE;rc=0;", ""},
		{"cmd=info-getnodeattr;key=n;wait=FALSE;", "cmd=info-getnodeattr-response;found=FALSE;rc=0;", ""},
		{"cmd=info-putnodeattr;key=;value=v;", "cmd=info-putnodeattr-response;errmsg=invalid key or value;rc=1;", ""},
		{"cmd=spawn;ncmds=1;", "cmd=spawn-response;errmsg=xrun does not support this;rc=1;", ""},
		{"cmd=kvs-fence;thrid=9;", "", boot.OpFence},
		{"cmd=finalize;", "cmd=finalize-response;rc=0;", boot.OpFinalize},
		{"cmd=abort;isworld=TRUE;msg=no more;", "", boot.OpAbort},
	} {
		request, err := s.Handle([]byte(c.frame))
		op := boot.Op("")
		if request != nil {
			op = request.Op
		}
		answer, ok := cutFrame(said())
		if err != nil || !ok || answer != c.answer || op != c.op {
			t.Errorf("%.80s: %q, %q, %v; want %q, %q", c.frame, answer, op, err, c.answer, c.op)
		}
	}
	s.Fenced()
	if answer, _ := cutFrame(said()); answer != "cmd=kvs-fence-response;thrid=9;rc=0;" {
		t.Errorf("after the fence: %q", answer)
	}
	if r, _ := s.Handle([]byte("cmd=abort;isworld=TRUE;msg=no more;")); r.Code != 1 || r.Why != "no more" {
		t.Errorf("%+v", r)
	}
	for _, frame := range []string{"", "nonsense", "cmd=dance;", "cmd=init pmi_version=2 pmi_subversion=0\n"} {
		if request, err := s.Handle([]byte(frame)); err == nil {
			t.Errorf("%q: %q, %+v", frame, said(), request)
		}
	}
}

// cutFrame returns what is in a frame, which may be missing.
func cutFrame(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	r := boot.NewLineReader(strings.NewReader(text))
	frame, err := readFrame(r)
	return string(frame), err == nil && len(frame)+lengthSize == len(text)
}

// A process waits for what another one of its host has to say.
func TestSession_waitsForOthers(t *testing.T) {
	server := NewServer("j", 2, "")
	one, oneHeard := begin2(t, server, 0)
	other, otherHeard := begin2(t, server, 1)
	if _, err := one.Handle([]byte("cmd=info-getnodeattr;thrid=t;key=file;wait=TRUE;")); err != nil || oneHeard() != "" {
		t.Errorf("it did not wait: %v", err)
	}
	if _, err := other.Handle([]byte("cmd=info-putnodeattr;key=file;value=/x;")); err != nil || !strings.Contains(otherHeard(), "rc=0;") {
		t.Error(err)
	}
	if got, _ := cutFrame(oneHeard()); got != "cmd=info-getnodeattr-response;thrid=t;found=TRUE;value=/x;rc=0;" {
		t.Errorf("%q", got)
	}
	if _, err := one.Handle([]byte("cmd=info-getnodeattr;key=file;wait=TRUE;")); err != nil || !strings.Contains(oneHeard(), "value=/x;") {
		t.Error("it waits for what is there")
	}
}

// A value of a rank that has no limits is no value for PMI.
func TestSession_valueTooLong(t *testing.T) {
	server := NewServer("j", 2, "")
	s, said := begin2(t, server, 0)
	server.Add([]boot.Value{{Rank: 1, Key: "k", Value: make([]byte, maxFrame)}})
	if _, err := s.Handle([]byte("cmd=kvs-get;key=k;")); err != nil {
		t.Error(err)
	}
	if answer, ok := cutFrame(said()); !ok || answer != tooLong {
		t.Errorf("%.80q", answer)
	}
}

func FuzzSession_version2(f *testing.F) {
	f.Add("14    cmd=kvs-fence;26    cmd=kvs-put;key=a;value=b;18    cmd=kvs-get;key=a;")
	f.Add("    51cmd=info-getnodeattr;thrid=a;key=file;wait=TRUE;;;;")
	f.Fuzz(func(t *testing.T, text string) {
		s, said := listen(NewServer("j", 2, "(vector,(0,1,2))"), 0)
		r := boot.NewLineReader(strings.NewReader("cmd=init pmi_version=2 pmi_subversion=0\n" + text))
		for i := 0; ; i++ {
			frame, err := s.Next(r)
			if err != nil {
				return
			}
			if _, err = s.Handle(frame); err != nil {
				return
			}
			if answer := said(); i > 0 {
				if _, ok := cutFrame(answer); !ok {
					t.Errorf("%q is answered with %q, which is not one frame", frame, answer)
				}
			}
		}
	})
}
