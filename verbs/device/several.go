package device

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/bond"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/xdp"
)

// Devices returns the devices that a name of Spec.Device stands for.
func Devices(name string) []string { return strings.Split(name, ",") }

// SeveralDevices is Devices if they are several, else nil.
func SeveralDevices(name string) []string {
	if all := Devices(name); len(all) > 1 {
		return all
	}
	return nil
}

// devices returns the devices if there are several, and says what they cannot be used
// for.
func (s *Spec) devices() ([]string, error) {
	all := SeveralDevices(s.Device)
	if all == nil {
		return nil, nil
	}
	if err := CheckDevices(s.Device); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		bad bool
		why string
	}{
		{s.Fabric != "udp" && s.Fabric != "xdp" && s.Fabric != "xdp:generic" && s.Fabric != "xdp:driver", fmt.Sprintf("fabric %q uses one: use udp or xdp", s.Fabric)},
		{s.RC, "a connection (RC) stays on one: use reliable datagrams (RD), or name one"},
		{s.Bulk == BulkKernel || s.Bulk == BulkTCP, "large data goes in frames there: leave Bulk away, or name one"},
		{s.Capture != "", "only one can be captured: leave Capture away, or name one"},
	} {
		if c.bad {
			return nil, fmt.Errorf("device: several devices (%s): %s", s.Device, c.why)
		}
	}
	s.Bulk = BulkFrames
	s.Arena = cmp.Or(s.Arena, len(all)*mem.DefaultSize) // each has what it would have alone
	return all, nil
}

// CheckDevices refuses names of Spec.Device that cannot be those of several devices.
func CheckDevices(name string) error {
	all := SeveralDevices(name)
	for i, dev := range all {
		if dev == "" || slices.Contains(all[:i], dev) {
			return fmt.Errorf("device: the devices are %q: give different names, with a comma between each two", name)
		}
	}
	if len(all) > fabric.MaxPaths {
		return fmt.Errorf("device: several devices (%s): there are %d: give up to %d", name, len(all), fabric.MaxPaths)
	}
	return nil
}

// poolFrames returns how many frames the carriers on all devices need together.
func (o *opening) poolFrames(s *Spec, arena *mem.Arena) (all int, err error) {
	for i, dev := range o.devices {
		n := kudp.DefaultFrames
		switch {
		case s.slots != nil:
			n = s.slots[i].ToSend()
		case s.Fabric != "udp":
			if n, err = xdp.FramesOf(xdp.Config{Device: dev, Queue: s.Queue, Arena: arena, MTU: s.MTU}); err != nil {
				return 0, err
			}
		}
		all += n
	}
	return all, nil
}

// onDevices opens what carries the datagrams: on one device, or on several.
func (o *opening) onDevices(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if o.devices == nil {
		return o.wrapped(s, arena)
	}
	frames, err := o.poolFrames(s, arena)
	if err != nil {
		return nil, err
	}
	pool, err := mem.NewPool(arena, frames, false)
	if err != nil {
		return nil, fmt.Errorf("device: frames for %d devices: %w", len(o.devices), err)
	}
	var nets []netip.Prefix
	for i, dev := range o.devices {
		one := *s
		one.Device, one.pool = dev, pool
		if i > 0 {
			one.Addr = netip.Addr{}
		}
		if s.slots != nil {
			one.slot = &s.slots[i]
		}
		if s.Faults != (fault.Config{}) { // else there are none
			one.Faults.Seed += uint64(i)
		}
		dg, err := o.wrapped(&one, arena)
		if err == nil {
			o.several = append(o.several, dg)
			nets, err = apart(nets, o.devices, dg.Local().Addr())
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(o.several))
		}
	}
	return bond.New(o.several, batchMost, s.Clock)
}

func closeAll(all []fabric.Datagram) error {
	var errs []error
	for _, dg := range all {
		errs = append(errs, dg.Close())
	}
	return errors.Join(errs...)
}

// apart adds the network of a device, that of the next number, which has the address
// at, to those of the others, and fails where two are the same: the kernel would send
// all to both by one of them.
func apart(nets []netip.Prefix, devices []string, at netip.Addr) ([]netip.Prefix, error) {
	dev := devices[len(nets)]
	link, err := net.InterfaceByName(dev)
	if err != nil {
		return nil, fmt.Errorf("device: %s: %w", dev, err)
	}
	addrs, err := link.Addrs()
	if err != nil {
		return nil, fmt.Errorf("device: addresses of %s: %w", dev, err)
	}
	own := netip.PrefixFrom(at, at.BitLen())
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == at {
			own = p
		}
	}
	for i, other := range nets {
		if other.Overlaps(own) {
			return nil, fmt.Errorf("device: %s (%v) and %s (%v) are on the same network: give each a network of its own, or name one", devices[i], other, dev, own)
		}
	}
	return append(nets, own), nil
}
