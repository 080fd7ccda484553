package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/xwarp/xwarp/cmd/xping/rping"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/verbs/device"
)

// server serves. begun is told when clients may come.
func (p *program) server(o *options, begun func(*rping.Server)) error {
	at := netip.AddrPortFrom(o.anyAddr(), uint16(o.port))
	if o.addr != "" {
		addr, err := resolve(o.addr)
		if err != nil {
			return err
		}
		at = netip.AddrPortFrom(addr, uint16(o.port))
	}
	ctx, err := device.Open(o.spec(at.Addr()))
	if err != nil {
		return err
	}
	s, err := rping.NewServer(ctx, at, p.config(o, "server"))
	if err != nil {
		return errors.Join(err, ctx.Close())
	}
	begun(s)
	return errors.Join(s.Run(), ctx.Close())
}

// client pings.
func (p *program) client(o *options) error {
	to, err := resolve(o.addr)
	if err != nil {
		return err
	}
	var from netip.AddrPort
	if o.from != "" {
		addr, err := resolve(o.from)
		if err != nil {
			return err
		}
		from = netip.AddrPortFrom(addr, 0)
	}
	ctx, err := device.Open(o.spec(to))
	if err != nil {
		return err
	}
	c, err := rping.NewClient(ctx, netip.AddrPortFrom(to, uint16(o.port)), from, p.config(o, "client"))
	if err != nil {
		return errors.Join(err, ctx.Close())
	}
	p.begin(c)
	result, err := c.Run()
	p.ended(o, "client", result, err)
	return errors.Join(err, ctx.Close())
}

// resolve finds the address of a host.
func resolve(host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap(), nil
	}
	found, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: %w", rping.ErrConnect, err)
	}
	addr, _ := netip.AddrFromSlice(found.IP)
	return addr.Unmap().WithZone(found.Zone), nil
}

// onTestbed has both ends in this process, on two hosts that exist as long as
// it does.
func (p *program) onTestbed(o *options) error {
	here := func(fn func() error) error { return fn() }
	enter := [2]func(func() error) error{here, here}
	server, client := *o, *o
	server.server, server.port = true, 0
	server.addr = "127.0.0.1"
	if o.ipv6 {
		server.addr = "::1"
	}
	if os.Geteuid() == 0 {
		bed, err := testbed.New(testbed.Config{IPv6: o.ipv6})
		if err != nil {
			return err
		}
		defer func() {
			if err := bed.Close(); err != nil {
				p.notice("cleaning up: %v", err)
			}
		}()
		for i, h := range bed.Hosts {
			enter[i] = h.Do
		}
		server.device, client.device = bed.Hosts[0].Dev, bed.Hosts[1].Dev
		server.addr = bed.Hosts[0].Addr.String()
	} else if o.fabric != "tcp" {
		return fmt.Errorf("--fabric %s between two hosts of this machine: %w", o.fabric, testbed.ErrPermission)
	} else {
		p.notice("not root: no network namespaces, so both ends run on loopback of this host")
	}
	begun, served := make(chan *rping.Server, 1), make(chan error, 1)
	go func() {
		served <- enter[0](func() error {
			return p.server(&server, func(s *rping.Server) {
				at := s.Addr()
				client.addr, client.port = at.Addr().String(), int(at.Port())
				begun <- s
			})
		})
	}()
	var s *rping.Server
	select {
	case err := <-served:
		return err
	case s = <-begun:
	}
	err := enter[1](func() error { return p.client(&client) })
	// A signal stops the client only; but a server without a connection
	// would wait for ever.
	s.Stop()
	if ended := <-served; !onlyInterrupted(ended) {
		err = errors.Join(err, ended)
	}
	return err
}
