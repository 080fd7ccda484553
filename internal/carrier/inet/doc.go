// Package inet carries UDP datagrams over IPv4 or IPv6 and Ethernet in user space. The
// headers are pure functions of bytes ([Ethernet], [IPv4], [IPv6], [UDP], [Sum]);
// [Datagram] puts them between a [fabric.Port], which moves frames, and a
// [fabric.Datagram], which moves UDP payloads. Where a frame has to go next is
// asked of a [Resolver]; package inet/route is the one that asks the kernel.
//
// Nothing here reads a clock, opens a file or waits.
package inet
