package device

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/inet"
	"github.com/xwarp/xwarp/internal/inet/route"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// openXDP opens a UDP endpoint in user space on an AF_XDP socket, and TCP
// beside it if RC is asked for, as o.streams.
func (o *opening) openXDP(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if s.Device == "" {
		return nil, fmt.Errorf("device: fabric %q needs the name of a network device (xinfo lists them)", s.Fabric)
	}
	if s.Port == 0 {
		s.Port = BasePort
	}
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
		Device: s.Device, Queue: s.Queue, Arena: arena, Pool: s.pool, MTU: s.MTU,
		Steer: bpf.Config{PortBase: s.Port, Addr: s.Addr},
	}
	if s.RC {
		s.tcpDefaults()
		c.Steer.TCPBase, c.Steer.TCPPorts = s.TCPBase, s.TCPPorts
	}
	ports, err := s.openPorts(c)
	if err != nil {
		return nil, err
	}
	if s.RC {
		if ports.port, err = o.openNetstack(s, ports.port, table); err != nil {
			return nil, err
		}
	}
	ep, err := inet.New(inet.Config{
		Port: ports.port, Bulk: ports.bulk, Resolver: table,
		Local: netip.AddrPortFrom(s.Addr, s.Port), MAC: link.MAC, MTU: s.MTU,
	})
	if err != nil {
		return nil, errors.Join(err, ports.Close())
	}
	if ports.bulk != nil {
		o.bulkFD = ports.bulk.FD()
	}
	if err := o.openBulk(s, ep, ports.port); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	if s.seat != nil && s.seat.Seats > 1 {
		return s.withNear(ep)
	}
	return ep, nil
}

// ports are what an endpoint is opened on.
type ports struct{ port, bulk fabric.Port } // bulk may be nil

// Close closes the ports, as long as no endpoint has taken them over.
func (p ports) Close() error {
	var err error
	if p.bulk != nil {
		err = p.bulk.Close()
	}
	return errors.Join(err, p.port.Close())
}

// openPorts opens one port, or two with Spec.BulkQueue.
func (s *Spec) openPorts(c xdp.Config) (ports, error) {
	if s.seat != nil {
		return s.openSeat(c.Arena)
	}
	if s.BulkQueue != 0 {
		return s.openPair(c)
	}
	open := func() (fabric.Port, error) { return xdp.Open(c) }
	switch s.Fabric {
	case "xdp:generic":
		c.Mode = bpf.Generic
	case "xdp:driver":
		c.Mode = bpf.Driver
	case "xdp:asavie":
		open = func() (fabric.Port, error) { return asavie.Open(c) }
	}
	port, err := open()
	if err == nil {
		port, err = s.capturePort(port)
	}
	return ports{port: port}, err
}

func (s *Spec) openPair(c xdp.Config) (ports, error) {
	switch {
	case s.Fabric == "xdp:asavie":
		return ports{}, fmt.Errorf("device: fabric %q has no second queue: leave BulkQueue away", s.Fabric)
	case s.Capture != "":
		return ports{}, errors.New("device: only one queue can be captured: leave BulkQueue or Capture away")
	case s.Fabric == "xdp:generic":
		c.Mode = bpf.Generic
	case s.Fabric == "xdp:driver":
		c.Mode = bpf.Driver
	}
	port, bulk, err := xdp.OpenPair(c, s.BulkQueue)
	if err != nil {
		return ports{}, err
	}
	return ports{port, bulk}, nil
}
