// Package netstack is TCP in user space: gVisor's netstack over a
// [fabric.Port], behind [fabric.Streams].
//
// Frames come in and go out in batches on the engine's goroutine. TCP itself runs
// there, too, as long as a connection is open: whatever a call of ours starts, timers,
// and segments that have arrived ([inline]). Connections that begin or end are
// served by gVisor's goroutines, one per processor. They meet the engine in one
// place, the [mail]: packets to send and streams that have something new. Nothing of
// ours starts a goroutine but for asking the kernel about a host that calls us and
// that we do not know.
//
// gVisor's goroutines run on the engine's thread when it yields to them, unless it
// is locked to a goroutine (runtime.LockOSThread): then other threads have to be woken.
//
// gVisor sends up to 64 KiB as one segment. It is cut where its bytes are copied into
// frames, and the checksum of each is computed there (tx.go). It gets up to 64 KiB as one
// segment, too: frames of one stream that have arrived in a row are joined where they are copied (run.go).
//
// Where AF_XDP copies, such a segment leaves by a packet socket instead, whole, if there may be one (offload.go).
//
// Checksums are computed and checked here, but for segments that leave whole: the device is to compute
// theirs, as those of the kernel's TCP. A veth passes them on as they are, and the receiver takes that for what it is.
//
// Next hops come from the kernel by package internal/carrier/inet/route.
package netstack
