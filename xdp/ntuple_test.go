package xdp

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FakeNIC is a network card with n-tuple filters, as a driver's ethtool
// operations show it.
type FakeNIC struct {
	Size   int  // locations
	Picks  bool // the driver picks locations
	On     bool // filtering
	Fixed  bool // and cannot be changed
	Refuse func(Filter) error
	rules  map[uint32][]byte
}

// Filters returns those that are in the card, by port.
func (c *FakeNIC) Filters() (all []Filter) {
	for _, b := range c.rules {
		f, ok := decodeFilter(b)
		if !ok {
			f.Queue = -1
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(f, g Filter) int { return int(f.Port) - int(g.Port) })
	return all
}

// Insert adds a filter as somebody else does.
func (c *FakeNIC) Insert(f Filter) error {
	e := ethtool(c.do)
	t, err := e.list()
	if err != nil {
		return err
	}
	return e.insert(t, f)
}

// Use makes c the network card of a configuration.
func (c *FakeNIC) Use(config *QueueSetConfig) { config.card = c.do }

func (c *FakeNIC) do(b []byte) error {
	if c.rules == nil {
		c.rules = map[uint32][]byte{}
	}
	location := func() uint32 { return hostOrder.Uint32(b[nfcLocation:]) }
	switch hostOrder.Uint32(b) {
	case unix.ETHTOOL_GFLAGS:
		flags := uint32(1) // another one, which must stay
		if c.On {
			flags |= flagNTuple
		}
		hostOrder.PutUint32(b[4:], flags)
	case unix.ETHTOOL_SFLAGS:
		flags := hostOrder.Uint32(b[4:])
		if on := flags&flagNTuple != 0; on != c.On && c.Fixed || flags&1 == 0 {
			return unix.EOPNOTSUPP
		} else if c.On = on; !on {
			c.rules = map[uint32][]byte{}
		}
	case unix.ETHTOOL_GRXCLSRLCNT:
		size := uint64(c.Size)
		if c.Picks {
			size |= locSpecial
		}
		hostOrder.PutUint64(b[nfcData:], size)
		hostOrder.PutUint32(b[nfcCount:], uint32(len(c.rules)))
	case unix.ETHTOOL_GRXCLSRLALL:
		hostOrder.PutUint64(b[nfcData:], uint64(c.Size))
		i := 0
		for at := range c.rules {
			hostOrder.PutUint32(b[nfcLocs+4*i:], at)
			i++
		}
	case unix.ETHTOOL_GRXCLSRULE:
		rule, ok := c.rules[location()]
		if !ok {
			return unix.ENOENT
		}
		copy(b[nfcSpec:nfcCount], rule[nfcSpec:nfcCount])
	case unix.ETHTOOL_SRXCLSRLINS:
		return c.insert(b, location())
	case unix.ETHTOOL_SRXCLSRLDEL:
		if _, ok := c.rules[location()]; !ok {
			return unix.ENOENT
		}
		delete(c.rules, location())
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

func (c *FakeNIC) insert(b []byte, location uint32) error {
	if !c.On {
		return unix.EOPNOTSUPP
	}
	if f, _ := decodeFilter(b); c.Refuse != nil && c.Refuse(f) != nil {
		return c.Refuse(f)
	}
	if location == locAny && c.Picks {
		location = uint32(100 + len(c.rules))
		hostOrder.PutUint32(b[nfcLocation:], location)
	}
	if _, ok := c.rules[location]; ok || location >= uint32(c.Size) {
		return unix.EINVAL
	}
	c.rules[location] = slices.Clone(b)
	return nil
}

func udpFilter(port uint16, queue int) Filter {
	return Filter{Protocol: unix.IPPROTO_UDP, Addr: netip.MustParseAddr("10.1.2.3"), Port: port, Mask: 0xffff, Queue: queue}
}

// What we encode are the bytes that a C program writes which has the header.
func TestFilter_bytesAreThoseOfTheHeader(t *testing.T) {
	const program = `
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <stdio.h>
int main(void) {
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_SRXCLSRLINS };
	n.fs.flow_type = TCP_V4_FLOW;
	n.fs.h_u.tcp_ip4_spec.ip4dst = inet_addr("10.1.2.3");
	n.fs.m_u.tcp_ip4_spec.ip4dst = 0xffffffff;
	n.fs.h_u.tcp_ip4_spec.pdst = htons(61440);
	n.fs.m_u.tcp_ip4_spec.pdst = htons(0xff00);
	n.fs.ring_cookie = 7;
	n.fs.location = RX_CLS_LOC_ANY;
	fwrite(&n, sizeof n, 1, stdout);
}`
	compiler := ""
	for _, name := range []string{"cc", "clang", "clang-14"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		t.Skip("needs a C compiler")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-o", binary, source).CombinedOutput(); err != nil {
		t.Skipf("needs the kernel's headers: %s", out)
	}
	want, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	f := Filter{Protocol: unix.IPPROTO_TCP, Addr: netip.MustParseAddr("10.1.2.3"), Port: 61440, Mask: 0xff00, Queue: 7}
	if got := f.encode(locAny); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestDecodeFilter(t *testing.T) {
	want := udpFilter(18700, 3)
	if got, ok := decodeFilter(want.encode(5)); !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	for name, at := range map[string]int{
		"another flow": nfcSpec, "a source address": nfcMatch, "its mask": nfcMask, "type of service": nfcMask + 12, "a virtual function": nfcRing + 4,
	} {
		b := want.encode(5)
		b[at] ^= 0x40
		if f, ok := decodeFilter(b); ok {
			t.Errorf("%s: taken for %v", name, f)
		}
	}
}

func TestEthtool_insertAndRemove(t *testing.T) {
	for _, picks := range []bool{false, true} {
		card := &FakeNIC{Size: 256, On: true, Picks: picks}
		e := ethtool(card.do)
		theirs := udpFilter(53, 9)
		table, err := e.list()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Filter{theirs, udpFilter(1000, 0), udpFilter(1001, 1)} {
			if err := e.insert(table, f); err != nil {
				t.Fatal(err)
			}
		}
		if !picks && card.rules[255] == nil {
			t.Errorf("the first filter is not at the end: %v", card.rules)
		}
		if table, err = e.list(); err != nil || len(table.used) != 3 {
			t.Fatalf("%v, %v", table, err)
		}
		if err := table.conflict([]Filter{udpFilter(1002, 0), udpFilter(1001, 5)}); !errors.Is(err, unix.EEXIST) {
			t.Errorf("a second filter for the same packets: %v", err)
		}
		if err := table.conflict([]Filter{udpFilter(1002, 0)}); err != nil {
			t.Error(err)
		}
		if n, others, err := e.remove([]Filter{udpFilter(1000, 0), udpFilter(1001, 1), udpFilter(53, 8)}); n != 2 || others != 1 || err != nil {
			t.Errorf("%d removed, %d are others', %v", n, others, err)
		}
		if left := card.Filters(); len(left) != 1 || left[0] != theirs {
			t.Errorf("left: %v", left)
		}
	}
}

func TestEthtool_full(t *testing.T) {
	card := &FakeNIC{Size: 2, On: true}
	e := ethtool(card.do)
	table, err := e.list()
	if err != nil {
		t.Fatal(err)
	}
	err = e.insertAll(table, []Filter{udpFilter(1, 0), udpFilter(2, 0), udpFilter(3, 0)})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "all 2 places") {
		t.Errorf("%v", err)
	}
}

// A filter that we understand is the one that we would have written.
func FuzzDecodeFilter(f *testing.F) {
	f.Add(udpFilter(18700, 3).encode(5))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != nfcLen {
			return
		}
		got, ok := decodeFilter(b)
		if !ok {
			return
		}
		if again, ok := decodeFilter(got.encode(7)); !ok || again != got {
			t.Errorf("%x: %v, and then %v", b, got, again)
		}
	})
}

// The kernel takes our requests: it knows the flags of every device.
func TestEthtool_kernel(t *testing.T) {
	card, closeCard, err := openEthtool("lo")
	if err != nil {
		t.Fatal(err)
	}
	defer closeCard()
	if on, err := card.filtering(); on || err != nil {
		t.Errorf("loopback filters: %v, %v", on, err)
	}
	if _, err := card.list(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("filters of loopback: %v", err)
	}
	gone, closeGone, err := openEthtool("no-such-device0")
	if err != nil {
		t.Fatal(err)
	}
	defer closeGone()
	if _, err := gone.filtering(); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a device that is not there: %v", err)
	}
}
