package device

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// openXDP opens a UDP endpoint in user space on an AF_XDP socket, and TCP
// beside it if RC is asked for, as o.streams.
func (o *opening) openXDP(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if s.Device == "" {
		return nil, fmt.Errorf("device: fabric %q needs the name of a network device (xinfo lists them)", s.Fabric)
	}
	s.Port = cmp.Or(s.Port, BasePort)
	table, err := route.Open(route.Config{Link: s.Device})
	if err != nil {
		return nil, err
	}
	o.closers = append(o.closers, table)
	link := table.Link()
	if !s.Addr.IsValid() {
		if s.Addr, err = oneOf(s.Device, link.Addr, link.Addr6, s.IPv6); err != nil {
			return nil, err
		}
	}
	c := xdp.Config{
		Device: s.Device, Queue: s.Queue, Arena: arena, Pool: s.pool, MTU: s.MTU, BusyPoll: s.BusyPoll,
		Steer: bpf.Config{PortBase: s.Port, Addr: s.Addr},
	}
	if s.RC {
		s.tcpDefaults()
		c.Steer.TCPBase, c.Steer.TCPPorts = s.TCPBase, s.TCPPorts
	}
	port, err := s.openPort(c)
	if err != nil {
		return nil, err
	}
	if s.RC {
		if port, err = o.openNetstack(s, port, table); err != nil {
			return nil, err
		}
	}
	i := inet.Config{
		Port: port, Resolver: table,
		Local: netip.AddrPortFrom(s.Addr, s.Port), MAC: link.MAC, MTU: s.MTU, Ifindex: s.offloads(table),
	}
	if s.slot != nil { // so all peers have ports from there on: no endpoint has one that is free
		i.FirstPort = BasePort
	}
	ep, err := inet.New(i)
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	if err := o.openBulk(s, ep, port); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	if s.slot != nil && s.slot.Slots > 1 {
		return s.withNear(ep)
	}
	return ep, nil
}

// openPort opens the port that an endpoint stands on.
func (s *Spec) openPort(c xdp.Config) (fabric.Port, error) {
	if s.slot != nil {
		return s.openSlot(c.Arena)
	}
	c.Mode = ModeOf(s.Fabric)
	open := func() (fabric.Port, error) { return xdp.Open(c) }
	if s.Fabric == "xdp:asavie" {
		open = func() (fabric.Port, error) { return asavie.Open(c) }
	}
	port, err := open()
	if err != nil {
		return nil, err
	}
	return s.capturePort(port)
}
