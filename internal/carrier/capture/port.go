package capture

import (
	"errors"
	"io"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Port is a fabric.Port that writes each frame that it carries to a file, as
// it is. Frames are copied when they pass; the rules of ownership are those of
// the port below.
//
// Owner: engine, like the port's.
type Port struct {
	fabric.Port
	w *writer
}

var _ fabric.Port = (*Port)(nil)

// NewPort wraps inner. It owns inner and out from now on.
func NewPort(inner fabric.Port, out io.WriteCloser, c Config) *Port {
	return &Port{Port: inner, w: newWriter(out, c, inner.Caps().Driver)}
}

// Caps returns the port's, with its name marked.
func (p *Port) Caps() fabric.PortCaps {
	c := p.Port.Caps()
	c.Driver += "+capture"
	return c
}

// Recv returns what the port below received, and captures it.
func (p *Port) Recv(dst []fabric.Desc) int {
	n := p.Port.Recv(dst)
	if n > 0 {
		p.copy(dst[:n])
		p.split(dst[:n], inbound)
	}
	return n
}

// Send sends over the port below, and captures the frames that it took.
func (p *Port) Send(src []fabric.Desc) int {
	p.copy(src) // before: afterwards the buffers are no longer ours
	took := p.Port.Send(src)
	p.split(src[:took], outbound)
	return took
}

func (p *Port) copy(bufs []fabric.Desc) {
	p.w.stamp()
	p.w.frame = p.w.frame[:0]
	p.w.gather(p.Arena(), bufs)
}

// split writes the copied bytes of bufs frame by frame.
func (p *Port) split(bufs []fabric.Desc, way direction) {
	rest, size := p.w.frame, 0
	for _, d := range bufs {
		if size += int(d.Len); d.Flags&fabric.More == 0 {
			p.w.write(rest[:size], way)
			rest, size = rest[size:], 0
		}
	}
}

// Close closes the port and the file. Its error says, among others, that the
// file is not complete.
func (p *Port) Close() error { return errors.Join(p.Port.Close(), p.w.close()) }
