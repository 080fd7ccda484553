package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// Where Config.Device is not given and ranks are on several hosts, each agent looks for the
// device that its host reaches the others through, and the controller decides when it has
// heard of all: AF_XDP where every host has one that it can be used on, and else kernel UDP.

// maxPeers is how many other hosts an agent looks up, those that follow its own in the list:
// each of n hosts asking for all the others would be n*n questions.
const maxPeers = 16

// lookupTime is how long they may take to be found: without them there is still the device
// of the default route.
const lookupTime = 3 * time.Second

// hostDevice is what an agent has found.
type hostDevice struct {
	Device string `json:"device"`
	Unsure string `json:"unsure,omitempty"` // why it may be the wrong one
	NoXDP  string `json:"no_xdp,omitempty"` // why AF_XDP cannot be used on it
	IPv6   bool   `json:"ipv6,omitempty"`   // some host has no other address
	Note   string `json:"note,omitempty"`   // how it is used there, where that is not as on a network card
}

// kernel is what a hostDevice depends on.
type kernel struct {
	lookup   func(host string) (netip.Addr, error)
	device   func(netip.Addr) (string, error)
	outward  func() (string, error)            // the device of the default route
	unusable func(dev string, ipv6 bool) error // why AF_XDP cannot be used on a device
	note     func(dev string) (string, error)
}

const loopback = "lo"

// deviceTo finds the device that the other hosts are reached through, over IPv6 if that is
// wanted or one of them has no other address.
func (k kernel) deviceTo(peers []string, ipv6 bool) (w hostDevice, err error) {
	found, only6, problems := k.devicesTo(peers)
	w.IPv6 = only6
	var devices, names []string
	for i, dev := range found {
		if dev != "" && dev != loopback && !slices.Contains(devices, dev) {
			devices, names = append(devices, dev), append(names, peers[i])
		}
	}
	switch i := slices.Index(found, loopback); {
	case len(devices) > 1:
		w.Unsure = fmt.Sprintf("the routes to %s and %s lead through %s and %s", names[0], names[1], devices[0], devices[1])
	case i >= 0:
		w.Unsure = fmt.Sprintf("the route to %s leads through %s: it is this machine", peers[i], loopback)
	case len(problems) > 0:
		w.Unsure = problems[0]
	}
	if len(devices) == 1 {
		w.Device = devices[0]
	} else if w.Device, err = k.outward(); err != nil {
		return w, fmt.Errorf("%s, and %w", w.Unsure, err)
	}
	if err := k.unusable(w.Device, ipv6 || only6); err != nil {
		w.NoXDP = err.Error()
		return w, nil
	}
	return k.noted(w), nil
}

// noted adds what the kind of the device means for AF_XDP, or of each if there are
// several. A device that is not there yet is waited for later.
func (k kernel) noted(w hostDevice) hostDevice {
	var notes []string
	for _, dev := range device.Devices(w.Device) {
		note, err := k.note(dev)
		if errors.Is(err, xdp.ErrUnsupported) && w.NoXDP == "" {
			w.NoXDP = err.Error()
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	w.Note = strings.Join(notes, "; ")
	return w
}

// devicesTo returns the device for each host, "" where there is none, and why; and whether
// some host is known by an address of IPv6 only.
func (k kernel) devicesTo(peers []string) (found []string, only6 bool, problems []string) {
	found = make([]string, len(peers))
	addrs, errs := make([]netip.Addr, len(peers)), make([]error, len(peers))
	var all sync.WaitGroup
	for i, peer := range peers {
		all.Go(func() {
			if addrs[i], errs[i] = k.lookup(peer); errs[i] != nil {
				errs[i] = fmt.Errorf("the address of %s is not found (%w)", peer, errs[i])
				return
			}
			if found[i], errs[i] = k.device(addrs[i]); errs[i] != nil {
				errs[i] = fmt.Errorf("there is no route to %s (%w)", peer, errs[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	return found, slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Is6() && !a.IsLoopback() }), problems
}

// theKernel is the one that there is.
func theKernel() (k kernel, done func()) {
	ctx, done := context.WithTimeout(context.Background(), lookupTime)
	return kernel{
		lookup:  func(host string) (netip.Addr, error) { return lookupHost(ctx, host) },
		device:  deviceTo,
		outward: defaultDevice,
		unusable: func(dev string, ipv6 bool) error {
			if os.Geteuid() != 0 {
				return errors.New("AF_XDP needs root")
			}
			return cmp.Or(probeXDP(), ethernet(dev, ipv6))
		},
		note: xdp.Note,
	}, done
}

// lookupHost returns an address of a host, of version 4 if there is one.
func lookupHost(ctx context.Context, host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	if i := slices.IndexFunc(addrs, netip.Addr.Is4); i >= 0 {
		return addrs[i], nil
	}
	return addrs[0], nil
}

// deviceTo asks the kernel which device packets to an address leave by; the loopback one for
// addresses of this host.
func deviceTo(addr netip.Addr) (string, error) {
	if zone := addr.Zone(); zone != "" {
		_, err := net.InterfaceByName(zone)
		return zone, err
	}
	routes, err := netlink.RouteGet(addr.AsSlice())
	if err != nil {
		return "", err
	}
	if len(routes) == 0 || routes[0].Type == unix.RTN_LOCAL {
		return loopback, nil
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", err
	}
	return link.Attrs().Name, nil
}

// ethernet refuses devices that frames cannot leave by, or that have no address.
func ethernet(dev string, ipv6 bool) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("device %q: %w", dev, err)
	}
	if a := link.Attrs(); a.EncapType != "ether" || len(a.HardwareAddr) != 6 {
		return fmt.Errorf("%s is no Ethernet device", dev)
	}
	_, err = device.Address(dev, ipv6)
	return err
}

// findDevice answers the controller, about a device if it names one.
func (a *agent) findDevice(peers []string, ipv6 bool, device string) {
	k, done := theKernel()
	defer done()
	var w hostDevice
	var err error
	if device != "" {
		w = k.noted(hostDevice{Device: device})
	} else if w, err = k.deviceTo(peers, ipv6); err != nil {
		a.out.post(report{Op: opFailed, Why: err.Error()})
		return
	}
	a.out.post(report{Op: opDevice, Found: &w})
}

// peers returns the names of the other hosts as one of them may know them.
func (j *job) peers(l *link) (names []string) {
	at := slices.Index(j.links, l)
	for i := 1; i < len(j.links) && len(names) < maxPeers; i++ {
		name := j.links[(at+i)%len(j.links)].plan.hostName
		name = name[strings.LastIndexByte(name, '@')+1:]
		if isLoopback(name) { // elsewhere that is another host
			if own, err := os.Hostname(); err == nil {
				name = own
			}
		}
		names = append(names, name)
	}
	return names
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// found notes what the agent of a host has found, and starts the ranks when all have.
func (j *job) found(l *link, w hostDevice) {
	l.found, l.ready = w, true
	if !j.allReady() {
		return
	}
	err := j.plan.settle(j.config, j.links)
	j.fail(err)
	if err == nil && j.config.Notice != nil {
		fmt.Fprintf(j.config.Notice, "%s%s\n", j.plan.notice, j.config.encrypted())
	}
	for _, l := range j.links {
		j.start(l)
	}
}

// settle decides what the ranks talk over.
func (p *plan) settle(c Config, links []*link) error {
	var devices []string
	why, named := p.notice, "; --device names another" // how they share queues
	if c.Device != "" {
		named = ""
	}
	_, said := c.lookup(config.EnvIPv6)
	for _, l := range links {
		if !slices.Contains(devices, l.found.Device) {
			devices = append(devices, l.found.Device)
		}
		p.ipv6 = p.ipv6 || l.found.IPv6 && !said
	}
	slices.Sort(devices)
	for _, l := range links {
		problem := l.found.Unsure
		if problem == "" && isXDP(p.fabric) {
			problem = l.found.NoXDP
		}
		switch {
		case problem == "":
			continue
		case isXDP(c.Fabric):
			return configErrorf("AF_XDP cannot be used on %s: %s; name the devices with --device, or use --fabric udp", l.plan.hostName, problem)
		}
		p.fabric, p.shared, p.steered = fabricUDP, false, nil
		why = fmt.Sprintf(" (%s: %s%s)", l.plan.hostName, problem, named)
		break
	}
	if isXDP(p.fabric) {
		for _, l := range links {
			if l.found.Note != "" {
				why += fmt.Sprintf(" (%s: %s)", l.plan.hostName, l.found.Note)
				break // that of the others is most often alike
			}
		}
	}
	p.notice = fmt.Sprintf("%s on %s over %s on %s%s", p.ranks(), count(len(p.agents), "host", "hosts"), fabricName(p.fabric), strings.Join(devices, " and "), why)
	return nil
}
