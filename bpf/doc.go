// Package bpf holds the XDP programs and their loaders: [Program] steers UDP
// datagrams for a range of ports, and TCP segments for another, into AF_XDP
// sockets and leaves everything else to the kernel; [Switch] joins the veth pairs of a testbed faster than a bridge.
//
// Programs are attached as bpf links. A link belongs to the process: when that
// dies, however it dies, the kernel detaches the program. A program that
// another program attached is never replaced, see [AttachedError].
//
// Interfaces are those of the network namespace of the calling thread.
package bpf
