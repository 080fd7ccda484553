package xdp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Where things are in a struct ethtool_rxnfc that asks by what packets of a kind are
// spread over queues, and values of linux/ethtool.h.
const (
	hashFlow      = 4
	hashAddresses = 1<<4 | 1<<5 // RXH_IP_SRC and RXH_IP_DST
	hashPorts     = 1<<6 | 1<<7 // RXH_L4_B_0_1 and RXH_L4_B_2_3
)

// hashesPorts reports whether a network card looks at ports to spread UDP of a kind,
// flowUDPv4 or flowUDPv6, over its queues. known is false for one that does not say by what
// it does, or looks at nothing.
func (e ethtool) hashesPorts(flow uint32) (ports, known bool) {
	b := nfcRequest(unix.ETHTOOL_GRXFH, 0)
	hostOrder.PutUint32(b[hashFlow:], flow)
	err := e(b)
	by := hostOrder.Uint64(b[nfcData:])
	return by&hashPorts == hashPorts, err == nil && by&hashAddresses == hashAddresses
}

// hash tells whether what one host sends can come in on several queues, where there are
// any and the card says it.
func (r *Report) hash(dev *device, card ethtool) {
	if dev.receive < 2 {
		return
	}
	for _, kind := range []struct {
		flow uint32
		name string
	}{{flowUDPv4, "udp4"}, {flowUDPv6, "udp6"}} {
		ports, known := card.hashesPorts(kind.flow)
		if !known {
			return
		}
		f := Finding{Name: "rss", OK: ports, Detail: "UDP is spread over the queues by addresses and ports"}
		if !ports {
			f.Detail = "UDP is spread over the queues by addresses only: all from one host comes in on one queue"
			f.Remedy = fmt.Sprintf("ethtool -N %s rx-flow-hash %s sdfn, if its driver takes it", dev.card, kind.name)
		}
		r.add(f)
		if !ports {
			return
		}
	}
}
