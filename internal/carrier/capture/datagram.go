package capture

import (
	"errors"
	"io"
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// Datagram is a fabric.Datagram that writes each datagram that it carries to a
// file. Such carriers show no headers, so the capture has some of its own:
// addresses, ports and lengths are right, Ethernet addresses are 02:00 and the
// last four bytes of the address, and there is no UDP checksum. What was received is captured as
// meant for Local, also when it came to a multicast group.
//
// Owner: engine, like the carrier's.
type Datagram struct {
	fabric.Datagram
	w     *writer
	paths []netip.AddrPort // by fabric.Path
}

var (
	_ fabric.Datagram    = (*Datagram)(nil)
	_ fabric.Multicaster = (*Datagram)(nil)
)

// NewDatagram wraps inner, to which nothing was resolved before. It owns inner
// and out from now on.
func NewDatagram(inner fabric.Datagram, out io.WriteCloser, c Config) *Datagram {
	return &Datagram{Datagram: inner, w: newWriter(out, c, inner.Caps().Carrier)}
}

// Caps returns the carrier's, with its name marked.
func (d *Datagram) Caps() fabric.DatagramCaps {
	c := d.Datagram.Caps()
	c.Carrier += "+capture"
	return c
}

// Resolve resolves, and notes the address for the headers of the capture.
func (d *Datagram) Resolve(to netip.AddrPort) (fabric.Path, error) {
	path, err := d.Datagram.Resolve(to)
	if err == nil {
		d.note(path, to)
	}
	return path, err
}

// Back notes the address as Resolve does.
func (d *Datagram) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	path, ok := d.Datagram.Back(from, station)
	if ok {
		d.note(path, from.AddrPort())
	}
	return path, ok
}

func (d *Datagram) note(path fabric.Path, to netip.AddrPort) {
	for int(path) >= len(d.paths) {
		d.paths = append(d.paths, netip.AddrPort{})
	}
	d.paths[path] = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
}

// Recv returns what the carrier received, and captures it.
func (d *Datagram) Recv(b *fabric.Batch) int {
	n := d.Datagram.Recv(b)
	if n == 0 {
		return 0
	}
	d.w.stamp()
	local := d.Local()
	for i := range b.Pkts {
		d.capture(b, &b.Pkts[i], b.Pkts[i].From.AddrPort(), local, inbound)
	}
	return n
}

// Send captures all datagrams of b and sends them.
func (d *Datagram) Send(b *fabric.Batch) {
	d.w.stamp()
	local := d.Local()
	for i := range b.Pkts {
		d.capture(b, &b.Pkts[i], local, d.paths[b.Pkts[i].To], outbound)
	}
	d.Datagram.Send(b)
}

func (d *Datagram) capture(b *fabric.Batch, p *fabric.Packet, from, to netip.AddrPort, way direction) {
	var head [inet.HeaderLen6]byte
	n := putHeaders(head[:], from, to, int(p.Len))
	d.w.frame = append(d.w.frame[:0], head[:n]...)
	d.w.gather(d.Arena(), b.Descs[p.First:p.First+p.Bufs])
	d.w.write(d.w.frame, way)
}

// putHeaders writes Ethernet, IP and UDP headers for n bytes of payload, and returns
// their length.
func putHeaders(h []byte, from, to netip.AddrPort, n int) int {
	if to.Addr().Is6() {
		inet.PutEthernet(h, hardware(to.Addr()), hardware(from.Addr()), inet.EtherIPv6)
		ip := h[inet.EthernetLen:]
		inet.PutIPv6(ip, inet.IPv6Fields{
			PayloadLen: inet.UDPLen + n, HopLimit: 64, Next: inet.ProtoUDP, Src: from.Addr().As16(), Dst: to.Addr().As16(),
		})
		inet.PutUDP(ip[inet.IPv6Len:], from.Port(), to.Port(), inet.UDPLen+n)
		return inet.HeaderLen6
	}
	inet.PutEthernet(h, hardware(to.Addr()), hardware(from.Addr()), inet.EtherIPv4)
	ip := h[inet.EthernetLen:]
	inet.PutIPv4(ip, inet.IPv4Fields{
		TotalLen: inet.IPv4Len + inet.UDPLen + n, TTL: 64, Protocol: inet.ProtoUDP,
		Src: from.Addr().As4(), Dst: to.Addr().As4(),
	})
	inet.PutUDP(ip[inet.IPv4Len:], from.Port(), to.Port(), inet.UDPLen+n)
	return inet.HeaderLen
}

// hardware makes up the Ethernet address of a host, locally administered. That
// of a group is the usual one.
func hardware(a netip.Addr) inet.MAC {
	if a.IsMulticast() {
		return inet.GroupMAC(a)
	}
	if a.Is6() {
		b := a.As16()
		return inet.MAC{0x02, 0x00, b[12], b[13], b[14], b[15]}
	}
	b := a.As4()
	return inet.MAC{0x02, 0x00, b[0], b[1], b[2], b[3]}
}

// Join asks the carrier. Its error wraps fabric.ErrNoMulticast when that one
// has no multicast.
func (d *Datagram) Join(group netip.Addr) error { return fabric.Join(d.Datagram, group) }

// Leave asks the carrier.
func (d *Datagram) Leave(group netip.Addr) error { return fabric.Leave(d.Datagram, group) }

// Close closes the carrier and the file. Its error says, among others, that
// the file is not complete.
func (d *Datagram) Close() error { return errors.Join(d.Datagram.Close(), d.w.close()) }
