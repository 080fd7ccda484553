// Package fabric is the lower of the two seams: what a
// carrier must offer. A [Port] moves batches of Ethernet frames, a [Datagram]
// moves batches of UDP payloads. Every call handles a batch, so that an
// interface call is paid once per batch and never per frame.
//
// Nothing here blocks, locks or allocates after it was opened, and "no room"
// is a count, never an error. All methods of one carrier belong to one engine.
package fabric

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/trace"
)

// Desc names a run of bytes in the arena: one buffer of a frame. It has the
// layout of struct xdp_desc.
type Desc struct {
	Addr  mem.Addr
	Len   uint32 // bytes
	Flags uint32 // More, or 0 for the last buffer of a frame; received, also OnQueue
}

// More marks a buffer that is followed by another one of the same frame
// (XDP_PKT_CONTD).
const More = 1

// OnQueue returns the flags of a buffer that was received on a queue of the NIC, from
// ports that say so: see PortCaps.Home.
func OnQueue(queue int) uint32 { return uint32(min(queue, queueMost)+1) << queueShift }

// QueueOf returns the number of the queue that flags name, plus 1, or 0.
func QueueOf(flags uint32) uint8 { return uint8(flags >> queueShift) }

const (
	queueShift = 8
	queueMost  = 254 // the last number stands for all from there on
)

// MaxBufs is the most buffers that one frame may have: MAX_SKB_FRAGS+1 of
// Linux, and what a 64 KiB frame needs.
const MaxBufs = 18

// PortCaps says what a port can do. It is read when a port is opened.
type PortCaps struct {
	Driver   string // what carries the frames, for people: "xdp/generic/copy"
	Device   string // network device that they pass, or ""
	Queues   int    // of the device, that frames are received on; 0: it has none
	MTU      int    // largest IP packet in bytes; frames are 14 bytes longer
	MaxBufs  int    // most buffers per frame; 1 without multi-buffer support
	TxDepth  int    // size of the send queue in buffers
	RxDepth  int    // frames that may wait to be received
	ZeroCopy bool   // the NIC reads and writes the arena itself
	VLAN     uint16 // whose tag (802.1Q) the port puts into frames, and takes off; 0: none
	Home     int    // 1 + the queue that what is sent here had best arrive on; 0: any, or there is one
	BusyPoll string // what came of busy polling, for people; "": not asked for. It may change with the first frame
}

// Headroom returns how many bytes must be free in front of a frame to send: for the
// tag.
func (c PortCaps) Headroom() int {
	if c.VLAN == 0 {
		return 0
	}
	return 4
}

// Detail says how a port uses its device, for people; "" where it has none.
func (c PortCaps) Detail() string {
	frames := "multi-buffer"
	if c.MaxBufs == 1 {
		frames = "one buffer per frame"
	}
	if c.BusyPoll != "" {
		frames += ", " + c.BusyPoll
	}
	switch {
	case c.Device == "":
		return ""
	case c.Queues == 1:
		return fmt.Sprintf("%s, 1 queue, %s", c.Device, frames)
	}
	return fmt.Sprintf("%s, %d queues, %s", c.Device, c.Queues, frames)
}

// PortStats counts what happened to a port since it was opened.
type PortStats struct {
	RxFrames, RxBytes uint64
	TxFrames, TxBytes uint64
	RxDropped         uint64 // frames lost for want of free buffers
	RxStray           uint64 // frames for us on a queue of the NIC without a receiver, if that is known
	TxInvalid         uint64 // buffers the kernel refused: a bug of ours
	RxInvalid         uint64
	Wakeups           uint64 // system calls made to move frames

	// RxQueues is RxFrames by the queue of the NIC that they came in on, if they
	// are received on several.
	RxQueues trace.Arrivals
}

// Losses returns what the port has lost.
func (s PortStats) Losses() trace.Losses {
	return trace.Losses{NoSocket: s.RxStray, NoRoom: s.RxDropped, Refused: s.TxInvalid}
}

// Port sends and receives whole Ethernet frames that live in an arena.
//
// Ownership: the buffers that Recv returns belong to the caller, which gives
// each back with Pool.Put. The buffers given to Send belong to the port, which
// gives frames of its pool back when they are on the wire; buffers outside
// the pool must stay unchanged until then.
type Port interface {
	Caps() PortCaps
	Arena() *mem.Arena
	Pool() *mem.Pool
	// Recv fills dst with the buffers of whole frames and returns how many
	// buffers it wrote. It needs len(dst) >= MaxBufs.
	Recv(dst []Desc) int
	// TxFree returns how many buffers Send takes now.
	TxFree() int
	// Send queues whole frames and returns how many buffers it took. Nothing
	// is promised to move before Flush.
	Send(src []Desc) int
	// Flush rings the doorbell if there is anything queued, takes back
	// buffers that were sent and makes room for receiving. Called once per
	// engine step, also when nothing was sent.
	Flush()
	// FD returns a descriptor that poll(2) finds readable when frames have
	// arrived, or -1 when there is none (simulator).
	FD() int
	Stats() PortStats
	Close() error
}

// Station is the Ethernet address that a frame came from, as a number: the first byte
// is the least significant. 0 stands for none, where a carrier does not know.
type Station uint64

// Path is the number of a destination in a Datagram's table.
type Path int32

// Packet is one UDP datagram of a Batch.
type Packet struct {
	First   int32   // index in Batch.Descs of its first buffer
	Bufs    int32   // number of buffers
	Len     int32   // UDP payload in bytes: the sum of its buffers' lengths
	To      Path    // destination; only when sending
	From    Remote  // source; only when received
	Station Station // what it came from, likewise
	Queue   uint8   // 1 + the queue of the NIC that it came in on, or 0, likewise
	Source  uint8   // number of the source port, less than SourcePorts: 0 is the endpoint's own; only when sending
	Sealed  bool    // the payload carries a CRC of its own; only when sending
	Again   bool    // it was sent before and lost; only when sending
	Kept    bool    // the sender keeps it, and if it is lost it comes again, as Again; only when sending
}

// Batch is a list of datagrams and of the buffers that they are made of. The
// slices keep their capacity between uses; the maker of a batch sizes them.
type Batch struct {
	Pkts  []Packet
	Descs []Desc
}

// NewBatch returns a batch with room for pkts datagrams of up to bufs buffers
// each.
func NewBatch(pkts, bufs int) *Batch {
	return &Batch{Pkts: make([]Packet, 0, pkts), Descs: make([]Desc, 0, pkts*bufs)}
}

// Reset empties the batch.
func (b *Batch) Reset() { b.Pkts, b.Descs = b.Pkts[:0], b.Descs[:0] }

// Add appends a datagram of one buffer, for which there is room. It sets the
// fields of p that follow from that.
func (b *Batch) Add(p Packet, d Desc) {
	n, m := len(b.Pkts), len(b.Descs)
	b.Pkts, b.Descs = b.Pkts[:n+1], b.Descs[:m+1]
	b.Descs[m] = d
	at := &b.Pkts[n]
	at.First, at.Bufs, at.Len = int32(m), 1, int32(d.Len)
	at.To, at.From, at.Source, at.Sealed, at.Again = p.To, p.From, p.Source, p.Sealed, p.Again
}

// AddReceived appends a datagram of one buffer, for which there is room, as a receiver
// found it. It sets fields one by one: what was written in parts a moment ago and is
// then copied as a whole stalls the processor.
func (b *Batch) AddReceived(at mem.Addr, size uint32, from Remote) {
	n, first := len(b.Pkts), len(b.Descs)
	b.Pkts, b.Descs = b.Pkts[:n+1], b.Descs[:first+1]
	p, d := &b.Pkts[n], &b.Descs[first]
	d.Addr, d.Len, d.Flags = at, size, 0
	p.First, p.Bufs, p.Len = int32(first), 1, int32(size)
	p.To, p.From, p.Station, p.Queue, p.Sealed = 0, from, 0, 0, false
}

// PutAll gives the frames of bufs back to their pool.
func PutAll(pool *mem.Pool, bufs []Desc) {
	for i := range bufs {
		pool.Put(bufs[i].Addr)
	}
}

// DatagramCaps says what a datagram carrier can do.
type DatagramCaps struct {
	Carrier    string // for people: "xdp/generic/copy", "udp"
	Detail     string // likewise, how it is used: "eth1, 4 queues, multi-buffer"; may be empty
	MaxPayload int    // largest UDP payload in bytes that is not fragmented
	MaxBufs    int    // most buffers per datagram when sending
	Headroom   int    // bytes to leave free in front of the first buffer of a datagram to send
	Overhead   int    // bytes of UDP payload that the carrier adds to each datagram; MaxPayload is without them
	RxDepth    int    // datagrams of MaxPayload bytes that may wait to be received
	Home       int    // as in PortCaps
	Aggregates bool   // several datagrams in a row to one peer take little longer to send than one
}

// DatagramStats counts what a datagram carrier did and dropped.
type DatagramStats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	RxMalformed        uint64 // not a well-formed UDP packet to us
	RxChecksum         uint64 // wrong IPv4 or UDP checksum, or none over IPv6
	RxDropped          uint64 // no room
	RxStray            uint64 // as in PortStats
	RxForged           uint64 // not encrypted with the secret of the job, or changed on the way
	RxReplayed         uint64 // authentic, but came before, or too late to tell
	TxUnreachable      uint64 // no next hop at the moment of sending
	TxErrors           uint64
	TxAggregates       uint64         // packets that left with several datagrams in one, if the carrier tells
	RxAggregates       uint64         // likewise arrived
	RxQueues           trace.Arrivals // frames that came in, as in PortStats
}

// Losses returns what the carrier has lost.
func (s DatagramStats) Losses() trace.Losses {
	return trace.Losses{
		NoSocket: s.RxStray, NoRoom: s.RxDropped, Checksum: s.RxChecksum, Unreachable: s.TxUnreachable, Refused: s.TxErrors,
		Forged: s.RxForged, Replayed: s.RxReplayed,
	}
}

// Plus returns the sums of two carriers' counts.
func (s DatagramStats) Plus(o DatagramStats) DatagramStats {
	s.RxPackets += o.RxPackets
	s.RxBytes += o.RxBytes
	s.TxPackets += o.TxPackets
	s.TxBytes += o.TxBytes
	s.RxMalformed += o.RxMalformed
	s.RxChecksum += o.RxChecksum
	s.RxDropped += o.RxDropped
	s.RxStray += o.RxStray
	s.RxForged += o.RxForged
	s.RxReplayed += o.RxReplayed
	s.TxUnreachable += o.TxUnreachable
	s.TxErrors += o.TxErrors
	s.TxAggregates += o.TxAggregates
	s.RxAggregates += o.RxAggregates
	for i, n := range o.RxQueues {
		s.RxQueues[i] += n
	}
	return s
}

// Datagram sends and receives UDP payloads, over IPv4 or over IPv6: whichever
// Local is of. Addresses of the other family are not resolved.
type Datagram interface {
	Caps() DatagramCaps
	Arena() *mem.Arena
	// Local returns the address and port that peers send to.
	Local() netip.AddrPort
	// Resolve makes a destination known and returns its number. It is a
	// control call: it may allocate, ask the kernel and wait. Resolving an
	// address again returns the same number.
	Resolve(to netip.AddrPort) (Path, error)
	// Back returns the path back to where a received datagram came from, and false
	// when there is none. It never waits and sends no question, since any host can make it be
	// called; so the address may be forged. The path lasts until Drop, or for good
	// once it was resolved or trusted.
	Back(from Remote, station Station) (Path, bool)
	// Drop forgets a path of Back that was neither resolved nor trusted; others stay.
	Drop(Path)
	// Trust says that a datagram which came from station is proven to be of the peer
	// at the end of a path.
	Trust(to Path, station Station)
	// Doubt says that a peer should have answered and did not: the carrier looks for
	// another way there, if it can.
	Doubt(to Path)
	// Recv empties b, fills it up to its capacity and returns the number of
	// datagrams. Each first buffer starts at the UDP payload. The buffers
	// are the caller's to read until Release.
	Recv(b *Batch) int
	// Release gives back all buffers of a batch that Recv filled.
	Release(b *Batch)
	// Frame returns a frame to build the first buffer of a datagram in, at
	// offset Caps().Headroom or later. Send takes it over; Unframe gives it
	// back unused, and ignores buffers that are no frames, as Pool.Put does.
	Frame() (mem.Addr, bool)
	Unframe(mem.Addr)
	// TxRoom returns how many datagrams of MaxBufs buffers Send takes now.
	TxRoom() int
	// Send queues all datagrams of b, in order, and leaves b to the caller.
	// The caller asked TxRoom before. Headers go into the headroom.
	Send(b *Batch)
	// Flush moves what is queued; see Port.Flush.
	Flush()
	// FD is for poll(2); see Port.FD. It is the same descriptor each time, but
	// has to be asked for before each wait: a carrier in shared memory makes
	// peers ring then, and none while the engine polls.
	FD() int
	Stats() DatagramStats
	Close() error
}
