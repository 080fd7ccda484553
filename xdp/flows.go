package xdp

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Flows are the filters that [OpenQueueSet] puts into a network card, and what else
// it changes there. They outlive the process: any process that finds the note can
// take them out (QueueSetConfig.Keep).
type Flows struct {
	Device  string   `json:"device"`
	Ifindex int      `json:"ifindex"`
	Off     bool     `json:"off"` // filters were switched off before
	Filters []Filter `json:"filters"`
}

// Remove takes out what is still there of the filters and switches filtering off
// if it was off before and there are no other filters by now, in the network
// namespace of the calling thread. Doing it again is harmless. It returns how many
// filters it found. It fails where the card refuses to change.
func (f *Flows) Remove() (int, error) {
	dev, err := lookup(f.Device)
	if errors.Is(err, ErrNoDevice) || err == nil && dev.index != f.Ifindex {
		return 0, nil // the card is gone, and its filters with it
	}
	if err != nil {
		return 0, err
	}
	card, closeCard, err := openEthtool(f.Device)
	if err != nil {
		return 0, err
	}
	defer closeCard()
	return f.removeFrom(card)
}

func (f *Flows) removeFrom(card ethtool) (int, error) {
	n, others, err := card.remove(f.Filters)
	if err == nil && f.Off && others == 0 {
		err = card.setFiltering(false)
	}
	if err != nil {
		err = fmt.Errorf("xdp: filters of %s (ethtool -n %s shows them): %w", f.Device, f.Device, err)
	}
	return n, err
}

// steerFlows makes the card send what is for each slot to its queue. Filters for
// TCP ports are left out where the card takes none for a range of ports, unless
// they are needed; then Steer.TCPPorts becomes 0.
func (l *QueueSet) steerFlows() error {
	c := &l.config
	card := c.card
	if card == nil {
		opened, closeCard, err := openEthtool(c.Device)
		if err != nil {
			return err
		}
		defer closeCard()
		card = opened
	}
	on, err := card.filtering()
	if err != nil {
		return l.noSteering("n-tuple filters are not known to its driver", err)
	}
	t, err := card.list()
	if err != nil {
		return l.noSteering("its driver has no n-tuple filters", err)
	}
	dev := l.steering.device
	udp, tcp := l.filters(unix.IPPROTO_UDP), l.filters(unix.IPPROTO_TCP)
	flows := &Flows{Device: dev.name, Ifindex: dev.index, Off: !on, Filters: slices.Concat(udp, tcp)}
	if err := t.conflict(flows.Filters); err != nil {
		return l.noSteering("it has such a filter", err)
	}
	if c.Keep != nil {
		if err := c.Keep(*flows); err != nil {
			return err
		}
	}
	l.flows = flows
	if !on {
		if err := card.setFiltering(true); err != nil {
			return l.noSteering("n-tuple filters are switched off, and stay so (ethtool -K ntuple on)", err)
		}
	}
	if err := card.insertAll(t, udp); err != nil {
		return l.noSteering("it refuses a filter", err)
	}
	if err := card.insertAll(t, tcp); err == nil {
		return nil
	} else if c.NeedTCP {
		return l.noSteering("it refuses a filter", err)
	}
	c.Steer.TCPPorts = 0
	_, _, err = card.remove(tcp)
	return err
}

// removeFlows undoes steerFlows.
func (l *QueueSet) removeFlows() error {
	if l.config.card == nil {
		_, err := l.flows.Remove()
		return err
	}
	_, err := l.flows.removeFrom(l.config.card)
	return err
}

// filters returns those for the ports of all slots.
func (l *QueueSet) filters(protocol uint8) (all []Filter) {
	steer := &l.config.Steer
	if protocol == unix.IPPROTO_TCP && steer.TCPPorts == 0 {
		return nil
	}
	for slot := range l.config.Slots {
		f := Filter{Protocol: protocol, Addr: steer.Addr.Unmap(), Port: steer.PortBase + uint16(slot), Mask: 0xffff, Queue: l.plan.of(slot)[0].receive}
		if protocol == unix.IPPROTO_TCP {
			f.Port, f.Mask = steer.TCPBase+uint16(slot*steer.TCPPorts), ^uint16(steer.TCPPorts-1)
		}
		all = append(all, f)
	}
	return all
}

func (l *QueueSet) noSteering(detail string, cause error) error {
	return &Error{Device: l.config.Device, Reason: ErrNoSteering, Detail: detail,
		Remedy: "let the ranks share one queue", Cause: cause}
}

// checkFlows refuses what filters cannot express.
func checkFlows(c *QueueSetConfig) error {
	switch n := c.Steer.TCPPorts; {
	case !c.Steer.Addr.IsValid():
		return fmt.Errorf("xdp: QueueSetConfig.Steer.Addr is missing: give the address of %s, which filters need", c.Device)
	case n != 0 && (!isPower(n) || int(c.Steer.TCPBase)%n != 0):
		return fmt.Errorf("xdp: QueueSetConfig.Steer has %d TCP ports from %d on for each slot: give a range of TCPBlock, which a filter can match", n, c.Steer.TCPBase)
	}
	return nil
}
