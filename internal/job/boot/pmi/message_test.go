package pmi

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]Message{
		"cmd=get_maxes": {Cmd: "get_maxes"},
		"cmd=init pmi_version=1 pmi_subversion=1":              question("init", "pmi_version", "1", "pmi_subversion", "1"),
		"  cmd=put  kvsname=k_1 key=a value=x=y=\r":            question("put", "kvsname", "k_1", "key", "a", "value", "x=y="),
		"cmd=get_result rc=0 value=(vector,(0,1,1))":           question("get_result", "rc", "0", "value", "(vector,(0,1,1))"),
		"cmd=get_result rc=-1 msg=key not found value=unknown": question("get_result", "rc", "-1", "msg", "key not found", "value", "unknown"),
		"cmd=get_result value=":                                question("get_result", "value", ""),
	} {
		if m, err := Parse([]byte(line)); err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%q: %+v, %v; want %+v", line, m, err, want)
		}
	}
}

func TestParse_refuses(t *testing.T) {
	for _, line := range []string{"", " ", "cmd=", "init", "pmi_version=1 cmd=init", "mcmd=spawn", "cmd=x y", "cmd=x =y"} {
		if m, err := Parse([]byte(line)); err == nil {
			t.Errorf("%q: %+v", line, m)
		}
	}
}

func TestAppend_refuses(t *testing.T) {
	for _, m := range []Message{
		{}, {Cmd: "a b"}, {Cmd: "a\n"}, question("a", "", "x"), question("a", "k=", "x"), question("a", "k ", "x"),
		question("a", "k", "x y"), question("a", "k", "x\ncmd=abort"), question("a", "k", " "),
	} {
		if b, err := Append([]byte("before"), m); err == nil || string(b) != "before" {
			t.Errorf("%+v: %q", m, b)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("cmd=init pmi_version=1 pmi_subversion=1")
	f.Add("cmd=get_result rc=0 msg=success value=(vector,(0,1,1))")
	f.Add("cmd=get_result rc=-1 msg=no such key")
	f.Fuzz(func(t *testing.T, line string) {
		m, err := Parse([]byte(line))
		if err != nil {
			return
		}
		for i := range m.Attrs { // what was said to people is not for the wire
			m.Attrs[i].Value = strings.Join(strings.Fields(m.Attrs[i].Value), "_")
		}
		again, err := Append(nil, m)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if m2, err := Parse(again); err != nil || !reflect.DeepEqual(m, m2) {
			t.Errorf("%q became %q: %+v, %v; want %+v", line, again, m2, err, m)
		}
	})
}
