package conform

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// TestStreams_ktcpLoopback runs over kernel TCP on loopback.
func TestStreams_ktcpLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			Streams(t, func(*testing.T) StreamNet {
				return StreamNet{Step: yield, Open: func(int) (fabric.Streams, []io.Closer, error) {
					s, err := ktcp.Open(ktcp.Config{Local: netip.MustParseAddr(addr)})
					return s, nil, err
				}}
			})
		})
	}
}

// TestStreams_ktcpVeth runs over kernel TCP between network namespaces.
func TestStreams_ktcpVeth(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint("MTU=", mtu), func(t *testing.T) {
			tb := newTestbed(t, mtu)
			for _, family := range []string{"IPv4", "IPv6"} {
				addrs := addrsOf(t, tb, family)
				t.Run(family, func(t *testing.T) {
					Streams(t, func(*testing.T) StreamNet {
						return StreamNet{
							Step: yield,
							On:   func(i int, fn func() error) error { return tb.Hosts[i].Do(fn) },
							Open: func(i int) (fabric.Streams, []io.Closer, error) {
								s, err := ktcp.Open(ktcp.Config{Local: addrs[i]})
								return s, nil, err
							},
						}
					})
				})
			}
		})
	}
}

// addrsOf returns the addresses of the hosts, and gives them such of IPv6.
func addrsOf(t *testing.T, tb *testbed.Testbed, family string) (addrs [3]netip.Addr) {
	t.Helper()
	for i, h := range tb.Hosts {
		if addrs[i] = h.Addr; family == "IPv6" {
			addrs[i] = netip.MustParseAddr(fmt.Sprint("fd00:77::", i+1))
			on(t, h, func() error {
				return os.WriteFile("/proc/sys/net/ipv6/conf/"+h.Dev+"/disable_ipv6", []byte("0"), 0)
			})
			// No duplicate address detection: that takes a second or two.
			on(t, h, func() error {
				link, err := netlink.LinkByName(h.Dev)
				if err != nil {
					return err
				}
				a := &netlink.Addr{IPNet: &net.IPNet{IP: addrs[i].AsSlice(), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}
				return netlink.AddrAdd(link, a)
			})
		}
	}
	return addrs
}
