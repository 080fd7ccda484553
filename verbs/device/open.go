package device

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/fabric/fault"
	"github.com/xwarp/xwarp/internal/inet"
	"github.com/xwarp/xwarp/internal/inet/route"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// Open opens a device. The caller closes the context, and everything that was
// opened for it goes with it.
func Open(s Spec) (*verbs.Context, error) {
	if s.Fabric == "" {
		s.Fabric = "udp"
	}
	if err := checkFabric(s.Fabric); err != nil {
		return nil, err
	}
	if s.Clock == nil {
		s.Clock = mono.Real{}
	}
	for s.Epoch == 0 {
		s.Epoch = rand.Uint32()
	}
	arena, err := mem.New(mem.Config{Size: s.Arena})
	if err != nil {
		return nil, err
	}
	o := opening{arena}
	dg, err := o.datagram(&s, arena)
	if err != nil {
		return nil, o.undo(err)
	}
	if s.Faults != (fault.Config{}) {
		faulty, err := fault.NewDatagram(dg, s.Faults)
		if err != nil {
			return nil, errors.Join(dg.Close(), o.undo(err))
		}
		dg = faulty
	}
	poller, err := progress.NewPoller(s.Clock, s.Poller)
	if err != nil {
		return nil, errors.Join(dg.Close(), o.undo(err))
	}
	poller.WatchBell(dg)
	o = append(o, poller)
	ctx, err := verbs.New(verbs.Config{
		Datagram: dg, Engine: progress.New(s.Clock, poller), Key: s.Key, Epoch: s.Epoch,
		NoCRC: s.NoCRC, Dgram: s.Dgram, Closers: o.reversed(),
	})
	if err != nil {
		return nil, errors.Join(dg.Close(), o.undo(err))
	}
	return ctx, nil
}

// opening is what was opened so far, in order.
type opening []io.Closer

func (o opening) reversed() []io.Closer {
	r := make([]io.Closer, 0, len(o))
	for i := len(o) - 1; i >= 0; i-- {
		r = append(r, o[i])
	}
	return r
}

func (o opening) undo(err error) error {
	for _, c := range o.reversed() {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (o *opening) datagram(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	var dg fabric.Datagram
	var err error
	switch s.Fabric {
	case "udp":
		dg, err = openUDP(s, arena)
	case "shm":
		dg, err = openShm(s, arena)
	default:
		return o.openXDP(s, arena)
	}
	if err != nil {
		return nil, err
	}
	return s.captureDatagram(dg)
}

// openXDP opens a UDP endpoint in user space on an AF_XDP socket.
func (o *opening) openXDP(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if s.Device == "" {
		return nil, fmt.Errorf("device: fabric %q needs the name of a network device (xinfo lists them)", s.Fabric)
	}
	if s.Port == 0 {
		s.Port = BasePort
	}
	c := xdp.Config{
		Device: s.Device, Queue: s.Queue, Arena: arena, MTU: s.MTU,
		Steer: bpf.Config{PortBase: s.Port, Addr: s.Addr},
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
	if err != nil {
		return nil, err
	}
	if port, err = s.capturePort(port); err != nil {
		return nil, err
	}
	table, err := route.Open(route.Config{Link: s.Device})
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	*o = append(*o, table)
	link := table.Link()
	if !s.Addr.IsValid() {
		s.Addr = link.Addr
	}
	if !s.Addr.IsValid() {
		return nil, errors.Join(noAddress(s.Device), port.Close())
	}
	ep, err := inet.New(inet.Config{
		Port: port, Resolver: table, Local: netip.AddrPortFrom(s.Addr, s.Port), MAC: link.MAC, MTU: s.MTU,
	})
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return ep, nil
}
