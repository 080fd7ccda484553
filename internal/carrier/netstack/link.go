package netstack

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// link is the network device that gVisor sees: IP packets without link header.
// What it sends goes to mail, which is its queueing discipline.
type link struct {
	mtu uint32
	mac inet.MAC

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher
}

var (
	_ stack.LinkEndpoint = (*link)(nil)
	_ stack.GSOEndpoint  = (*link)(nil)
)

// MTU implements stack.LinkEndpoint.
func (l *link) MTU() uint32 { return l.mtu }

// SetMTU implements stack.LinkEndpoint: the MTU is fixed.
func (l *link) SetMTU(uint32) {}

// MaxHeaderLength implements stack.LinkEndpoint. The Ethernet header is put in
// front in the frame itself.
func (l *link) MaxHeaderLength() uint16 { return 0 }

// LinkAddress implements stack.LinkEndpoint.
func (l *link) LinkAddress() tcpip.LinkAddress { return tcpip.LinkAddress(l.mac[:]) }

// SetLinkAddress implements stack.LinkEndpoint: the address is the device's.
func (l *link) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities implements stack.LinkEndpoint. gVisor does not resolve neighbours, and checksums are
// computed and checked where the bytes are copied (tx.go, rx.go).
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// GSOMaxSize implements stack.GSOEndpoint.
func (l *link) GSOMaxSize() uint32 { return stack.GVisorGSOMaxSize }

// SupportedGSO implements stack.GSOEndpoint: gVisor handles up to 64 KiB as one
// segment, which is cut where it crosses the link (tx.go).
func (l *link) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }

// Attach implements stack.LinkEndpoint.
func (l *link) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	l.dispatcher = d
	l.mu.Unlock()
}

// IsAttached implements stack.LinkEndpoint.
func (l *link) IsAttached() bool { return l.attached() != nil }

func (l *link) attached() stack.NetworkDispatcher {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher
}

// Wait implements stack.LinkEndpoint: there are no goroutines.
func (l *link) Wait() {}

// ARPHardwareType implements stack.LinkEndpoint: no ARP of our own.
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader implements stack.LinkEndpoint.
func (l *link) AddHeader(*stack.PacketBuffer) {}

// ParseHeader implements stack.LinkEndpoint.
func (l *link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close implements stack.LinkEndpoint.
func (l *link) Close() {}

// SetOnCloseAction implements stack.LinkEndpoint: Close does nothing.
func (l *link) SetOnCloseAction(func()) {}

// WritePackets implements stack.LinkWriter. Packets come by mail.WritePacket;
// nothing else is to be sent.
func (l *link) WritePackets(stack.PacketBufferList) (int, tcpip.Error) {
	return 0, &tcpip.ErrNotSupported{}
}
