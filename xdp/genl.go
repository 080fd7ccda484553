package xdp

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/genl"
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
	attrs, err := askGeneric(unix.ETHTOOL_GENL_NAME, channelsGet, channelsRequest(ifindex))
	if err != nil {
		return channels{}
	}
	return channelsOf(attrs)
}

const channelsGet = 17

func channelsRequest(ifindex int) *nl.RtAttr {
	const headerAttr, indexAttr = 1, 1
	header := nl.NewRtAttr(headerAttr|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(indexAttr, nl.Uint32Attr(uint32(ifindex)))
	return header
}

// QueueCounter counts the receive queues of a device again and again, in the network
// namespace where it was made. One goroutine at a time uses it.
type QueueCounter struct {
	ifindex int
	family  uint16
	kernel  *nl.NetlinkSocket
	sockets map[int]*nl.SocketHandle
}

// NewQueueCounter makes a counter for a device in the network namespace of the calling
// thread; of a VLAN it counts those of the device below. The caller closes it. It fails
// where there is no such device, or the kernel tells nothing of its queues.
func NewQueueCounter(device string) (*QueueCounter, error) {
	dev, err := lookup(device)
	if err != nil {
		return nil, err
	}
	family, err := genl.Family(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return nil, fmt.Errorf("xdp: cannot count the queues of %s: %w", device, err)
	}
	kernel, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("xdp: cannot count the queues of %s: %w", device, err)
	}
	sockets := map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: kernel}}
	return &QueueCounter{ifindex: dev.index, family: family, kernel: kernel, sockets: sockets}, nil
}

// Count returns how many queues the device receives on; 0 if its driver does not say.
func (q *QueueCounter) Count() int {
	req := genl.NewRequest(q.family, channelsGet, 0, channelsRequest(q.ifindex))
	req.Sockets = q.sockets
	attrs, err := genl.Ask(req)
	if err != nil {
		return 0
	}
	return channelsOf(attrs).receive
}

// Close gives back the socket.
func (q *QueueCounter) Close() { q.kernel.Close() }

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
func askGeneric(name string, command uint8, attrs ...*nl.RtAttr) ([]syscall.NetlinkRouteAttr, error) {
	family, err := genl.Family(name)
	if err != nil {
		return nil, err
	}
	return genl.Ask(genl.NewRequest(family, command, 0, attrs...))
}
