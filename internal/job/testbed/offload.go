package testbed

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/genl"
)

// segmentation returns the offloads that make a veth send packets above its MTU,
// by the names that `ethtool -k` knows them by. The redirect program can forward
// nothing above the MTU.
func segmentation() []string {
	return []string{
		"tx-generic-segmentation", "tx-tcp-segmentation", "tx-tcp-ecn-segmentation",
		"tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation", "tx-gso-list",
	}
}

// ChecksumOff makes the kernel put checksums into packets before it hands them to
// the device: a veth computes none, and AF_XDP gets the frames as they are. It is
// `ethtool -K DEV tx off`.
func (h *Host) ChecksumOff() error {
	return h.Do(func() error { return offloadOff(h.Dev, "tx-checksum-ip-generic", "tx-checksum-sctp") })
}

// offloadOff makes the kernel do itself what dev, in the calling thread's
// namespace, would do for it. The message is ETHTOOL_MSG_FEATURES_SET of the
// kernel's Documentation/networking/ethtool-netlink.rst.
func offloadOff(dev string, features ...string) error {
	family, err := genl.Family(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return fmt.Errorf("the kernel has no ethtool netlink: %w", err)
	}
	header := nl.NewRtAttr(unix.ETHTOOL_A_FEATURES_HEADER|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(dev))
	wanted := nl.NewRtAttr(unix.ETHTOOL_A_FEATURES_WANTED|unix.NLA_F_NESTED, nil)
	bits := wanted.AddRtAttr(unix.ETHTOOL_A_BITSET_BITS|unix.NLA_F_NESTED, nil)
	for _, name := range features {
		// A bit that is named without a value is one to clear.
		bit := bits.AddRtAttr(unix.ETHTOOL_A_BITSET_BITS_BIT|unix.NLA_F_NESTED, nil)
		bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_NAME, nl.ZeroTerminated(name))
	}
	req := genl.NewRequest(family, unix.ETHTOOL_MSG_FEATURES_SET, unix.NLM_F_ACK, header, wanted)
	if _, err := req.Execute(unix.NETLINK_GENERIC, 0); err != nil {
		return fmt.Errorf("offload of %s off (%s): %w", dev, strings.Join(features, ", "), err)
	}
	return nil
}
