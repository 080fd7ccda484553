package xdp

import (
	"encoding/binary"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// features are what the driver of a device says about XDP (netdev netlink
// family, Linux 6.3).
type features struct {
	known  bool // false on older kernels: find out by trying
	flags  uint64
	zcSegs uint32 // most buffers per frame in zero-copy mode
}

// Bits of NETDEV_A_DEV_XDP_FEATURES (linux/netdev.h).
const (
	featureBasic    = 1 << 0
	featureRedirect = 1 << 1
	featureZeroCopy = 1 << 3
	featureRxSG     = 1 << 5
)

func (f features) driverMode() bool {
	return f.flags&(featureBasic|featureRedirect) == featureBasic|featureRedirect
}
func (f features) zeroCopy() bool    { return f.flags&featureZeroCopy != 0 }
func (f features) multiBuffer() bool { return f.flags&featureRxSG != 0 }

// queryFeatures asks the kernel. An old kernel leaves features.known false.
func queryFeatures(ifindex int) features {
	const devGet, ifindexAttr, featuresAttr, zcSegsAttr = 1, 1, 3, 4
	var f features
	index := nl.NewRtAttr(ifindexAttr, nl.Uint32Attr(uint32(ifindex)))
	attrs, err := askGeneric("netdev", devGet, index)
	if err != nil {
		return f
	}
	for _, a := range attrs {
		switch {
		case a.Attr.Type == featuresAttr && len(a.Value) >= 8:
			f.known, f.flags = true, binary.NativeEndian.Uint64(a.Value)
		case a.Attr.Type == zcSegsAttr && len(a.Value) >= 4:
			f.zcSegs = binary.NativeEndian.Uint32(a.Value)
		}
	}
	return f
}

// channels are the queues of a device.
type channels struct {
	both    int  // that can both receive and send; 0: its driver does not say
	receive int  // that can receive
	most    int  // both, at most; 0: its driver does not say
	apart   bool // receive and send queues are counted apart (ethtool -L DEV rx N tx N)
}

// queryChannels asks for the queues of a device (ethtool --show-channels).
func queryChannels(ifindex int) channels {
	const channelsGet, headerAttr, indexAttr = 17, 1, 1
	header := nl.NewRtAttr(headerAttr|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(indexAttr, nl.Uint32Attr(uint32(ifindex)))
	attrs, err := askGeneric(unix.ETHTOOL_GENL_NAME, channelsGet, header)
	if err != nil {
		return channels{}
	}
	return channelsOf(attrs)
}

// channelsOf reads the answer (linux/ethtool_netlink.h, ETHTOOL_A_CHANNELS_*).
func channelsOf(attrs []syscall.NetlinkRouteAttr) channels {
	const rxMax, txMax, combinedMax, rx, tx, combined = 2, 3, 5, 6, 7, 9
	var n [combined + 1]int
	for _, a := range attrs {
		if len(a.Value) >= 4 && int(a.Attr.Type) < len(n) {
			n[a.Attr.Type] = int(binary.NativeEndian.Uint32(a.Value))
		}
	}
	return channels{
		both: n[combined] + min(n[rx], n[tx]), receive: n[combined] + n[rx],
		most: max(n[combinedMax], min(n[rxMax], n[txMax])), apart: n[combinedMax] <= 1,
	}
}

// askGeneric sends one request to a generic netlink family and returns the
// attributes of the answer.
func askGeneric(family string, command uint8, attr *nl.RtAttr) ([]syscall.NetlinkRouteAttr, error) {
	f, err := netlink.GenlFamilyGet(family)
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(f.ID), 0)
	req.AddData(genlHeader{command, 1})
	req.AddData(attr)
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 || len(msgs[0]) < nl.SizeofGenlmsg {
		return nil, unix.ENODATA
	}
	return nl.ParseRouteAttr(msgs[0][nl.SizeofGenlmsg:])
}

// genlHeader is a struct genlmsghdr: command, version and two bytes that must
// be zero. The one of package nl has only the first two and sends what happens
// to lie behind it in memory.
type genlHeader [nl.SizeofGenlmsg]byte

// Len and Serialize make a genlHeader part of a request.
func (h genlHeader) Len() int          { return len(h) }
func (h genlHeader) Serialize() []byte { return h[:] }
