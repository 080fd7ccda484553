// Package device is the composition root: the only place that knows every
// carrier and puts one under a verbs context.
package device

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/xdp"
)

// BasePort is the UDP port of the first endpoint of a host.
const BasePort = 18700

// TCPBase is the first TCP port that RC over xdp takes from the kernel unless
// Spec says otherwise, and TCPPorts how many there are.
const (
	TCPBase  = bpf.DefaultTCPBase
	TCPPorts = bpf.DefaultTCPPorts
)

// Spec says what to open. The zero value is kernel UDP on loopback.
type Spec struct {
	// Fabric is the carrier: "xdp" (driver or generic mode, whichever suits
	// the NIC), "xdp:generic", "xdp:driver", "xdp:asavie", "udp", "shm" for
	// peers on this host only, or "tcp", the kernel's, which carries queue pairs
	// of type RC only; default "udp".
	Fabric string
	// RC offers queue pairs of type RC beside the others: over TCP in user
	// space on the same queue of the NIC with xdp, over the kernel's with udp.
	RC bool
	// Device is the NIC; needed for xdp. Without it the others use Addr's. Two to four
	// names with commas between them are NICs of which each is on a network of its own,
	// and all hosts name those on the same networks in the same order. Reliable
	// datagrams use the first, and when nothing arrives there any more the next, until
	// the first is back; all else uses the first. So it must work when two endpoints
	// meet. With "udp" and "xdp" in its two modes, and without RC, Bulk (large data goes
	// in frames) and Capture.
	Device string
	Queue  int // of the NIC, from 0
	// Bulk is how large data leaves an endpoint on xdp; default BulkAuto.
	Bulk Bulk
	// BulkStreams lets BulkAuto open Context.Streams, of which the user finds out what they
	// are good for; default false.
	BulkStreams bool
	// BusyPoll makes waits on xdp poll the device instead of leaving it to interrupts;
	// default off. See xdp.Config.BusyPoll: the settings of the device are the caller's
	// affair. A Slot has it if it was opened so; not with "xdp:asavie".
	BusyPoll bool
	// Slot is the place at a queue of the NIC that other processes of this host
	// use as well, in the text of xdp.Slot: what the privileged process passed on
	// that has opened the queue; one for each of several devices, on a line each, in
	// their order. Default none. With it, Fabric is "xdp" in one of its forms, and
	// Device, Queue, Port, TCPBase, TCPPorts and Arena are what the slot says; the
	// others of this host are reached through shared memory.
	Slot string
	// Addr is the address to use, of IPv4 or IPv6: datagrams reach peers of the same
	// family. Default what Address says of Device; tcp takes one of the other family
	// if there is none.
	Addr netip.Addr
	// IPv6 makes the default of Addr an address of IPv6.
	IPv6 bool
	// Port is the UDP port; default BasePort for xdp, and one that is free
	// for udp and shm. For RC each listener has a TCP port of its own.
	Port uint16
	// TCPBase and TCPPorts are the range of TCP ports that RC over xdp takes
	// from the kernel, for listeners and for what it opens; default from 61000,
	// the first that Linux does not give out, to the last. No program on this
	// host can use them on Device then.
	TCPBase  uint16
	TCPPorts int
	// MTU is the largest IP packet in bytes; default that of the device.
	MTU   int
	Key   uint64 // job key
	Epoch uint32 // default random
	NoCRC bool   // leave out the CRC32C; all peers must agree
	// Secret is what all endpoints that can talk to each other share, and no others
	// knows: 32 random bytes, new for each job. With it datagrams and connections are
	// encrypted and authenticated with AES-GCM, which takes the place of the CRC32C of
	// datagrams; without it, the default, a host that can read the network reads and forges
	// them. Not what goes through the memory of this host: fabric "shm". Other iWARP than
	// this one cannot be connected with then.
	Secret []byte
	// Arena is the size in bytes of the memory for frames and for
	// applications; default 64 MiB.
	Arena  int
	Dgram  dgram.Config
	Poller PollerConfig
	Clock  Clock // default the machine's monotonic one
	// Faults injects loss, duplication and reordering into the datagrams that
	// are sent; default none. Not with tcp.
	Faults Faults
	// Capture names a pcapng file to write, with what goes to the wire and
	// what comes from it: after Faults, so that what those lose is missing and
	// what they double is there twice. On AF_XDP the frames are captured as
	// they are; elsewhere with headers made up. Not with RC over the kernel's
	// TCP, which tcpdump captures. Default none.
	Capture string

	given
}

// given is what of others a device uses.
type given struct {
	slot  *xdp.Slot  // what Spec.Slot says of the device, or nil
	slots []xdp.Slot // of each device
	pool  *mem.Pool  // that the carriers on several devices share, or nil
}

// PollerConfig says when a program that waits gives its core away. Its zero value
// is one process on a machine of its own.
type PollerConfig = progress.PollerConfig

// Clock tells the time. What has a method Now that returns a verbs.Time, and never
// goes back, is one.
type Clock = mono.Clock

// ErrFabric is wrapped when Spec.Fabric is not known.
var ErrFabric = errors.New("unknown fabric")

// Fabrics lists what Spec.Fabric may be.
func Fabrics() []string {
	return []string{"xdp", "xdp:generic", "xdp:driver", "xdp:asavie", "udp", "shm", "tcp"}
}

// ModeOf returns where the XDP program of a fabric runs, as far as that says so.
func ModeOf(fabric string) bpf.Mode {
	switch fabric {
	case "xdp:generic":
		return bpf.Generic
	case "xdp:driver":
		return bpf.Driver
	}
	return bpf.Auto
}

func checkFabric(s string) error {
	if slices.Contains(Fabrics(), s) {
		return nil
	}
	return fmt.Errorf("device: %w %q: use one of %s", ErrFabric, s, strings.Join(Fabrics(), ", "))
}
