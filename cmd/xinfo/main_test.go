package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/xdp"
)

// fakeMachine has the devices of fake, and one without an address.
func fakeMachine() machine {
	return machine{
		devices: func() ([]string, error) { return []string{"good", "bad", "dumb"}, nil },
		probe:   fake,
		try: func(name string) (xdp.Report, error) {
			r, err := fake(name)
			r.ZeroCopy = xdp.ZeroCopyFails
			r.Findings = append(r.Findings, xdp.Finding{Name: "zero-copy", Detail: "tried on queue 1: no", Remedy: "the kernel copies"})
			return r, err
		},
		nic:   fakeNIC,
		query: fakeQuery,
	}
}

func fakeNIC(name string) (nic, error) {
	n := nic{
		mac: net.HardwareAddr{2, 'x', 'w', 0, 0, 1}, active: true, mtu: 9000, maxMTU: 9710, vendor: vendor{0x8086, 4346, 1},
		addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")},
	}
	switch name {
	case "dumb":
		n.addrs = nil
	case "six":
		n.addrs, n.active = n.addrs[1:], false
	}
	return n, nil
}

// fakeQuery gives every attribute a number of its own, from 1001.
func fakeQuery(string, nic) (a verbs.DeviceAttr, ok bool, err error) {
	v := reflect.ValueOf(&a).Elem()
	n := int64(1000)
	for _, f := range v.Fields() {
		if f.CanInt() {
			n++
			f.SetInt(n)
		}
	}
	a.AtomicAtomic = true
	return a, true, nil
}

// fake stands for a machine with a device that has all, one that has not what
// is needed, and one that could be better.
func fake(name string) (xdp.Report, error) {
	r := xdp.Report{Device: name, Driver: "ixgbe", Up: true, MTU: 9000, Queues: 4, Modes: []string{"generic", "driver"}, ZeroCopy: xdp.ZeroCopyNotTried, ZeroCopySegs: 1, QueuesMax: 8, Kind: "network card", MultiBuffer: true}
	r.Findings = []xdp.Finding{{Name: "kernel", OK: true, Needed: true, Detail: "6.18"}}
	switch name {
	case "good", "six", "dumb":
	case "maybe":
		r.Findings = append(r.Findings, xdp.Finding{Name: "zero-copy", Unsure: true, Detail: "not tried", Remedy: "try it"})
	case "bad", "worse":
		r.Findings = append(r.Findings, xdp.Finding{Name: "permission", Needed: true, Detail: "missing CAP_BPF", Remedy: "run as root"})
	case "slow":
		r.ZeroCopy = xdp.ZeroCopyNo
		r.Findings = append(r.Findings, xdp.Finding{Name: "zero-copy", Detail: "not supported by veth", Remedy: "use a card"})
	default:
		return xdp.Report{}, errors.New("no such device: " + name)
	}
	return r, nil
}

func TestRun(t *testing.T) {
	tests := []struct {
		args string
		code int
		want []string // each in the output or the errors
	}{
		{"--help", exitOK, []string{"usage: xinfo", "Examples"}},
		{"good", exitOK, []string{"good (driver ixgbe, MTU 9000)", "ok  kernel  6.18", "good: AF_XDP can be used"}},
		{"--check good", exitOK, []string{"good: AF_XDP can be used"}},
		{"-d good", exitOK, []string{"hca_id:\tgood\n", "state:\t\t\tPORT_ACTIVE (4)", "GID[  1]:\t\tfd00::1/64", "fabric xdp:\t\tRC RD UD (generic, driver mode, zero-copy not tried, multi-buffer)"}},
		{"-d six", exitOK, []string{"PORT_DOWN (1)", "fabric tcp:\t\tRC\n", "fabric udp:\t\tRD UD\n"}},
		{"-d dumb", exitOK, []string{"fabric tcp:\t\tno (needs an address)"}},
		{"-d bad", exitOK, []string{"fabric xdp:\t\tno (permission: missing CAP_BPF)"}},
		{"-vdgood", exitOK, []string{"max_qp:\t\t\t\t1006", "atomic_cap:\t\t\tATOMIC_GLOB (2)"}},
		{"--ib-dev=good --ib-port=1 --verbose", exitOK, []string{"hca_id:\tgood", "max_sge"}},
		{"", exitOK, []string{"hca_id:\tgood", "hca_id:\tbad", "-> run as root"}},
		{"-l", exitOK, []string{"2 HCAs found:\n\tgood\n\tbad\n\n"}},
		{"-d good -i 2", exitFailed, []string{"there is no port 2"}},
		{"-d nosuch", exitFailed, []string{"no such device: nosuch"}},
		{"-i 0", exitUsage, []string{"-i needs"}},
		{"-d good bad", exitUsage, []string{"the only device"}},
		{"--ib-dev=", exitUsage, []string{"xinfo --help"}},
		{"-l -v", exitUsage, []string{"go alone"}},
		{"--table good", exitUsage, []string{"go alone"}},
		{"--table --list", exitUsage, []string{"go alone"}},
		{"--check slow", exitOK, []string{"-> use a card", "slow: AF_XDP can be used"}},
		{"--check bad", exitFailed, []string{"MISSING  permission  missing CAP_BPF", "-> run as root", "bad: AF_XDP cannot be used (permission: missing CAP_BPF)"}},
		{"--check maybe", exitOK, []string{"?   zero-copy  not tried\n", "-> try it", "maybe: AF_XDP can be used"}},
		{"--check maybe --try", exitOK, []string{"-   zero-copy  tried on queue 1: no"}},
		{"--json --check maybe --try", exitOK, []string{`"zero_copy":"fails"`, `"zc_max_segs":1`, `"queues_max":8`, `"kind":"network card"`}},
		{"--try good", exitUsage, []string{"--try goes with --check DEV"}},
		{"bad", exitOK, []string{"AF_XDP cannot be used"}},
		{"--check nosuch", exitFailed, []string{"no such device: nosuch"}},
		{"nosuch", exitFailed, []string{"no such device: nosuch"}},
		{"--check=", exitUsage, []string{"--check needs the name of a device"}},
		{"--check good bad", exitUsage, []string{"one device"}},
		{"--clean --json", exitUsage, []string{"--clean goes alone"}},
		{"--nosuch", exitUsage, []string{"xinfo --help"}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var out strings.Builder
			if code := run(strings.Fields(tt.args), &out, &out, fakeMachine()); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in:\n%s", w, out.String())
				}
			}
		})
	}
}

// The block of a device to the byte: programs read it.
func TestWriteBlock(t *testing.T) {
	h, err := fakeMachine().hca("good", true)
	if err != nil {
		t.Fatal(err)
	}
	h.FWVer = "1.0"
	var out strings.Builder
	if err := writeBlock(&out, h); err != nil {
		t.Fatal(err)
	}
	want := `hca_id:	good
	transport:			iWARP (1)
	fw_ver:				1.0
	node_guid:			0078:77ff:fe00:0001
	sys_image_guid:			0078:77ff:fe00:0001
	vendor_id:			0x8086
	vendor_part_id:			4346
	hw_ver:				0x1
	driver:				ixgbe
	phys_port_cnt:			1
	max_msg_sz:			0x3ed
	max_ud_msg_sz:			1002
	max_datagram:			1001
	max_qp:				1006
	max_qp_wr:			1007
	max_sge:			1003
	max_inline_data:		1004
	max_cqe:			1008
	max_mr:				1009
	max_qp_rd_atom:			1012
	atomic_cap:			ATOMIC_GLOB (2)
	max_mw:				1010
	max_mcast_grp:			1013
	max_srq_wr:			1011
		port:	1
			state:			PORT_ACTIVE (4)
			max_mtu:		9710
			active_mtu:		9000
			link_layer:		Ethernet
			GID[  0]:		10.0.0.1/24
			GID[  1]:		fd00::1/64
			fabric xdp:		RC RD UD (generic, driver mode, zero-copy not tried, multi-buffer)
			fabric udp:		RD UD
			fabric tcp:		RC
			fabric shm:		RD UD

`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

// Every attribute that verbs has is shown, but for the two that are the
// carrier's.
func TestAttributes_all(t *testing.T) {
	a, _, _ := fakeQuery("", nic{})
	shown := map[any]bool{}
	for _, x := range attributes(a) {
		shown[x.value] = true
	}
	for f, v := range reflect.ValueOf(a).Fields() {
		if v.CanInt() && !shown[int(v.Int())] {
			t.Errorf("DeviceAttr.%s is not shown", f.Name)
		}
	}
}

// What several devices miss alike is told once.
func TestWriteTable(t *testing.T) {
	var reports []xdp.Report
	for _, name := range []string{"good", "bad", "slow", "worse"} {
		r, err := fake(name)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	var out strings.Builder
	if err := writeTable(&out, reports); err != nil {
		t.Fatal(err)
	}
	want := `DEVICE  DRIVER  LINK  MTU   QUEUES  MODES           ZERO-COPY  MULTI-BUFFER  AF_XDP
good    ixgbe   up    9000  4       generic,driver  not tried  yes           yes
bad     ixgbe   up    9000  4       generic,driver  not tried  yes           no
slow    ixgbe   up    9000  4       generic,driver  no         yes           yes
worse   ixgbe   up    9000  4       generic,driver  not tried  yes           no

Missing:
  bad, worse: permission: missing CAP_BPF
    -> run as root

Would be better:
  slow: zero-copy: not supported by veth
    -> use a card
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestRun_json(t *testing.T) {
	var out strings.Builder
	if code := run([]string{"--json", "good", "bad"}, &out, &out, fakeMachine()); code != exitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	usable := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var r struct {
			Device string
			Usable bool
			Attr   struct {
				MaxQP int `json:"max_qp"`
			}
			Ports []struct{ State string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		usable[r.Device] = r.Usable
		if r.Attr.MaxQP != 1006 || len(r.Ports) != 1 || r.Ports[0].State != "PORT_ACTIVE" {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if len(usable) != 2 || !usable["good"] || usable["bad"] {
		t.Errorf("got %v from:\n%s", usable, out.String())
	}
}

// On a device of the kernel, as people use it.
func TestRun_testbed(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	var out strings.Builder
	m := machine{devices: devices, probe: xdp.Probe, try: xdp.Try, nic: lookupNIC, query: queryDevice}
	var blocks, table, check int
	err := tb.Hosts[0].Do(func() error {
		blocks = run([]string{"-v"}, &out, &out, m)
		table = run([]string{"--table"}, &out, &out, m)
		check = run([]string{"--check", testbed.Device}, &out, &out, m)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if check != exitOK {
		testenv.NoXDP(t, out.String())
	}
	for _, want := range []string{
		"node_guid:\t\t\t" + guid(tb.Hosts[0].MAC), "active_mtu:\t\t9000", "max_mtu:\t\t65535", "PORT_ACTIVE",
		"GID[  0]:\t\t" + tb.Hosts[0].Addr.String() + "/24", "fabric tcp:\t\tRC", "max_qp_rd_atom",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if blocks != exitOK || table != exitOK || check != exitOK || !strings.Contains(out.String(), testbed.Device+"     veth") {
		t.Errorf("exit codes %d, %d and %d:\n%s", blocks, table, check, out.String())
	}
	t.Log(out.String())
}
