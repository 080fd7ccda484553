package xdp

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A card that spreads UDP by addresses only is found out, with what to do about it; one
// that does not say, or has one queue, is not talked about.
func TestReport_hash(t *testing.T) {
	const addresses, nothing = hashAddresses, 1 << 31
	for _, tt := range []struct {
		name   string
		queues int
		v4, v6 uint64 // 0: not said
		says   string
		remedy string
	}{
		{"ports", 4, addresses | hashPorts, addresses | hashPorts, "addresses and ports", ""},
		{"addresses", 4, addresses, addresses, "addresses only", "rx-flow-hash udp4 sdfn"},
		{"one of the ports", 4, addresses | 1<<6, addresses | hashPorts, "addresses only", "udp4"},
		{"addresses of IPv6", 2, addresses | hashPorts, addresses, "addresses only", "rx-flow-hash udp6 sdfn"},
		{"IPv4 only", 2, addresses | hashPorts, 0, "addresses and ports", ""},
		{"nothing", 4, nothing, nothing, "", ""},
		{"not said", 4, 0, 0, "", ""},
		{"one queue", 1, addresses, addresses, "", ""},
	} {
		card := ethtool(func(b []byte) error {
			hash := map[uint32]uint64{flowUDPv4: tt.v4, flowUDPv6: tt.v6}[hostOrder.Uint32(b[hashFlow:])]
			if hostOrder.Uint32(b) != unix.ETHTOOL_GRXFH || hash == 0 {
				return unix.EOPNOTSUPP
			}
			hostOrder.PutUint64(b[nfcData:], hash)
			return nil
		})
		var r Report
		r.hash(&device{name: "eth1", card: "eth1", receive: tt.queues}, card)
		f := finding(r, "rss")
		if !strings.Contains(f.Detail, tt.says) || tt.says == "" && f.Name != "" || !strings.Contains(f.Remedy, tt.remedy) || f.Name != "" && f.OK != (f.Remedy == "") || f.Needed {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}
