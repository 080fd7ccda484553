package route

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// memberships returns what the kernel of host A says it is a member of: groups
// as 8 hexadecimal digits, in little-endian order (/proc/net/igmp).
func (b *bench) memberships() (list string) {
	b.inA(func() error {
		igmp, err := os.ReadFile("/proc/thread-self/net/igmp")
		list = string(igmp)
		return err
	})
	return list
}

func TestJoin(t *testing.T) {
	b := open(t, Config{})
	group := netip.MustParseAddr("239.1.2.3")
	const inKernel = "030201EF"
	for range 2 {
		if err := b.Join(group); err != nil {
			t.Fatal(err)
		}
	}
	if list := b.memberships(); !strings.Contains(list, inKernel) {
		t.Errorf("the kernel is no member:\n%s", list)
	}
	for i, member := range []bool{true, false} {
		if err := b.Leave(group); err != nil {
			t.Fatal(err)
		}
		if list := b.memberships(); strings.Contains(list, inKernel) != member {
			t.Errorf("after %d of 2 calls of Leave:\n%s", i+1, list)
		}
	}
	if err := b.Leave(group); err == nil {
		t.Error("a third Leave finds nothing wrong")
	}
}

func TestJoin_errors(t *testing.T) {
	b := open(t, Config{})
	for _, bad := range []string{"10.0.0.1", "fd00::1"} {
		if err := b.Join(netip.MustParseAddr(bad)); err == nil {
			t.Errorf("%s was joined", bad)
		}
	}
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = b.Join(netip.AddrFrom4([4]byte{239, 0, byte(i >> 8), byte(i)}))
	}
	if err == nil || !strings.Contains(fmt.Sprint(err), "igmp_max_memberships") {
		t.Errorf("too many groups: %v", err)
	}
}
