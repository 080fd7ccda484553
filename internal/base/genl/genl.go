// Package genl makes requests to the kernel's generic netlink families (Documentation/userspace-api/netlink).
//
// Package netlink has such requests, too, but its header is a struct of two bytes of which it sends four: what
// lies behind it in memory goes to the kernel, and may be written by another goroutine at that moment.
package genl

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// header is a struct genlmsghdr: command, version and two bytes that must be zero.
type header [nl.SizeofGenlmsg]byte

// Len and Serialize make a header part of a request.
func (h header) Len() int          { return len(h) }
func (h header) Serialize() []byte { return h[:] }

// NewRequest makes a request to a family, by its number: see [Family]. flags are NLM_F_*; attrs are sent as they are.
func NewRequest(family uint16, command uint8, flags int, attrs ...*nl.RtAttr) *nl.NetlinkRequest {
	const version = 1 // of all families here; the kernel does not look at it
	req := nl.NewNetlinkRequest(int(family), flags)
	req.AddData(header{command, version})
	for _, a := range attrs {
		req.AddData(a)
	}
	return req
}

// Ask sends a request and returns the attributes of its answer. Its error is the kernel's, or ENODATA if that
// has answered nothing.
func Ask(req *nl.NetlinkRequest) ([]syscall.NetlinkRouteAttr, error) {
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 || len(msgs[0]) < nl.SizeofGenlmsg {
		return nil, unix.ENODATA
	}
	return nl.ParseRouteAttr(msgs[0][nl.SizeofGenlmsg:])
}

// Family asks for the number of a family by its name, such as unix.ETHTOOL_GENL_NAME. Its error wraps ENOENT where
// the kernel has no such family.
func Family(name string) (uint16, error) {
	attrs, err := Ask(NewRequest(nl.GENL_ID_CTRL, nl.GENL_CTRL_CMD_GETFAMILY, 0, nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name))))
	for _, a := range attrs {
		if a.Attr.Type == nl.GENL_CTRL_ATTR_FAMILY_ID && len(a.Value) >= 2 {
			return binary.NativeEndian.Uint16(a.Value), nil
		}
	}
	if err == nil {
		err = unix.ENODATA
	}
	return 0, fmt.Errorf("generic netlink family %q: %w", name, err)
}
