package capture_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/capture"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

const dissector = "../../../docs/wireshark/xwarp.lua"

// needTshark skips the test without tshark, unless CI says that it is there.
func needTshark(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("tshark")
	if err == nil {
		return
	}
	if os.Getenv("XWARP_REQUIRE_TSHARK") == "1" {
		t.Fatal("XWARP_REQUIRE_TSHARK=1, but tshark is missing: apt-get install tshark")
	}
	t.Skip("needs tshark: apt-get install tshark")
}

// row is what tshark says of one packet: the values of each field asked for,
// as often as the packet has it.
type row map[string][]string

// one returns the only value of a field, "" if there is none.
func (r row) one(field string) string { return strings.Join(r[field], "|") }

// trouble are the fields that no good packet has, and those that every packet
// must have: dissect asks for them in any case.
var always = []string{"frame.protocols", "xwarp.crc.status", "_ws.expert.message", "_ws.expert.severity", "_ws.malformed", "_ws.lua.error", "_ws.col.Info"}

// dissect runs tshark with our dissector over a capture. It does so twice: as
// tshark reads, and as Wireshark shows, which has seen all packets before.
func dissect(t *testing.T, file string, fields ...string) []row {
	t.Helper()
	fields = append(fields, always...)
	tshark(t, file, fields)
	return tshark(t, file, fields, "-2")
}

func tshark(t *testing.T, file string, fields []string, options ...string) []row {
	t.Helper()
	// A configuration of its own: somebody's plugins and preferences are not
	// what is tested.
	args := append(options, "-n", "-r", file, "-X", "lua_script:"+dissector, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|", "-E", "occurrence=a")
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command("tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("tshark: %v\n%s", err, &errs)
	}
	if strings.Contains(errs.String(), "Lua") {
		t.Fatalf("tshark: %s", &errs)
	}
	var rows []row
	for line := range strings.Lines(out.String()) {
		r := row{}
		for i, value := range strings.Split(strings.TrimRight(line, "\n"), "\t") {
			if value != "" {
				value = strings.NewReplacer("True", "1", "False", "0").Replace(value) // Wireshark 4.2
				r[fields[i]] = strings.Split(value, "|")
			}
		}
		if s := r.one("_ws.expert.message") + r.one("_ws.lua.error"); strings.Contains(s, "Lua Error") {
			t.Errorf("packet %d: %s", len(rows)+1, s)
		}
		rows = append(rows, r)
	}
	return rows
}

// Severities of expert infos in Wireshark.
const severityNote = "4194304"

// checkGood wants a packet that is ours and has nothing wrong with it.
func checkGood(t *testing.T, number int, r row) {
	t.Helper()
	if !strings.HasSuffix(r.one("frame.protocols"), ":xwarp") || r.one("xwarp.crc.status") != "1" {
		t.Errorf("packet %d: protocols %q, status of the CRC %q", number, r.one("frame.protocols"), r.one("xwarp.crc.status"))
	}
	for _, s := range r["_ws.expert.severity"] {
		if s > severityNote {
			t.Errorf("packet %d: %q", number, r["_ws.expert.message"])
			break
		}
	}
	if r.one("_ws.malformed")+r.one("_ws.lua.error") != "" {
		t.Errorf("packet %d: malformed, or an error of the dissector: %v", number, r)
	}
}

// paper is a carrier that only takes what is to be sent.
type paper struct {
	fabric.Datagram
	arena *mem.Arena
	local netip.AddrPort
}

func (p paper) Caps() fabric.DatagramCaps { return fabric.DatagramCaps{Carrier: "paper"} }
func (p paper) Arena() *mem.Arena         { return p.arena }
func (p paper) Local() netip.AddrPort     { return p.local }
func (p paper) Send(*fabric.Batch)        {}
func (p paper) Close() error              { return nil }
func (p paper) Resolve(netip.AddrPort) (fabric.Path, error) {
	return 0, nil
}

// write makes a capture with these datagrams, sent from a port to the same one
// of another host.
func write(t *testing.T, port uint16, payloads [][]byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "made.pcapng")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	p := paper{nil, mem.Over(make([]byte, 1<<16)), netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)}
	d := capture.NewDatagram(p, out, capture.Config{})
	_, err = d.Resolve(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port))
	for _, payload := range payloads {
		n := copy(p.arena.Bytes(), payload)
		d.Send(&fabric.Batch{Pkts: []fabric.Packet{{Bufs: 1, Len: int32(n)}}, Descs: []fabric.Desc{{Len: uint32(n)}}})
	}
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}
