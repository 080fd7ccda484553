// Package capture writes what passes a carrier to a pcapng file, for Wireshark
// and its like. The kernel's own tools see nothing of AF_XDP, of shared memory
// and of the simulator; a capture is taken here, where the protocol hands its
// bytes over, and so it is the same on every carrier.
//
// The file names the carrier, tells sent packets from received ones (epb_flags
// of the pcapng draft) and has times in nanoseconds. All packets
// of one batch have one time, that of the call.
//
// A packet that the carrier accepts and then drops is in the capture; one that
// it never shows us is not. Copying and writing take far longer than a packet
// does: measure without.
package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Config describes a capture. Its zero value stamps packets with the machine's
// time of day.
type Config struct {
	// Clock stamps the packets; default mono.Real. Times of any other clock
	// count from 1970, so that simulations give the same file each time.
	Clock mono.Clock
	// Name is the interface's in the file; default "xwarp".
	Name string
}

// buffered is how many bytes are gathered for one write to the file. A process
// that is killed leaves a file without as much of its end.
const buffered = 256 << 10

// writer writes frames to one file with one interface.
type writer struct {
	out    io.WriteCloser
	clock  mono.Clock
	origin time.Time // when the clock showed 0
	now    uint64    // nanoseconds since 1970 of the frames being written
	frame  []byte    // being put together
	blocks []byte    // not in the file yet
	err    error     // the first one; nothing is written after it
}

func newWriter(out io.WriteCloser, c Config, carrier string) *writer {
	c.Name = cmp.Or(c.Name, "xwarp")
	w := &writer{out: out, clock: c.Clock, origin: time.Unix(0, 0), blocks: make([]byte, 0, buffered+blockMax)}
	if w.clock == nil {
		w.clock = mono.Real{}
	}
	if real, ok := w.clock.(mono.Real); ok {
		w.origin = real.Origin()
	}
	w.blocks = appendSection(w.blocks)
	w.blocks = appendInterface(w.blocks, c.Name, carrier)
	return w
}

// stamp makes now the time of the frames that follow.
func (w *writer) stamp() {
	w.now = uint64(w.origin.Add(time.Duration(w.clock.Now())).UnixNano())
}

// gather appends what lies in bufs to the frame being put together.
func (w *writer) gather(a *mem.Arena, bufs []fabric.Desc) {
	for _, d := range bufs {
		w.frame = append(w.frame, a.At(d.Addr, int(d.Len))...)
	}
}

// write writes one frame, of which it keeps nothing.
func (w *writer) write(frame []byte, way direction) {
	if w.err != nil {
		return
	}
	w.blocks = appendPacket(w.blocks, frame, w.now, way)
	if len(w.blocks) >= buffered {
		w.flush()
	}
}

func (w *writer) flush() {
	_, w.err = w.out.Write(w.blocks)
	w.blocks = w.blocks[:0]
}

// close writes what is left and closes the file. Its error says that packets
// are missing in it.
func (w *writer) close() error {
	if w.err == nil {
		w.flush()
	}
	err := w.err
	if err != nil {
		err = fmt.Errorf("capture: packets are missing at the end of the file: %w", err)
	}
	return errors.Join(err, w.out.Close())
}
