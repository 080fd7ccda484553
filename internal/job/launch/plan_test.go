package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
)

var (
	root   = machine{root: true, cpus: 4, name: "me"}
	user   = machine{xdp: errors.New("not allowed"), cpus: 4, name: "me"}
	oldish = machine{root: true, xdp: errors.New("too old"), cpus: 4, name: "me"}
)

func hosts(list string) []Host {
	h, err := ParseHosts(list)
	if err != nil {
		panic(err)
	}
	return h
}

// String shows a plan as "host[@namespace]:rank.local/slot..." and the carrier.
func (p *plan) String() string {
	var b strings.Builder
	for _, a := range p.agents {
		fmt.Fprintf(&b, "%s", a.hostName)
		if p.testbed != nil {
			fmt.Fprintf(&b, "@%d", a.netns)
		}
		fmt.Fprintf(&b, "#%d[", a.host)
		for _, r := range a.ranks {
			fmt.Fprintf(&b, " %d.%d/%d", r.Rank, r.Local, r.Slot)
		}
		b.WriteString(" ] ")
	}
	fmt.Fprintf(&b, "%s %s", p.fabric, p.device)
	if p.shared {
		b.WriteString(" shared")
	}
	if p.routed {
		b.WriteString(" routed")
	}
	if p.steered != nil {
		fmt.Fprintf(&b, " steered %d hops %d", p.steered.Slots, p.steered.Hops)
		if p.testbed != nil {
			fmt.Fprintf(&b, " queues %d", p.testbed.Queues)
		}
	}
	if p.testbed != nil {
		fmt.Fprintf(&b, " testbed %d mtu %d", p.testbed.Hosts, p.testbed.MTU)
	}
	return b.String()
}

func TestMakePlan(t *testing.T) {
	for _, c := range []struct {
		m      machine
		c      Config
		want   string
		notice string
	}{
		{user, Config{Ranks: 1}, "me#0[ 0.0/-1 ] udp lo", "1 rank on this host (for AF_XDP"},
		{user, Config{Ranks: 2, Env: []string{"XWARP_SHARED=0"}}, "me#0[ 0.0/-1 1.1/-1 ] udp lo", "2 ranks on this host over kernel UDP on lo"},
		{user, Config{Ranks: 3}, "me#0[ 0.0/-1 1.1/-1 2.2/-1 ] udp lo", "3 ranks on this host through shared memory (for AF_XDP"},
		{root, Config{}, "me#0[ 0.0/-1 ] udp lo", "1 rank"},
		{root, Config{Fabric: "udp"}, "me#0[ 0.0/-1 ] udp lo", ""},
		{root, Config{Fabric: "xdp", Device: "eth1"}, "me#0[ 0.0/-1 ] xdp eth1", ""},
		{root, Config{Ranks: 2, Bind: BindCore}, "me#0[ 0.0/0 1.1/1 ] udp lo", "shared memory"},
		{root, Config{Testbed: 2}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] xdp xw0 testbed 2 mtu 0", "2 ranks on 2 testbed hosts over AF_XDP"},
		{root, Config{Testbed: 2, Ranks: 4, MTU: 1500}, "me@0#0[ 0.0/0 1.1/1 ] me@1#1[ 2.0/2 3.1/3 ] xdp xw0 shared testbed 2 mtu 1500", "those of a host on one queue"},
		{root, Config{Testbed: 2, Ranks: 3, Fabric: "xdp:asavie"}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] me@2#1[ 2.1/2 ] xdp:asavie xw0 testbed 3 mtu 0", "each with a NIC of its own"},
		{root, Config{Testbed: 2, Ranks: 3, Fabric: "udp", Bind: BindNone}, "me@0#0[ 0.0/-1 ] me@1#1[ 1.0/-1 2.1/-1 ] udp xw0 testbed 2 mtu 0", "over kernel UDP"},
		{root, Config{Testbed: 3, Ranks: 1, Fabric: "xdp:generic"}, "me@2#2[ 0.0/0 ] xdp:generic xw0 testbed 3 mtu 0", "AF_XDP:generic"},
		{oldish, Config{Testbed: 2}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] udp xw0 testbed 2 mtu 0", "no AF_XDP here: too old"},
		{user, Config{Testbed: 2, Ranks: 4, MTU: 1500}, "me(0)#0[ 0.0/-1 1.1/-1 ] me(1)#1[ 2.0/-1 3.1/-1 ] udp lo", "not root"},
		{root, Config{Hosts: hosts("a,b"), Ranks: 3}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 2.1/-1 ] xdp  shared routed", ", those of a host on one queue"},
		{root, Config{Hosts: hosts("a,b"), Device: "eth1"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp eth1 routed", ""},
		{root, Config{Hosts: hosts("a,b"), Device: "eth1,eth2"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp eth1,eth2 routed", ""},
		{root, Config{Hosts: hosts("a:2,b"), Device: "eth1,eth2"}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 ] xdp eth1,eth2 shared routed", ", those of a host on one queue"},
		{root, Config{Hosts: hosts("a,b"), Device: "eth1,eth2", Fabric: "xdp", User: "me"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp eth1,eth2 shared routed", ""},
		{root, Config{Hosts: hosts("a:2,b"), Device: "eth1,eth2", Queues: QueuesSteered}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 ] xdp eth1,eth2 routed steered 2 hops -1", "each with queues of its own"},
		{user, Config{Hosts: hosts("a,b"), Device: "eth1"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] udp eth1", "AF_XDP needs root"},
		{oldish, Config{Hosts: hosts("a,b"), Device: "eth1"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] udp eth1", "too old"},
		{root, Config{Hosts: hosts("a:2,b:3,c"), Ranks: 4, Device: "eth1", Bind: BindCore}, "a#0[ 0.0/0 1.1/1 ] b#1[ 2.0/0 3.1/1 ] xdp eth1 shared routed", "those of a host on one queue"},
		{user, Config{Hosts: hosts("a:2,b:2"), Device: "eth1"}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 3.1/-1 ] udp eth1", "AF_XDP needs root"},
		{root, Config{Ranks: 2, Fabric: "xdp:driver", Device: "eth1"}, "me#0[ 0.0/-1 1.1/-1 ] xdp:driver eth1 shared", ""},
		{root, Config{Testbed: 2, Ranks: 5, Queues: QueuesShared}, "me@0#0[ 0.0/0 1.1/1 ] me@1#1[ 2.0/2 3.1/3 4.2/2 ] xdp xw0 shared testbed 2 mtu 0", "those of a host on one queue"},
		{root, Config{Testbed: 2, Queues: QueuesShared}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] xdp xw0 shared testbed 2 mtu 0", "2 ranks"},
		{root, Config{Testbed: 2, User: "me"}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] xdp xw0 shared testbed 2 mtu 0", "2 ranks"},
		{root, Config{Testbed: 2, User: "me", Queues: QueuesPerRank}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] xdp xw0 testbed 2 mtu 0", "2 ranks"},
		{root, Config{Hosts: hosts("a,b"), Device: "eth1", User: "me"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp eth1 shared routed", ""},
		{root, Config{Testbed: 2, Ranks: 4, Queues: QueuesShared, Fabric: "udp"}, "me@0#0[ 0.0/0 1.1/1 ] me@1#1[ 2.0/2 3.1/3 ] udp xw0 testbed 2 mtu 0", "kernel UDP"},
		{root, Config{Testbed: 2, Ranks: 4, Queues: QueuesPerRank}, "me@0#0[ 0.0/0 ] me@1#0[ 1.1/1 ] me@2#1[ 2.0/2 ] me@3#1[ 3.1/3 ] xdp xw0 testbed 4 mtu 0", "each with a NIC of its own"},
		{root, Config{Testbed: 2, Ranks: 5, Queues: QueuesSteered}, "me@0#0[ 0.0/0 1.1/1 ] me@1#1[ 2.0/2 3.1/3 4.2/2 ] xdp xw0 steered 3 hops 0 queues 11 testbed 2 mtu 0", "queues of its own"},
		{root, Config{Testbed: 3, Ranks: 4, Queues: QueuesSteered, Map: MapNode}, "me@0#0[ 0.0/0 3.1/3 ] me@1#1[ 1.0/1 ] me@2#2[ 2.0/2 ] xdp xw0 steered 2 hops 1 queues 6 testbed 3 mtu 0", "queues of its own"},
		{root, Config{Testbed: 2, Switch: testbed.Bridge, Queues: QueuesSteered}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] xdp xw0 steered 1 hops 1 queues 3 testbed 2 mtu 0", "queues of its own"},
		{root, Config{Testbed: 2, Queues: QueuesSteered, Fabric: "udp"}, "me@0#0[ 0.0/0 ] me@1#1[ 1.0/1 ] udp xw0 testbed 2 mtu 0", "kernel UDP"},
		{root, Config{Hosts: hosts("a:2,b"), Device: "eth1", Queues: QueuesSteered}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 ] xdp eth1 routed steered 2 hops -1", "queues of its own"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a,b:3,c"), Ranks: 5}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 2.1/-1 3.2/-1 ] c#2[ 4.0/-1 ] udp lo", "3 hosts"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a:2,b:3,c")}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 3.1/-1 4.2/-1 ] c#2[ 5.0/-1 ] udp lo", "6 ranks on 3 hosts"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a:2,b:3,c"), Map: MapNode, Bind: BindNUMA}, "a#0[ 0.0/0 3.1/1 ] b#1[ 1.0/0 4.1/1 5.2/2 ] c#2[ 2.0/0 ] udp lo", "3 hosts"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a,b"), Map: MapNode, Ranks: 5}, "a#0[ 0.0/-1 2.1/-1 4.2/-1 ] b#1[ 1.0/-1 3.1/-1 ] udp lo", "5 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a:9,b"), PerHost: 2}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 3.1/-1 ] udp lo", "4 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a:2,b"), Ranks: 7, Oversubscribe: true}, "a#0[ 0.0/-1 1.1/-1 2.2/-1 3.3/-1 4.4/-1 ] b#1[ 5.0/-1 6.1/-1 ] udp lo", "7 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: []Host{{"a", 1, 2, nil}, {"b", 1, 0, nil}}, Ranks: 5, Oversubscribe: true}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 3.1/-1 4.2/-1 ] udp lo", "5 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a,b"), PerHost: 2, Ranks: 3, Oversubscribe: true}, "a#0[ 0.0/-1 1.1/-1 ] b#1[ 2.0/-1 ] udp lo", "3 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a,b"), PerHost: 2, Ranks: 3, Map: MapCore}, "a#0[ 0.0/0 1.1/1 ] b#1[ 2.0/0 ] udp lo", "3 ranks"},
		{root, Config{Testbed: 2, PerHost: 2, Fabric: "udp", Map: MapNode}, "me@0#0[ 0.0/0 2.1/2 ] me@1#1[ 1.0/1 3.1/3 ] udp xw0 testbed 2 mtu 0", "4 ranks"},
		{root, Config{PerHost: 3, Map: MapNUMA}, "me#0[ 0.0/0 1.1/1 2.2/2 ] udp lo", "3 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a,b,c"), Own: Own{OwnHosts: []string{"b"}}, Further: []App{{Program: "x", Ranks: 4, Hosts: []string{"a", "c"}}, {Program: "y", Ranks: 3}}}, "a#0[ 1.0/-1 2.1/-1 5.2/-1 ] b#1[ 0.0/-1 6.1/-1 ] c#2[ 3.0/-1 4.1/-1 7.2/-1 ] udp lo", "8 ranks"},
		{root, Config{Device: "lo", Fabric: "udp", Hosts: hosts("a:2,b:3"), Ranks: 2, Own: Own{OwnHosts: []string{"b"}}, Further: []App{{Program: "x", Ranks: 3}}}, "a#0[ 2.0/-1 3.1/-1 ] b#1[ 0.0/-1 1.1/-1 4.2/-1 ] udp lo", "5 ranks"},
		{root, Config{Hosts: hosts("a:2,b:2"), Ranks: 2}, "a#0[ 0.0/-1 1.1/-1 ] udp lo", "2 ranks on a through shared memory"},
		{user, Config{Hosts: hosts("a,b"), Fabric: "xdp"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp  routed", ""},
		{root, Config{Hosts: hosts("a,b"), Queues: QueuesSteered}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] xdp  routed steered 1 hops -1", "each with queues of its own"},
		{root, Config{Hosts: hosts("a,b"), Fabric: "udp"}, "a#0[ 0.0/-1 ] b#1[ 1.0/-1 ] udp  routed", ""},
	} {
		c.c.Program = "prog"
		p, err := makePlan(c.c, c.m)
		if err != nil {
			t.Errorf("%+v: %v", c.c, err)
			continue
		}
		if p.String() != c.want {
			t.Errorf("%+v:\ngot  %v\nwant %s", c.c, p, c.want)
		}
		found := false
		for _, part := range strings.Split(c.notice, "|") {
			found = found || strings.Contains(p.notice, part)
		}
		if !found || (c.notice == "") != (p.notice == "") || strings.Contains(p.notice, "\n") {
			t.Errorf("%+v: notice %q, want %q", c.c, p.notice, c.notice)
		}
	}
}

func TestMakePlan_refuses(t *testing.T) {
	for want, c := range map[string]struct {
		m machine
		c Config
	}{
		"70000 ranks":                                  {root, Config{Ranks: 70000}},
		"-1 ranks":                                     {root, Config{Ranks: -1}},
		"testbed of 1000":                              {root, Config{Testbed: 1000}},
		"--testbed or --hosts":                         {root, Config{Testbed: 2, Hosts: hosts("a")}},
		"leave out --device":                           {root, Config{Testbed: 2, Device: "eth1"}},
		"--mtu is for":                                 {root, Config{MTU: 1500}},
		"an MTU of 7":                                  {root, Config{MTU: 7, Testbed: 2}},
		"only root can start ranks":                    {user, Config{User: "me", Testbed: 2}},
		"unknown fabric \"tcp\"":                       {root, Config{Fabric: "tcp"}},
		"cannot bind to \"board\"":                     {root, Config{Bind: "board"}},
		"2 cores for each rank":                        {root, Config{Cores: 2, Bind: BindNUMA}},
		"-1 cores for each rank":                       {root, Config{Cores: -1, Bind: BindCore}},
		"it needs root":                                {user, Config{Testbed: 2, Fabric: "xdp"}},
		"it needs root; use":                           {user, Config{Device: "eth1", Fabric: "xdp"}},
		"too old":                                      {oldish, Config{Testbed: 2, Fabric: "xdp:driver"}},
		"here: too old; use":                           {oldish, Config{Device: "eth1", Fabric: "xdp"}},
		"251 ranks over AF_XDP":                        {root, Config{Testbed: 2, Ranks: 251, Queues: QueuesPerRank}},
		"the devices are \"eth1,eth1\"":                {root, Config{Hosts: hosts("a,b"), Device: "eth1,eth1"}},
		"give up to 4":                                 {root, Config{Hosts: hosts("a,b"), Device: "a,b,c,d,e", Fabric: "udp"}},
		"2 ranks on one host":                          {root, Config{Ranks: 2, Fabric: "xdp", Device: "eth1", Queues: QueuesPerRank}},
		"3 ranks on one host":                          {root, Config{Hosts: hosts("a:3,b"), Ranks: 4, Fabric: "xdp", Device: "eth1", Queues: QueuesPerRank}},
		"xdp:asavie no queue can":                      {root, Config{Testbed: 2, Ranks: 4, Fabric: "xdp:asavie", Queues: QueuesShared}},
		"no queue can be passed on":                    {root, Config{Testbed: 2, Ranks: 4, Fabric: "xdp:asavie", Queues: QueuesSteered}},
		"33 ranks on a host of the":                    {root, Config{Testbed: 2, Ranks: 66, Queues: QueuesSteered}},
		"queues \"many\": want":                        {root, Config{Queues: "many"}},
		"needs a --device (xinfo lists them), where":   {root, Config{Hosts: hosts("a:2,b"), Ranks: 2, Fabric: "xdp"}},
		"needs a --device (xinfo":                      {root, Config{Fabric: "xdp"}},
		"3: --oversubscribe puts":                      {root, Config{Hosts: hosts("a:2,b"), Ranks: 4}},
		"3 ranks do not fit of x on b with room for 2": {root, Config{Hosts: hosts("a:2,b:2"), Further: []App{{Program: "x", Ranks: 3, Hosts: []string{"b"}}}}},
		"and max_slots lets no":                        {root, Config{Hosts: []Host{{"a", 1, 2, nil}, {"b", 1, 1, nil}}, Ranks: 4, Oversubscribe: true}},
		"5 ranks do not fit on 2":                      {root, Config{Hosts: hosts("a:9,b:9"), Ranks: 5, PerHost: 2}},
		"131072 ranks: want up to":                     {root, Config{Hosts: hosts("a:65536,b:65536")}},
		"-1 ranks per host":                            {root, Config{PerHost: -1}},
		"cannot map by \"board\"":                      {root, Config{Map: "board"}},
		"a timeout of -1s":                             {root, Config{Timeout: -time.Second}},
		"--outfile-pattern \"x.%q\": %q stands for nothing: want %r": {root, Config{OutFile: "x.%q"}},
		"--errfile-pattern \"%r%\": % stands for nothing":            {root, Config{ErrFile: "%r%"}},
	} {
		c.c.Program = "prog"
		_, err := makePlan(c.c, c.m)
		if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c.c, err, want)
		}
	}
}

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts("a,b.example:12,10.0.0.1,n[1-2,04]:3,a:2,fd00::1,[FD00::2]:4,fd00::1:2,fe80::1%eth1,::1")
	if want := "[{a 3 0 <nil>} {b.example 12 0 <nil>} {10.0.0.1 0 0 <nil>} {n1 3 0 <nil>} {n2 3 0 <nil>} {n04 3 0 <nil>}" +
		" {fd00::1 0 0 <nil>} {fd00::2 4 0 <nil>} {fd00::1:2 0 0 <nil>} {fe80::1%eth1 0 0 <nil>} {::1 0 0 <nil>}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, list := range []string{"", ",", "a,", "a,,b", "a:", "a:0", "a:x", "a:-1", "a:99999999", ":2", "a:1:2", "a[1", "a[1,b", "a]1", "a[1]]", "-oProxyCommand=x", "[fd00::1", "[fd00::1]:", "[fd00::1]:x", "[fd00::]1", "[10.0.0.1:2]", "fd00::g"} {
		if h, err := ParseHosts(list); err == nil {
			t.Errorf("%q: %v", list, h)
		}
	}
}

func FuzzParseHosts(f *testing.F) {
	f.Add("a,b:2,c")
	f.Add("a:1:2")
	f.Add("a[1-3,07]:4,b")
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := ParseHosts(list)
		for _, h := range hosts {
			if err == nil && (h.Name == "" || h.Name[0] == '-' || h.Slots < 0 || h.Slots > MaxRanks) {
				t.Errorf("%q: %+v", list, h)
			}
		}
	})
}

// Ghosts are numbered behind the ranks, on hosts that have some. Where they are bound each is behind
// those that it serves, but in a testbed, whose hosts are one machine.
func TestMakePlan_ghosts(t *testing.T) {
	for _, x := range []struct {
		c    Config
		want string
	}{
		{Config{Ranks: 3, Testbed: 2}, "me@0#0[ 0.0/0 3.1/3 4.2/4 ] me@1#1[ 1.0/1 2.1/2 5.2/5 6.3/6 ] xdp xw0 shared testbed 2 mtu 0"},
		{Config{Ranks: 3, Fabric: "udp"}, "me#0[ 0.0/0 1.1/1 2.2/3 3.3/2 4.4/4 ] udp lo"},
		{Config{Ranks: 3, Fabric: "udp", Device: "lo", Hosts: hosts("a:2,b")}, "a#0[ 0.0/0 1.1/2 3.2/1 4.3/3 ] b#1[ 2.0/0 5.1/1 6.2/2 ] udp lo"},
	} {
		c := x.c
		c.Program, c.Ghosts, c.Bind = "x", 2, BindCore
		p, err := makePlan(c, root)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.String(); got != x.want || p.users() != 3 || len(p.hosts()) != 3 || p.appOf(3) != 1 {
			t.Errorf("%s, %d ranks; want %s", got, p.users(), x.want)
		}
	}
	for _, wrong := range []Config{
		{Program: "x", Ranks: 2, Ghosts: MaxGhosts + 1}, {Program: "x", Ghosts: -1}, {Program: "x", Ranks: MaxRanks, Ghosts: 1},
		{Program: "x", Ranks: 2, Testbed: 2, Ghosts: 1, Queues: QueuesPerRank}, {Program: "x", Ranks: 2, Ghosts: 1, StdinTo: 2},
	} {
		if _, err := makePlan(wrong, root); err == nil {
			t.Errorf("%d ranks and %d ghosts were planned", wrong.Ranks, wrong.Ghosts)
		}
	}
}
