package main

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/cmd/xping/rping"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

func TestRun_usage(t *testing.T) {
	tests := []struct {
		args string
		want string
	}{
		{"", "give one of"},
		{"-s -c -a ::1", "give one of"},
		{"-s --testbed", "give one of"},
		{"-c", "-a ADDR"},
		{"-c -a ::1 extra", "too much"},
		{"-c -a ::1 -S 22", "23 to 65535"},
		{"-c -a ::1 -S 65536", "23 to 65535"},
		{"-c -a ::1 -C -1", "negative"},
		{"-c -a ::1 -p 65536", "no port"},
		{"-c -a ::1 -p 0", "no port"},
		{"-c -a ::1 -P", "not for this end"},
		{"-s -C 3", "not for this end"},
		{"-s --p2p read", "not for this end"},
		{"-s -I ::1", "not for this end"},
		{"-c -a ::1 --p2p push", "send, write and read"},
		{"-c -a ::1 --p2p=", "send, write and read"},
		{"-c -a ::1 --p2p read --mpa-revision 1", "needs --mpa-revision 2"},
		{"-c -a ::1 --mpa-revision 3", "there are 1 and 2"},
		{"-c -a ::1 --fabric shm", "carries no connections"},
		{"-c -a ::1 --fabric carrier-pigeon", "carrier-pigeon"},
		{"-c -a ::1 --fabric xdp", "needs --device"},
		{"--testbed -a ::1", "leave -a"},
		{"--testbed --device eth1", "leave -a"},
		{"-z", "-z"},
	}
	for _, tt := range tests {
		var out, errs strings.Builder
		p := &program{out: &out, errs: &errs}
		if code := p.run(strings.Fields(tt.args)); code != exitUsage || out.Len() > 0 {
			t.Errorf("%q: exit code %d, output %q", tt.args, code, out.String())
		}
		if !strings.Contains(errs.String(), tt.want) || !strings.Contains(errs.String(), "xping --help") {
			t.Errorf("%q: %s", tt.args, errs.String())
		}
	}
}

func TestRun_help(t *testing.T) {
	var out strings.Builder
	p := &program{out: &out, errs: io.Discard}
	if code := p.run([]string{"--help"}); code != exitOK || !strings.Contains(out.String(), "Examples") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// Flags may be written as rping's.
func TestParse_clusters(t *testing.T) {
	o, err := parse(strings.Fields("-cvVd -C10 -S 100 -a10.0.0.1 --p2p read,write --crc"))
	if err != nil {
		t.Fatal(err)
	}
	if !o.client || !o.verbose || !o.debug || !o.ping.Validate || o.ping.Count != 10 || o.ping.Size != 100 || o.addr != "10.0.0.1" ||
		o.port != rping.Port || !o.ping.Param.CRC || o.ping.Param.RTR != rtrKinds["read"]|rtrKinds["write"] || o.ping.Param.Revision != 2 {
		t.Errorf("%+v", o)
	}
}

// running is an xping server in this process.
type running struct {
	*program
	port string
	out  heard
	errs strings.Builder
	code chan int
}

// heard is output that is looked at while it is written.
type heard struct {
	mu    sync.Mutex
	text  strings.Builder
	first chan string // its first line
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Len() == 0 {
		h.first <- strings.TrimSpace(string(b))
	}
	return h.text.Write(b)
}

// serve starts a server on loopback and waits until it listens.
func serve(t *testing.T, args ...string) *running {
	t.Helper()
	s := &running{code: make(chan int, 1), out: heard{first: make(chan string, 1)}}
	s.program = &program{out: &s.out, errs: &s.errs}
	go func() { s.code <- s.run(append([]string{"-s", "-p", "0"}, args...)) }()
	select {
	case line := <-s.out.first:
		at, ok := strings.CutPrefix(line, "listening ")
		if _, s.port, _ = net.SplitHostPort(at); !ok || s.port == "" {
			t.Fatalf("the server says %q", line)
		}
	case code := <-s.code:
		t.Fatalf("the server ended with %d: %s", code, s.errs.String())
	}
	return s
}

// rest waits for the end of the server and returns what it has said.
func (s *running) rest() (lines []string, code int) {
	code = <-s.code
	return strings.Split(strings.TrimSpace(s.out.text.String()), "\n"), code
}

// ping runs a client.
func ping(s *running, args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	p := &program{out: &o, errs: &e}
	code = p.run(append([]string{"-c", "-p", s.port}, args...))
	return code, o.String(), e.String()
}

func TestRun_loopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			ln, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
			if err != nil {
				t.Skipf("this machine has no %s: %v", addr, err)
			}
			ln.Close()
			s := serve(t, "-v", "-a", addr)
			code, out, errs := ping(s, "-a", addr, "-C", "3", "-vV", "--crc", "-I", addr)
			if code != exitOK || errs != "" {
				t.Errorf("exit code %d: %s", code, errs)
			}
			text := "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs"
			for _, want := range []string{"ping data: " + text, "3 pings of 64 bytes, data validated", "rtt min/avg/max/mdev = "} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			lines, code := s.rest()
			if code != exitOK || len(lines) != 5 || lines[2] != "server ping data: "+text || !strings.HasSuffix(lines[4], ": 3 pings") {
				t.Errorf("server: exit code %d, %q, %s", code, lines, s.errs.String())
			}
		})
	}
}

func TestRun_json(t *testing.T) {
	s := serve(t)
	code, out, errs := ping(s, "-a", "127.0.0.1", "-C", "2", "-vV", "--json", "-S", "100")
	if _, served := s.rest(); code != exitOK || served != exitOK || errs != "" {
		t.Errorf("exit codes %d and %d: %s", code, served, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		t.Fatal(out)
	}
	var one pingLine
	var all resultLine
	if err := json.Unmarshal([]byte(lines[1]), &one); err != nil || one.Ping != 1 || one.RTT <= 0 || len(one.Data) != 99 {
		t.Errorf("%s: %v", lines[1], err)
	}
	if err := json.Unmarshal([]byte(lines[2]), &all); err != nil || all.Pings != 2 || all.Size != 100 || !all.Validated || all.RTT == nil || all.RTT.Min <= 0 || all.RTT.Max < all.RTT.Avg || all.Error != "" {
		t.Errorf("%s: %v", lines[2], err)
	}
}

// Nobody listens where a server was.
func TestRun_noConnection(t *testing.T) {
	s := serve(t)
	if code, _, errs := ping(s, "-a", "127.0.0.1", "-C", "1"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	s.rest()
	code, out, errs := ping(s, "-a", "127.0.0.1", "-C", "1", "--json")
	if code != exitNoConnection || !strings.Contains(errs, "no connection") || !strings.Contains(out, `"error":"rping: no connection`) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// signalled is a writer that stops a program when the first ping was told.
type signalled struct {
	strings.Builder
	p    *program
	told bool
}

func (s *signalled) Write(b []byte) (int, error) {
	if !s.told && strings.Contains(string(b), "ping data") {
		s.told = true
		go s.p.stop() // as the signal handler does
	}
	return s.Builder.Write(b)
}

// An end that was to go on for ever is done when it is interrupted; one that
// had a number of pings to make is not.
func TestRun_interrupted(t *testing.T) {
	s := serve(t, "-P", "-v")
	client := "-c -v -a 127.0.0.1 -p " + s.port
	for args, want := range map[string]int{
		client: exitOK, client + " -C 1000000000": exitInterrupted,
		"--testbed -v": exitOK, "--testbed -v -C 1000000000": exitInterrupted,
	} {
		out := &signalled{}
		p := &program{out: out, errs: io.Discard}
		out.p = p
		if code := p.run(strings.Fields(args)); code != want {
			t.Errorf("%q: exit code %d, want %d", args, code, want)
		}
		if !strings.Contains(out.String(), "rtt min/avg/max/mdev") {
			t.Errorf("%q: no statistics", args)
		}
	}
	s.stop()
	if _, code := s.rest(); code != exitOK || s.errs.Len() > 0 {
		t.Errorf("server: exit code %d: %s", code, s.errs.String())
	}
}

// Both ends, over a veth pair when that is possible.
func TestRun_testbed(t *testing.T) {
	for _, args := range []string{"-C 20 -V", "-C 5 -V -S 65535 --crc --markers", "-C 5 -V --p2p read --json", "-C 5 -V --mpa-revision 1", "-C 5 -V --ipv6"} {
		var out, errs strings.Builder
		p := &program{out: &out, errs: &errs}
		if code := p.run(append(strings.Fields(args), "--testbed")); code != exitOK || !strings.Contains(out.String(), "mdev") {
			t.Errorf("%s: exit code %d: %s%s", args, code, out.String(), errs.String())
		}
		if notice := strings.Contains(errs.String(), "not root"); notice != (os.Geteuid() != 0) {
			t.Errorf("%s: %s", args, errs.String())
		}
	}
}

// The same with TCP in user space on AF_XDP.
func TestRun_testbedXDP(t *testing.T) {
	testenv.NeedRoot(t)
	for _, args := range []string{"-C 20 -V", "-C 5 -V -S 65535 --crc", "-C 20 -V --ipv6", "-C 5 -V -S 65535 --crc -6"} {
		var out, errs strings.Builder
		p := &program{out: &out, errs: &errs}
		code := p.run(append(strings.Fields(args), "--testbed", "--fabric", "xdp"))
		if code == exitUnavailable {
			testenv.NoXDP(t, errs.String())
		}
		if code != exitOK || !strings.Contains(out.String(), "data validated") {
			t.Errorf("%s: exit code %d: %s%s", args, code, out.String(), errs.String())
		}
	}
}
