package launch

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
)

func TestWayTo(t *testing.T) {
	devices := map[netip.Addr]string{}
	k := kernel{
		lookup: netip.ParseAddr,
		device: func(a netip.Addr) (string, error) {
			if devices[a] == "" {
				return "", errors.New("unreachable")
			}
			return devices[a], nil
		},
		unusable: func(dev string, ipv6 bool) error {
			if dev == "wg0" {
				return errors.New("no Ethernet")
			}
			if dev == "eth4" && ipv6 {
				return errors.New("no IPv6")
			}
			return nil
		},
		note: func(dev string) (string, error) {
			switch dev {
			case "bond0":
				return "a bond", nil
			case "vrf0":
				return "a table", &xdp.Error{Device: dev, Reason: xdp.ErrUnsupported, Detail: "a table", Remedy: "use another"}
			case "late0":
				return "", &xdp.Error{Device: dev, Reason: xdp.ErrNoDevice}
			}
			return "", nil
		},
	}
	for addr, dev := range map[string]string{"10.0.0.1": "eth1", "fd00::2": "eth1", "10.1.0.1": "eth2", "10.2.0.1": "wg0", "10.0.0.9": "lo", "10.4.0.1": "eth4", "fd00::4": "eth4", "10.7.0.1": "bond0", "10.5.0.1": "vrf0", "10.6.0.1": "late0"} {
		devices[netip.MustParseAddr(addr)] = dev
	}
	for peers, want := range map[string]hostDevice{
		"10.0.0.1":                  {Device: "eth1"},
		"10.0.0.1 fd00::2":          {Device: "eth1", IPv6: true},
		"10.4.0.1":                  {Device: "eth4"},
		"fd00::4":                   {Device: "eth4", IPv6: true, NoXDP: "no IPv6"},
		"10.2.0.1":                  {Device: "wg0", NoXDP: "no Ethernet"},
		"10.7.0.1":                  {Device: "bond0", Note: "a bond"},
		"10.5.0.1":                  {Device: "vrf0", Note: "a table", NoXDP: "xdp: vrf0: not supported (a table): use another"},
		"10.6.0.1":                  {Device: "late0"},
		"10.0.0.1 10.1.0.1":         {Device: "eth0", Unsure: "the routes to 10.0.0.1 and 10.1.0.1 lead through eth1 and eth2"},
		"10.0.0.9":                  {Device: "eth0", Unsure: "the route to 10.0.0.9 leads through lo: it is this machine"},
		"10.0.0.9 10.0.0.1":         {Device: "eth1", Unsure: "the route to 10.0.0.9 leads through lo: it is this machine"},
		"10.3.0.1":                  {Device: "eth0", Unsure: "there is no route to 10.3.0.1 (unreachable)"},
		"10.3.0.1 10.2.0.1 fd00::2": {Device: "eth0", Unsure: "the routes to 10.2.0.1 and fd00::2 lead through wg0 and eth1", IPv6: true},
	} {
		k.outward = func() (string, error) { return "eth0", nil }
		got, err := k.deviceTo(strings.Fields(peers), false)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", peers, got, err, want)
		}
		k.outward = func() (string, error) { return "", errors.New("none") }
		if _, err := k.deviceTo(strings.Fields(peers), false); (err == nil) != (want.Device != "eth0") || err != nil && !strings.HasPrefix(err.Error(), want.Unsure) {
			t.Errorf("%s without a default route: %v", peers, err)
		}
	}
	for devices, want := range map[string]hostDevice{
		"eth1":            {},
		"eth1,bond0":      {Note: "a bond"},
		"bond0,vrf0,eth1": {Note: "a bond; a table", NoXDP: "xdp: vrf0: not supported (a table): use another"},
	} {
		want.Device = devices
		if got := k.noted(hostDevice{Device: devices}); got != want {
			t.Errorf("%s: %+v, want %+v", devices, got, want)
		}
	}
	if w, err := k.deviceTo([]string{"10.4.0.1"}, true); err != nil || w.NoXDP == "" {
		t.Errorf("over IPv6: %+v, %v", w, err)
	}
	if w, err := k.deviceTo([]string{"nobody knows"}, false); err == nil || !strings.Contains(err.Error(), "the address of nobody knows is not found") {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		fabric     string
		found      []hostDevice
		want, note string
	}{
		{"", []hostDevice{{Device: "eth1"}, {Device: "eth1"}}, "xdp", "2 ranks on 2 hosts over AF_XDP on eth1"},
		{"xdp:generic", []hostDevice{{Device: "eth2"}, {Device: "eth1"}}, "xdp:generic", "2 ranks on 2 hosts over AF_XDP:generic on eth1 and eth2"},
		{"udp", []hostDevice{{Device: "wg0", NoXDP: "tunnel"}, {Device: "wg0"}}, "udp", "2 ranks on 2 hosts over kernel UDP on wg0"},
		{"udp", []hostDevice{{Device: "wg0"}, {Device: "wg0", Unsure: "parting"}}, "udp", "over kernel UDP on wg0 (b: parting; --device names another)"},
		{"", []hostDevice{{Device: "eth1"}, {Device: "wg0", NoXDP: "tunnel"}}, "udp", "over kernel UDP on eth1 and wg0 (b: tunnel; --device names another)"},
		{"", []hostDevice{{Device: "eth1", Unsure: "parting", NoXDP: "old"}, {Device: "eth1"}}, "udp", "on eth1 (a: parting; --device names another)"},
		{"", []hostDevice{{Device: "eth1"}, {Device: "bond0", Note: "a bond"}}, "xdp", "2 ranks on 2 hosts over AF_XDP on bond0 and eth1 (b: a bond)"},
		{"", []hostDevice{{Device: "vrf0", Note: "a table", NoXDP: "no card"}, {Device: "vrf0", Note: "a table"}}, "udp", "over kernel UDP on vrf0 (a: no card; --device names another)"},
		{"xdp", []hostDevice{{Device: "eth1"}, {Device: "wg0", NoXDP: "tunnel"}}, "", "AF_XDP cannot be used on b: tunnel; name the devices with --device, or use --fabric udp"},
	} {
		conf := Config{Program: "a", Hosts: hosts("a,b"), Fabric: c.fabric, User: "me"}
		p, err := makePlan(conf, root)
		if err != nil {
			t.Fatal(err)
		}
		var links []*link
		for i, w := range c.found {
			links = append(links, &link{plan: p.agents[i], found: w})
		}
		err = p.settle(conf, links)
		var ce *ConfigError
		switch {
		case c.want == "":
			if !errors.As(err, &ce) || !strings.Contains(err.Error(), c.note) {
				t.Errorf("%+v: %v, want %q", c, err, c.note)
			}
		case err != nil || p.fabric != c.want || !strings.Contains(p.notice, c.note) || p.shared != isXDP(c.want):
			t.Errorf("%+v: %v %q, %v", c, p, p.notice, err)
		}
	}
}

// Ranks use IPv6 where a host is named by such an address or has no other, unless the
// environment says which.
func TestPlan_ipv6(t *testing.T) {
	for _, c := range []struct {
		hosts, env, want string
		only6            bool
	}{
		{"a,b", "", "", false},
		{"a,b", "", "1", true},
		{"a,10.0.0.1", "", "", false},
		{"a,fd00::1", "", "1", false},
		{"[fd00::1]:2,b", "", "1", false},
		{"::1,::ffff:10.0.0.1", "", "", false},
		{"a,b", "1", "1", false},
		{"a,fd00::1", "0", "0", true},
	} {
		conf := Config{Program: "a", Hosts: hosts(c.hosts), Fabric: "udp"}
		if c.env != "" {
			conf.Env = []string{config.EnvIPv6 + "=" + c.env}
		}
		p, err := makePlan(conf, root)
		if err != nil {
			t.Fatal(err)
		}
		links := []*link{{plan: p.agents[0], found: hostDevice{Device: "eth1"}}, {plan: p.agents[1], found: hostDevice{Device: "eth1", IPv6: c.only6}}}
		if err := p.settle(conf, links); err != nil {
			t.Fatal(err)
		}
		if got, _ := lookupIn(p.env(conf), config.EnvIPv6); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// What is in the environment of xrun only does not reach ranks of other hosts by itself.
func TestPlan_ipv6OfXrun(t *testing.T) {
	t.Setenv(config.EnvIPv6, "1")
	conf := Config{Program: "a", Hosts: hosts("a,b"), Fabric: "udp"}
	p, err := makePlan(conf, root)
	if err != nil {
		t.Fatal(err)
	}
	if env := p.env(conf); !slices.Contains(env, config.EnvIPv6+"=1") {
		t.Errorf("the ranks get %q", env)
	}
}

// Hosts that are named by their addresses, and nothing else: each finds the device.
func TestRun_findsTheDevice(t *testing.T) {
	testenv.NeedRoot(t)
	t.Run("IPv4", func(t *testing.T) { findsTheDevice(t, false) })
	t.Run("IPv6", func(t *testing.T) { findsTheDevice(t, true) })
}

func findsTheDevice(t *testing.T, ipv6 bool) {
	tb := hosttest.New(t, testbed.Config{IPv6: ipv6})
	want := fabricXDP
	if err := probeXDP(); err != nil {
		if testenv.RequiresXDP() {
			t.Fatal(err)
		}
		want = fabricUDP
	}
	var notice bytes.Buffer
	run := func(variable, hosts string) string {
		t.Helper()
		c := rankConfig(2, "env", variable)
		var err error
		if c.Hosts, err = ParseHosts(hosts); err != nil {
			t.Fatal(err)
		}
		c.Launcher, c.Agent = []string{self, "as-inside", tb.Name}, []string{self, AgentArg}
		var out, errOut bytes.Buffer
		notice.Reset()
		c.Stdout, c.Stderr, c.Notice = &out, &errOut, &notice
		if err := Run(c); err != nil {
			t.Fatalf("%v\n%s", err, errOut.String())
		}
		return out.String()
	}
	both := tb.Hosts[0].Addr.String() + "," + tb.Hosts[1].Addr.String()
	if out := run(config.EnvDevice, both); out != "xw0\nxw0\n" {
		t.Errorf("devices %q, %s", out, notice.String())
	}
	if out := run(config.EnvFabric, both); out != want+"\n"+want+"\n" || !strings.HasPrefix(notice.String(), "2 ranks on 2 hosts over "+fabricName(want)+" on xw0") {
		t.Errorf("fabrics %q, %q", out, notice.String())
	}
	if out := run(config.EnvIPv6, both); ipv6 != (out == "1\n1\n") {
		t.Errorf("IPv6 for %s: %q", both, out)
	}
}

func TestHere(t *testing.T) {
	c := Config{}
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.0.1.1": true, "::1": true, "alice@localhost": false, "192.0.2.1": false, "2001:db8::1": false} {
		if got := c.here(host); got != want {
			t.Errorf("%s is here: %t", host, got)
		}
	}
	c.Launcher = []string{"rsh"}
	if c.here("localhost") {
		t.Error("a launcher was given, and is not used")
	}
}
