package bpf

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
)

// withTag puts a tag of 802.1Q into a frame: its type, priority and VLAN.
func withTag(frame []byte, typ, tci uint16) []byte {
	return slices.Insert(slices.Clone(frame), 12, byte(typ>>8), byte(typ), byte(tci>>8), byte(tci))
}

func TestSteer_vlan(t *testing.T) {
	const vlan, q, ad = 100, 0x8100, 0x88a8
	four, six := Config{PortBase: testPort, Slots: testSlots, VLAN: vlan, Addr: netip.MustParseAddr("10.0.0.2")},
		Config{PortBase: testPort, Slots: testSlots, VLAN: vlan, Addr: netip.MustParseAddr("fd00::2"), TCPPorts: 100}
	for _, family := range []struct {
		config Config
		frame  func(port uint16, edit ...func([]byte)) []byte
		least  int // bytes of the shortest frame for us
	}{{four, datagram, 42}, {six, datagram6, 62}} {
		strict := load(t, family.config)
		family.config.Untagged = true
		both := load(t, family.config)
		family.config.Untagged, family.config.VLAN = false, 0
		none := load(t, family.config)
		for _, p := range []*Program{strict, both, none} {
			for _, slot := range []int{0, testSlots - 1} {
				if err := p.Register(0, slot, newXSK(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		steered, passed := Counters{Steered: 1}, Counters{Passed: 1}
		ours := family.frame(testPort)
		short := family.frame(testPort, func(b []byte) {
			if b[12] == 8 { // IPv4
				set(16, 0, 28)(b)
				set(38, 0, 8)(b)
			} else {
				set(18, 0, 8)(b)
				set(58, 0, 8)(b)
			}
		})[:family.least]
		for _, test := range []struct {
			name  string
			frame []byte
			want  Counters // with a tag only
			loose Counters // without one, too
		}{
			{"our VLAN", withTag(ours, q, vlan), steered, steered},
			{"with a priority", withTag(ours, q, 0xf000|vlan), steered, steered},
			{"the last slot", withTag(family.frame(testPort+testSlots-1), q, vlan), steered, steered},
			{"the shortest datagram", withTag(short, q, vlan), steered, steered},
			{"one byte less", withTag(short, q, vlan)[:family.least+3], passed, passed},
			{"nothing behind the tag", withTag(ours, q, vlan)[:18], passed, passed},
			{"half a tag", withTag(ours, q, vlan)[:16], passed, passed},
			{"another VLAN", withTag(ours, q, vlan+1), passed, passed},
			{"another VLAN, higher bits", withTag(ours, q, vlan|0x800), passed, passed},
			{"priority only", withTag(ours, q, 0xe000), passed, passed},
			{"a provider's tag", withTag(ours, ad, vlan), passed, passed},
			{"two tags", withTag(withTag(ours, q, vlan), q, vlan), passed, passed},
			{"no tag", ours, passed, steered},
			{"another port", withTag(family.frame(testPort-1), q, vlan), passed, passed},
			{"a slot without socket", withTag(family.frame(testPort+1), q, vlan), Counters{NoSocket: 1}, Counters{NoSocket: 1}},
		} {
			strict.judge(t, test.name, test.frame, test.want)
			both.judge(t, test.name+", untagged too", test.frame, test.loose)
			want := passed
			if test.name == "no tag" {
				want = steered
			}
			none.judge(t, test.name+", to a program without VLAN", test.frame, want)
		}
		strict.leaves(t, "to a socket", withTag(ours, q, 0x6000|vlan), ours)
		for _, other := range [][]byte{withTag(ours, q, vlan+1), withTag(family.frame(testPort+1), q, vlan)} {
			strict.leaves(t, "to the kernel", other, other)
		}
		both.leaves(t, "without a tag", ours, ours)
	}
}

// leaves runs a frame through the program, and wants it to be another one then.
func (p *Program) leaves(t *testing.T, name string, frame, want []byte) {
	t.Helper()
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256)}
	if _, err := p.objs.Steer.Run(&o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(o.DataOut, want) {
		t.Errorf("%s: % x became % x, want % x", name, frame, o.DataOut, want)
	}
}
