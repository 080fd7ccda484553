package mpa

import (
	"testing"
)

func TestStartup_bothEnds(t *testing.T) {
	var i Initiator
	var r Responder
	req, err := i.Start(Config{IRD: 4, ORD: 4, CRC: true}, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := r.Request(req); n != len(req) || err != nil {
		t.Fatal(n, err)
	}
	rep, ra, err := r.Accept(Config{IRD: 8, ORD: 2}, []byte("world"))
	if err != nil {
		t.Fatal(err)
	}
	n, ia, err := i.Reply(rep)
	if n != len(rep) || err != nil {
		t.Fatal(n, err)
	}
	t.Logf("%+v\n%+v", ia, ra)
}
