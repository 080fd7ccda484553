package fault

import "github.com/xwarp/xwarp/internal/fabric"

// Port is a fabric.Port that treats badly what it sends, as a wire would: any
// bit of a frame may flip. What it receives comes through unchanged.
//
// Owner: engine, like the port's.
type Port struct {
	fabric.Port
	mill mill
}

var _ fabric.Port = (*Port)(nil)

// NewPort wraps inner, which it owns from now on when err is nil.
func NewPort(inner fabric.Port, c Config) (*Port, error) {
	m, err := newMill(c, inner.Arena())
	if err != nil {
		return nil, err
	}
	m.take, m.give = inner.Pool().Get, inner.Pool().Put
	return &Port{Port: inner, mill: m}, nil
}

// Caps returns the port's, with its name marked.
func (p *Port) Caps() fabric.PortCaps {
	c := p.Port.Caps()
	c.Driver += "+fault"
	return c
}

// Faults counts what has been done so far.
func (p *Port) Faults() Stats { return p.mill.stats }

// TxFree returns how many buffers Send takes now. Each frame may become two,
// and those that are held back go out with them.
func (p *Port) TxFree() int {
	free := p.Port.TxFree()
	for i := range p.mill.held {
		free -= int(p.mill.held[i].packet.Bufs)
	}
	return max(0, free/2)
}

// Send does to the frames of src what the dice say, and sends the rest.
func (p *Port) Send(src []fabric.Desc) int {
	room := min(p.TxFree(), len(src))
	first, size := 0, int32(0)
	for i := range room {
		size += int32(src[i].Len)
		if src[i].Flags&fabric.More == 0 {
			p.mill.add(fabric.Packet{Len: size}, src[first:i+1], true)
			first, size = i+1, 0
		}
	}
	p.push()
	return first
}

// Flush sends what has been held back long enough, and flushes the port.
func (p *Port) Flush() {
	if len(p.mill.held) > 0 {
		p.mill.release(p.Port.TxFree() / fabric.MaxBufs)
		p.push()
	}
	p.Port.Flush()
}

// push hands on what came out of the mill. There is room: TxFree has seen to it.
func (p *Port) push() {
	bufs := p.mill.out.Descs
	if took := p.Port.Send(bufs); took < len(bufs) {
		p.mill.drop(bufs[took:])
	}
	p.mill.out.Reset()
}

// Close drops what is held back and closes the port.
func (p *Port) Close() error {
	p.mill.dropHeld()
	return p.Port.Close()
}
