package kudp

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// family is where IPv4 and IPv6 differ for sockets.
type family struct {
	domain, level, headers                    int // headers: IP and UDP, in bytes
	mtuDiscover                               int // option
	multicastAll, multicastTTL, multicastLoop int
	name, groups                              string
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return family{
			domain: unix.AF_INET, level: unix.IPPROTO_IP, headers: ipv4Len + udpLen,
			mtuDiscover:  unix.IP_MTU_DISCOVER,
			multicastAll: unix.IP_MULTICAST_ALL, multicastTTL: unix.IP_MULTICAST_TTL, multicastLoop: unix.IP_MULTICAST_LOOP,
			name: "IPv4", groups: "224.0.0.0/4",
		}
	}
	return family{
		domain: unix.AF_INET6, level: unix.IPPROTO_IPV6, headers: ipv6Len + udpLen,
		mtuDiscover:  unix.IPV6_MTU_DISCOVER,
		multicastAll: unix.IPV6_MULTICAST_ALL, multicastTTL: unix.IPV6_MULTICAST_HOPS, multicastLoop: unix.IPV6_MULTICAST_LOOP,
		name: "IPv6", groups: "ff00::/8",
	}
}

// wholePackets makes a socket send no fragments, and packets of the device's MTU
// whatever ICMP has told the kernel about the path: any host can send that. The LLP finds
// out by itself what the path carries.
func (f family) wholePackets(fd int) error {
	if f.domain == unix.AF_INET6 { // beside what it is told about the path, to cut what it sends itself
		if err := unix.SetsockoptInt(fd, f.level, unix.IPV6_DONTFRAG, 1); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(fd, f.level, f.mtuDiscover, unix.IP_PMTUDISC_PROBE) // the same number in both
}
