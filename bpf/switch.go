package bpf

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Switch is a fast path beside the bridge that joins the veth pairs of a
// testbed: frames for known stations go from pair to pair below the stack. All
// others, for all hosts, a group or an unknown station, are left to the bridge,
// whose ports must be those of the switch.
//
// The other ends of the pairs must not rely on offloads: turn off
// tcp-segmentation-offload and generic-segmentation-offload in any mode (a
// frame above the MTU is dropped), and tx-checksumming in driver mode too (an
// XDP frame carries no promise that its checksum will be filled in). In driver
// mode they need generic-receive-offload or an XDP program in driver mode of
// their own, without which a veth takes no XDP frames.
//
// Methods are for one goroutine at a time.
type Switch struct {
	objs struct { // in the kernel
		L2switch *ebpf.Program `ebpf:"l2switch"`
		Ports    *ebpf.Map     `ebpf:"ports"`
		Stations *ebpf.Map     `ebpf:"stations"`
		Counters *ebpf.Map     `ebpf:"counters"`
	}
	mode  Mode
	links map[int]link.Link // by interface index
}

// SwitchCounters says what a switch did since it was loaded.
type SwitchCounters struct {
	Forwarded uint64 // frames for a known station
	Passed    uint64 // frames for all hosts, a group, or an unknown station, left to the bridge
	Malformed uint64 // frames without a whole Ethernet header, dropped
}

// LoadSwitch loads a switch without ports. The mode is that of all of its
// ports; Auto is Generic, which asks least of the hosts. The caller closes it. Its errors
// are those of Load.
func LoadSwitch(mode Mode) (*Switch, error) {
	if mode == Auto {
		mode = Generic
	}
	s := &Switch{mode: mode, links: map[int]link.Link{}}
	spec, err := object("switch")
	if err == nil {
		err = spec.LoadAndAssign(&s.objs, nil)
	}
	if err != nil {
		return nil, loadError("switch", err)
	}
	return s, nil
}

// AddPort adds an interface behind which the station mac is. Interfaces are
// those of the calling thread's network namespace, the same for all ports. It fails for
// an interface that is a port already, and where the kernel refuses the program.
func (s *Switch) AddPort(ifindex int, mac net.HardwareAddr) error {
	if len(mac) != 6 || mac[0]&1 != 0 {
		return fmt.Errorf("bpf: %v is not the address of a station", mac)
	}
	if s.links[ifindex] != nil {
		return fmt.Errorf("bpf: interface %d is a port of the switch already", ifindex)
	}
	port := uint32(ifindex)
	if err := s.objs.Ports.Update(port, port, ebpf.UpdateNoExist); err != nil {
		return fmt.Errorf("bpf: cannot add port %d: %w", ifindex, err)
	}
	if err := s.objs.Stations.Update([6]byte(mac), port, ebpf.UpdateAny); err != nil {
		return errors.Join(fmt.Errorf("bpf: cannot add station %v: %w", mac, err), s.objs.Ports.Delete(port))
	}
	l, _, err := attach(s.objs.L2switch, ifindex, s.mode)
	if err != nil {
		return errors.Join(err, s.objs.Stations.Delete([6]byte(mac)), s.objs.Ports.Delete(port))
	}
	s.links[ifindex] = l
	return nil
}

// Counters returns the sums over all processors. It fails after Close.
func (s *Switch) Counters() (SwitchCounters, error) {
	var c SwitchCounters
	err := sums(s.objs.Counters, &c.Forwarded, &c.Passed, &c.Malformed)
	return c, err
}

// Close detaches the switch from all ports and removes it from the kernel.
func (s *Switch) Close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, detach(l))
	}
	s.links = nil
	return errors.Join(append(errs, s.objs.L2switch.Close(), s.objs.Ports.Close(), s.objs.Stations.Close(), s.objs.Counters.Close())...)
}
