// Package xdp moves Ethernet frames between an arena and the queues of a
// network device through AF_XDP, past the kernel's network stack. [Open]
// returns a [Port], which implements FramePort. [Probe] says what a device
// can do and what to change where something is missing.
//
// AF_XDP in short (Documentation/networking/af_xdp.rst in the kernel): a
// socket is bound to a queue of a device and shares memory with the kernel,
// the UMEM, cut into chunks of 4 KiB; ours is the whole arena. Four rings in
// shared memory show the owner of each chunk:
//
//	FILL        us -> kernel   empty chunks to receive into
//	RX          kernel -> us   received buffers
//	TX          us -> kernel   buffers to send
//	COMPLETION  kernel -> us   buffers that were sent
//
// Each ring has one producer and one consumer. A frame larger than a chunk is
// several buffers, all but the last marked with More (XDP multi-buffer,
// Linux 6.6). An XDP program (package bpf) decides which frames come to us.
//
// A buffer to send may lie anywhere in the arena, also in memory that belongs
// to another owner, but it must not be empty and must not cross the boundary
// of a chunk (a multiple of 4096): splitting is the caller's duty. The first
// buffer must hold all headers: a receiving XDP program looks there.
//
// On veth each further buffer of a frame costs about as much as copying 4 KiB:
// a payload that fits into the chunk of its header is best copied there.
package xdp
