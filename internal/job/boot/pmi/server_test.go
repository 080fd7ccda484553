package pmi

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// listen starts a session, and returns what reads what was said to the process
// since it was called last.
func listen(server *Server, rank int) (s *Session, said func() string) {
	var text string
	s = server.NewSession(rank, 0, func(answer string) { text += answer })
	return s, func() string {
		defer func() { text = "" }()
		return text
	}
}

func TestSession(t *testing.T) {
	server := NewServer("j", 4, "(vector,(0,2,2))")
	s, said := listen(server, 0)
	for _, c := range []struct {
		line, answer string
		op           boot.Op // what the launcher has to do
	}{
		{"cmd=init pmi_version=3 pmi_subversion=0", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", ""},
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", boot.OpHello},
		{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n", ""},
		{"cmd=get_appnum", "cmd=appnum appnum=0\n", ""},
		{"cmd=get_universe_size", "cmd=universe_size size=4\n", ""},
		{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=xwarp-j\n", ""},
		{"cmd=get kvsname=xwarp-j key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n", ""},
		{"cmd=get kvsname=xwarp-j key=a", "cmd=get_result rc=-1 msg=not_found value=unknown\n", ""},
		{"cmd=put kvsname=xwarp-j key=a value=1", "cmd=put_result rc=0 msg=success\n", boot.OpPut},
		{"cmd=put kvsname=other key=a value=2", "cmd=put_result rc=-1 msg=invalid_key_or_value\n", ""},
		{"cmd=put kvsname=xwarp-j key=\xff value=2", "cmd=put_result rc=-1 msg=invalid_key_or_value\n", ""},
		{"cmd=put kvsname=xwarp-j value=2", "cmd=put_result rc=-1 msg=invalid_key_or_value\n", ""},
		{"cmd=put kvsname=xwarp-j key=a value=" + strings.Repeat("x", 1024), "cmd=put_result rc=-1 msg=invalid_key_or_value\n", ""},
		{"cmd=get kvsname=xwarp-j key=a", "cmd=get_result rc=0 msg=success value=1\n", ""},
		{"cmd=barrier_in", "", boot.OpFence},
		{"mcmd=spawn", "", ""},
		{"nprocs=1", "", ""},
		{"cmd=barrier_in", "", ""}, // an argument of spawn
		{"endcmd", "cmd=spawn_result rc=-1 msg=not_supported\n", ""},
		{"cmd=lookup_name service=x", "cmd=lookup_result rc=-1 info=not_supported msg=not_supported\n", ""},
		{"cmd=finalize", "cmd=finalize_ack\n", boot.OpFinalize},
		{"cmd=abort exitcode=7 error_msg=no more", "", boot.OpAbort},
		{"cmd=abort", "", boot.OpAbort},
	} {
		request, err := s.Handle([]byte(c.line))
		answer := said()
		op := boot.Op("")
		if request != nil {
			op = request.Op
		}
		if err != nil || answer != c.answer || op != c.op {
			t.Errorf("%s: %q, %q, %v; want %q, %q", c.line, answer, op, err, c.answer, c.op)
		}
	}
	if r, _ := s.Handle([]byte("cmd=abort exitcode=7 error_msg=no more")); r.Code != 7 || r.Why != "no more" {
		t.Errorf("%+v", r)
	}
	for _, line := range []string{"", "nonsense", "cmd=dance"} {
		if request, err := s.Handle([]byte(line)); err == nil {
			t.Errorf("%q: %q, %+v", line, said(), request)
		}
	}
}

// What one session says reaches others of the host at once, and others of the
// job by Add.
func TestServer_sessionsShareATable(t *testing.T) {
	server := NewServer("j", 2, strings.Repeat("x", 2000))
	one, _ := listen(server, 0)
	other, said := listen(server, 1)
	if _, err := one.Handle([]byte("cmd=put kvsname=xwarp-j key=a value=1")); err != nil {
		t.Fatal(err)
	}
	server.Add([]boot.Value{{Rank: 1, Key: "b", Value: []byte("2")}})
	for key, want := range map[string]string{"a": "value=1", "b": "value=2", mappingKey: "not_found"} {
		_, err := other.Handle([]byte("cmd=get kvsname=xwarp-j key=" + key))
		if answer := said(); err != nil || !strings.Contains(answer, want) {
			t.Errorf("%s: %q, %v; want %s", key, answer, err, want)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=xwarp-j key=a value=b\ncmd=get key=a")
	f.Add("mcmd=spawn\nx\nendcmd\ncmd=abort exitcode=x")
	f.Fuzz(func(t *testing.T, lines string) {
		s, said := listen(NewServer("j", 2, "(vector,(0,1,2))"), 0)
		for line := range strings.SplitSeq(lines, "\n") {
			_, err := s.Handle([]byte(line))
			answer := said()
			if err != nil || s.version == 2 {
				return
			}
			if answer != "" && strings.Index(answer, "\n") != len(answer)-1 {
				t.Errorf("%q is answered with %q, which is not one line", line, answer)
			}
		}
	})
}
