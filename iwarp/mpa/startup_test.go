package mpa

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
)

// frame puts a start-up frame together by hand: flags and revision, then the
// private data, in hexadecimal digits.
func frame(t *testing.T, key, control, private string) []byte {
	t.Helper()
	c, err := hex.DecodeString(control)
	p, err2 := hex.DecodeString(strings.ReplaceAll(private, " ", ""))
	if err != nil || err2 != nil || len(c) != 2 {
		t.Fatal(control, private, err, err2)
	}
	b := append([]byte(key), c...)
	return append(append(b, byte(len(p)>>8), byte(len(p))), p...)
}

// What siw answers, by its captures and by probing it, when both it and its
// application offer an IRD and an ORD of 4; and what we do.
func TestResponder_probes(t *testing.T) {
	const user = "aabbccdd"
	tests := []struct {
		name             string
		control, private string // of the Request
		reply, replied   string // control and private data of the Reply
		want             Agreed // without private data
	}{
		{"rev 1", "0001", "", "0001", user, Agreed{Revision: 1, IRD: 4, ORD: 4}},
		{"rev 1, C", "4001", "", "4001", user, Agreed{Revision: 1, CRC: true, IRD: 4, ORD: 4}},
		{"rev 1 with S, which it does not have", "1001", "", "0001", user, Agreed{Revision: 1, IRD: 4, ORD: 4}},
		{"rev 1 with S and private data", "1001", "ff", "0001", user, Agreed{Revision: 1, IRD: 4, ORD: 4}},
		{"rev 1, M: siw rejects", "8001", "", "0001", user, Agreed{Revision: 1, SendMarkers: true, IRD: 4, ORD: 4}},
		{"rev 2 without S", "0002", "", "0002", user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"rev 2", "1002", "0004 0004", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"rev 2, C", "5002", "0004 0004", "5002", "0004 0004" + user, Agreed{Revision: 2, CRC: true, IRD: 4, ORD: 4}},
		{"rev 2, M and C", "d002", "0004 0004", "5002", "0004 0004" + user, Agreed{Revision: 2, CRC: true, SendMarkers: true, IRD: 4, ORD: 4}},
		{"IRD 0 ORD 0", "1002", "0000 0000", "1002", "0004 0000" + user, Agreed{Revision: 2, IRD: 4, ORD: 0}},
		{"IRD 1 ORD 64: siw raises its IRD", "1002", "0001 0040", "1002", "0004 0001" + user, Agreed{Revision: 2, IRD: 4, ORD: 1}},
		{"IRD and ORD not to be agreed upon", "1002", "3fff 3fff", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"p2p, Write or Read", "1002", "8004 c004", "1002", "8004 8004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4, RTR: RTRWrite}},
		{"p2p, Write", "1002", "8004 8004", "1002", "8004 8004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4, RTR: RTRWrite}},
		{"p2p, Read", "1002", "8004 4004", "1002", "8004 4004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4, RTR: RTRRead}},
		{"p2p, Send: siw answers Write", "1002", "c004 0004", "1002", "c004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4, RTR: RTRSend}},
		{"p2p, nothing", "1002", "8004 0004", "1002", "8004 8004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4, RTR: RTRWrite}},
		{"kinds without p2p", "1002", "4004 c004", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"reserved flags: siw returns them", "1f02", "0004 0004", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"R in a Request", "3002", "0004 0004", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"private data", "1002", "0004 0004 0102030405", "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
		{"508 bytes of it: siw resets", "1002", "0004 0004" + strings.Repeat("55", 508), "1002", "0004 0004" + user, Agreed{Revision: 2, IRD: 4, ORD: 4}},
	}
	for _, tt := range tests {
		var r Responder
		req := frame(t, keyRequest, tt.control, tt.private)
		n := frameEnd(t, req, func(b []byte) (int, error) {
			n, reply, err := r.Request(b)
			if reply != nil {
				t.Errorf("%s: answered by % x", tt.name, reply)
			}
			return n, err
		})
		pd, _ := hex.DecodeString(user)
		reply, a, err := r.Accept(Config{IRD: 4, ORD: 4}, pd)
		if want := frame(t, keyReply, tt.reply, tt.replied); n != len(req) || err != nil || !bytes.Equal(reply, want) {
			t.Errorf("%s: Reply % x, want % x (%v)", tt.name, reply[16:], want[16:], err)
		}
		tt.want.Private = req[frameLen:]
		if r.req.Enhanced {
			tt.want.Private = req[frameLen+enhancedLen:]
		}
		if !same(a, tt.want) {
			t.Errorf("%s: agreed on %+v, want %+v", tt.name, a, tt.want)
		}
	}
}

func same(a, b Agreed) bool {
	pa, pb := a.Private, b.Private
	a.Private, b.Private = nil, nil
	return bytes.Equal(pa, pb) && a.Revision == b.Revision && a.CRC == b.CRC && a.SendMarkers == b.SendMarkers &&
		a.RecvMarkers == b.RecvMarkers && a.IRD == b.IRD && a.ORD == b.ORD && a.RTR == b.RTR
}

func TestResponder_refuses(t *testing.T) {
	long := frame(t, keyRequest, "1002", "0004 0004"+strings.Repeat("55", 508))
	long[18], long[19] = 2, 1
	tests := []struct {
		name  string
		b     []byte
		reply []byte
		say   string
	}{
		{"wrong key", frame(t, "MPA ID Bad Frame", "1002", "00040004"), nil, "no start-up frame"},
		{"wrong from the first byte", []byte("GET / HTTP/1.1"), nil, "no start-up frame"},
		{"Reply key", frame(t, keyReply, "1002", "00040004"), nil, "no start-up frame"},
		{"rev 0, the Consortium's", frame(t, keyRequest, "0000", ""), nil, "revision 0"},
		{"rev 3", frame(t, keyRequest, "1003", "00040004"), nil, "revision 3"},
		{"513 bytes of private data", long, nil, "513 bytes"},
		{"S without IRD and ORD", frame(t, keyRequest, "1002", ""), frame(t, keyReply, "2002", ""), "enhanced"},
		{"S with 3 bytes, and C", frame(t, keyRequest, "5002", "000400"), frame(t, keyReply, "6002", ""), "enhanced"},
		{"bytes behind the Request", append(frame(t, keyRequest, "1002", "00040004"), 0), nil, "before"},
		{"an FPDU behind the Request", append(frame(t, keyRequest, "0001", ""), 0, 14, 0xc1, 0x40), nil, "before"},
	}
	for _, tt := range tests {
		var r Responder
		n, reply, err := r.Request(tt.b)
		var perr *ProtocolError
		if n != 0 || !errors.As(err, &perr) || !errors.Is(err, iwarp.LLPStartup) || !bytes.Equal(reply, tt.reply) {
			t.Errorf("%s: %d, % x, %v", tt.name, n, reply, err)
			continue
		}
		if perr.Terminate || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v (Terminate %v)", tt.name, err, perr.Terminate)
		}
	}
}

// What siw does with odd Replies, and we: see probe by probe.
func TestInitiator_probes(t *testing.T) {
	two := Config{IRD: 4, ORD: 8}
	p2p := Config{IRD: 4, ORD: 8, RTR: RTRWrite | RTRRead}
	tests := []struct {
		name             string
		c                Config
		control, private string
		want             Agreed
		cause            iwarp.Cause // when it fails
		terminate        bool
	}{
		{"as asked for", two, "1002", "0008 0004", Agreed{Revision: 2, IRD: 4, ORD: 8}, 0, false},
		{"less than asked for", two, "1002", "0002 0001", Agreed{Revision: 2, IRD: 1, ORD: 2}, 0, false},
		{"nothing", two, "1002", "0000 0000", Agreed{Revision: 2}, 0, false},
		{"a higher IRD: siw raises its ORD", two, "1002", "0010 0004", Agreed{Revision: 2, IRD: 4, ORD: 8}, 0, false},
		{"a higher ORD: siw raises its IRD up to 128", two, "1002", "0008 0010", Agreed{}, iwarp.LLPResources, true},
		{"IRD and ORD not to be agreed upon", two, "1002", "3fff 3fff", Agreed{Revision: 2, IRD: 4, ORD: 8}, 0, false},
		{"C, which we did not ask for", two, "5002", "0008 0004", Agreed{Revision: 2, CRC: true, IRD: 4, ORD: 8}, 0, false},
		{"no C, which we did ask for", Config{CRC: true}, "1002", "0000 0000", Agreed{Revision: 2, CRC: true}, 0, false},
		{"M: siw closes", two, "9002", "0008 0004", Agreed{Revision: 2, SendMarkers: true, IRD: 4, ORD: 8}, 0, false},
		{"M in both", Config{Markers: true}, "9002", "0000 0000", Agreed{Revision: 2, SendMarkers: true, RecvMarkers: true}, 0, false},
		{"p2p and Write, which we did not ask for", two, "1002", "8008 8004", Agreed{Revision: 2, IRD: 4, ORD: 8}, 0, false},
		{"rev 1", two, "0001", "", Agreed{}, iwarp.LLPStartup, false},
		{"rev 2 without S", two, "0002", "", Agreed{}, iwarp.LLPStartup, false},
		{"rev 3", two, "1003", "0008 0004", Agreed{}, iwarp.LLPStartup, false},
		{"rev 0", two, "0000", "", Agreed{}, iwarp.LLPStartup, false},
		{"S without IRD and ORD: siw crashes", two, "1002", "", Agreed{}, iwarp.LLPStartup, true},
		{"private data", two, "1002", "0008 0004" + strings.Repeat("66", 252), Agreed{Revision: 2, IRD: 4, ORD: 8, Private: bytes.Repeat([]byte{0x66}, 252)}, 0, false},
		{"more of it: siw crashes", two, "1002", "0008 0004" + strings.Repeat("66", 508), Agreed{Revision: 2, IRD: 4, ORD: 8, Private: bytes.Repeat([]byte{0x66}, 508)}, 0, false},
		{"too much of it", two, "1002", strings.Repeat("66", 513), Agreed{}, iwarp.LLPStartup, true},

		{"p2p, Write", p2p, "1002", "8008 8004", Agreed{Revision: 2, IRD: 4, ORD: 8, RTR: RTRWrite}, 0, false},
		{"p2p, Read", p2p, "1002", "8008 4004", Agreed{Revision: 2, IRD: 4, ORD: 8, RTR: RTRRead}, 0, false},
		{"p2p, the peer leaves the choice to us", p2p, "1002", "c008 c004", Agreed{Revision: 2, IRD: 4, ORD: 8, RTR: RTRWrite}, 0, false},
		{"p2p, no kind of ours", p2p, "1002", "c008 0004", Agreed{}, iwarp.LLPNoRTR, true},
		{"p2p, no kind", p2p, "1002", "8008 0004", Agreed{}, iwarp.LLPNoRTR, true},
		{"p2p, a Read that the peer does not take", p2p, "1002", "8000 4004", Agreed{}, iwarp.LLPNoRTR, true},
		{"p2p by Send", Config{RTR: RTRSend}, "1002", "c000 0000", Agreed{Revision: 2, RTR: RTRSend}, 0, false},

		{"rev 1 to rev 1", Config{Revision: 1, IRD: 4, ORD: 8}, "0001", "0a0b", Agreed{Revision: 1, IRD: 4, ORD: 8, Private: []byte{10, 11}}, 0, false},
		{"rev 2 to rev 1", Config{Revision: 1}, "1002", "0008 0004", Agreed{}, iwarp.LLPStartup, false},
	}
	for _, tt := range tests {
		var i Initiator
		if _, err := i.Start(tt.c, nil); err != nil {
			t.Fatal(err)
		}
		b := append(frame(t, keyReply, tt.control, tt.private), "FPDU"...)
		n, a, err := 0, Agreed{}, error(nil)
		for k := 0; k <= len(b) && n == 0 && err == nil; k++ {
			if n, a, err = i.Reply(b[:k]); n > 0 && k != n {
				t.Errorf("%s: %d bytes after %d", tt.name, n, k)
			}
		}
		if all, again, _ := i.Reply(b); all != n || !same(a, again) {
			t.Errorf("%s: at once %d, %+v", tt.name, all, again)
		}
		var perr *ProtocolError
		switch {
		case tt.cause == 0 && (err != nil || n != len(b)-4 || !same(a, tt.want)):
			t.Errorf("%s: %d, %+v, want %+v (%v)", tt.name, n, a, tt.want, err)
		case tt.cause != 0 && (!errors.As(err, &perr) || !errors.Is(err, tt.cause) || perr.Terminate != tt.terminate || n != 0):
			t.Errorf("%s: %d, %+v, %v", tt.name, n, a, err)
		}
	}
}

func TestInitiator_notMPA(t *testing.T) {
	for _, tt := range []struct{ b, say string }{
		{"SSH-2.0-OpenSSH", `"SSH-2.0-OpenSSH"`},
		{"MPA ID Rex", "no start-up frame"},
		{keyRequest, "both ends"},
	} {
		var i Initiator
		if _, err := i.Start(Config{}, nil); err != nil {
			t.Fatal(err)
		}
		var perr *ProtocolError
		_, _, err := i.Reply([]byte(tt.b))
		if !errors.As(err, &perr) || !perr.Terminate || perr.Cause != iwarp.LLPStartup || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%q: %v", tt.b, err)
		}
	}
}

// A Reply that rejects is one, whatever else is in it.
func TestInitiator_rejected(t *testing.T) {
	for _, tt := range []struct{ control, private, want string }{
		{"3002", "0004 0004 6e6f", "no"},
		{"2002", "6e6f", "no"},
		{"2001", "6e6f", "no"},
		{"2000", "", ""},
		{"e002", "", ""}, // as siw does to whoever asks for markers
	} {
		var i Initiator
		if _, err := i.Start(Config{}, nil); err != nil {
			t.Fatal(err)
		}
		var r *RejectedError
		n, _, err := i.Reply(frame(t, keyReply, tt.control, tt.private))
		if n != 0 || !errors.As(err, &r) || string(r.Private) != tt.want || !strings.Contains(err.Error(), "rejects") {
			t.Errorf("%s %s: %v", tt.control, tt.private, err)
		}
	}
}

func TestResponder_rejects(t *testing.T) {
	for _, tt := range []struct{ control, private, reply, replied string }{
		{"1002", "0004 0002", "3002", "0002 0004 6e6f"}, // siw's order: what would have been granted
		{"5002", "8004 c002", "7002", "8002 8004 6e6f"},
		{"0001", "", "2001", "6e6f"},
		{"0002", "", "2002", "6e6f"},
	} {
		var r Responder
		if n, _, err := r.Request(frame(t, keyRequest, tt.control, tt.private)); n == 0 {
			t.Fatal(err)
		}
		if _, err := r.Reject(make([]byte, 257)); err == nil {
			t.Errorf("%s: a rejection with 257 bytes", tt.control)
		}
		reply, err := r.Reject([]byte("no"))
		if want := frame(t, keyReply, tt.reply, tt.replied); err != nil || !bytes.Equal(reply, want) {
			t.Errorf("%s: % x, want % x (%v)", tt.control, reply[16:], want[16:], err)
		}
	}
}

// Every pair of configurations: both ends agree on the same.
func TestStartup_bothEnds(t *testing.T) {
	flags := []bool{false, true}
	for _, revision := range []uint8{1, 2} {
		for depths := range 81 {
			for options := range 16 {
				for kinds := range 64 {
					ci := Config{Revision: revision, IRD: depth(depths), ORD: depth(depths / 3), CRC: flags[options&1], Markers: flags[options>>1&1], RTR: RTR(kinds & 7)}
					cr := Config{IRD: depth(depths / 9), ORD: depth(depths / 27), CRC: flags[options>>2&1], Markers: flags[options>>3], RTR: RTR(kinds >> 3)}
					if revision == 1 {
						ci.RTR = 0
					}
					checkBoth(t, ci, cr)
				}
			}
		}
	}
}

func depth(k int) uint16 { return [...]uint16{0, 1, 16}[k%3] }

func checkBoth(t *testing.T, ci, cr Config) {
	t.Helper()
	var i Initiator
	var r Responder
	req, err := i.Start(ci, []byte("ping"))
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := r.Request(req)
	if n != len(req) || err != nil {
		t.Fatal(n, err)
	}
	rep, ra, err := r.Accept(cr, []byte("pong"))
	if err != nil || string(ra.Private) != "ping" {
		t.Fatal(err)
	}
	n, ia, err := i.Reply(rep)
	if errors.Is(err, iwarp.LLPNoRTR) {
		if takes := cr.RTR; takes == 0 || takes&ci.RTR != 0 {
			t.Fatalf("%+v, %+v: %v", ci, cr, err)
		}
		return
	}
	if n != len(rep) || err != nil || string(ia.Private) != "pong" {
		t.Fatal(n, err)
	}
	ok := ia.Revision == ra.Revision && ia.CRC == ra.CRC && ia.CRC == (ci.CRC || cr.CRC) && ia.RTR == ra.RTR && (ia.RTR != 0) == (ci.RTR != 0) &&
		ia.SendMarkers == cr.Markers && ra.RecvMarkers == cr.Markers && ia.RecvMarkers == ci.Markers && ra.SendMarkers == ci.Markers
	if ia.Revision == 2 { // nobody has more outstanding than the other keeps
		ok = ok && ia.ORD <= ra.IRD && ra.ORD <= ia.IRD && (ia.RTR != RTRRead || ia.ORD > 0)
	}
	if !ok {
		t.Fatalf("%+v and %+v agree on %+v and %+v", ci, cr, ia, ra)
	}
}

func TestConfig_refused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		c       Config
		private int
	}{
		{"revision", Config{Revision: 3}, 0},
		{"p2p in revision 1", Config{Revision: 1, RTR: RTRWrite}, 0},
		{"kind", Config{RTR: 8}, 0},
		{"IRD", Config{IRD: 1 << 14}, 0},
		{"ORD", Config{ORD: DepthUnlimited}, 0},
		{"private data", Config{}, 253},
		{"private data of revision 1", Config{Revision: 1}, 257},
	} {
		var i Initiator
		if b, err := i.Start(tt.c, make([]byte, tt.private)); err == nil {
			t.Errorf("%s: % x", tt.name, b)
		}
	}
	var r Responder
	if n, _, err := r.Request(frame(t, keyRequest, "1002", "00040004")); n == 0 {
		t.Fatal(err)
	}
	if _, _, err := r.Accept(Config{IRD: 1 << 14}, nil); err == nil {
		t.Error("an IRD of 15 bits")
	}
	if _, _, err := r.Accept(Config{}, make([]byte, 253)); err == nil {
		t.Error("253 bytes of private data")
	}
	if _, a, err := r.Accept(Config{}, make([]byte, 252)); err != nil || a.Revision != 2 {
		t.Error(a, err)
	}
}

// Each bit of each field goes out and comes back alone.
func TestFrame_bitWalk(t *testing.T) {
	check := func(f Frame) {
		t.Helper()
		b := f.Append(nil)
		var back Frame
		n, err := back.Parse(b, f.Reply)
		if n != len(b) || err != nil || !bytes.Equal(back.Append(nil), b) || back.IRD != f.IRD || back.ORD != f.ORD || back.RTR != f.RTR {
			t.Errorf("%+v came back as %+v (%v)", f, back, err)
		}
	}
	for _, reply := range []bool{false, true} {
		for i := range 14 {
			check(Frame{Reply: reply, Revision: 2, Enhanced: true, IRD: 1 << i})
			check(Frame{Reply: reply, Revision: 2, Enhanced: true, ORD: 1 << i})
		}
		for r := range rtrAll + 1 {
			check(Frame{Reply: reply, Revision: 2, Enhanced: true, RTR: r, PeerToPeer: r&1 == 0})
		}
		for _, f := range []Frame{{Markers: true}, {CRC: true}, {Reject: true}, {Private: []byte{1}}, {Private: make([]byte, 512)}} {
			f.Reply, f.Revision = reply, 1
			check(f)
		}
	}
}

func TestRTR_String(t *testing.T) {
	for r, want := range map[RTR]string{0: "nothing", RTRSend: "Send", RTRWrite | RTRRead: "Write or Read", rtrAll: "Send or Write or Read"} {
		if r.String() != want {
			t.Errorf("%d is %q", r, r)
		}
	}
}
