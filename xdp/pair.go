package xdp

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/bpf"
)

// OpenPair opens two ports of one engine on one device: the first as [Open]
// does, and a second one that receives on the queue bulk. They share arena,
// program and pool, which has Config.Frames for each of them. Close the second
// before the first.
//
// The second one is for bulk data, so that what is small and urgent does not
// wait behind it and its receive work may be done by another core. What is sent
// on the second port of a host arrives at the second port of the other: see
// sendQueue. Its errors are those of Open.
func OpenPair(c Config, bulk int) (first, second *Port, err error) {
	if c, err = c.WithDefaults(); err != nil {
		return nil, nil, err
	}
	if bulk < 0 || bulk == c.Queue {
		return nil, nil, fmt.Errorf("xdp: the second queue is %d, the first one %d: they must differ, and count from 0", bulk, c.Queue)
	}
	c.Frames *= 2
	if c.Program == nil {
		c.Steer.Queues = max(c.Steer.Queues, bulk+1)
	}
	c.Queues = 1
	if first, err = openFirst(c); err != nil {
		return nil, nil, err
	}
	if vlan := first.caps.VLAN; vlan != 0 {
		err = &Error{Device: c.Device, Reason: ErrUnsupported, Detail: fmt.Sprintf("a second queue in VLAN %d", vlan), Remedy: "use one queue"}
		return nil, nil, errors.Join(err, first.Close())
	}
	if second, err = first.beside(c, bulk); err != nil {
		return nil, nil, errors.Join(err, first.Close())
	}
	return first, second, nil
}

// beside opens the second port.
func (p *Port) beside(c Config, queue int) (*Port, error) {
	c.Program, c.Queue = p.steering.program, queue
	steering, err := NewSteering(c)
	if err != nil {
		return nil, err
	}
	b := &Port{steering: steering, arena: c.Arena, span: p.span, pool: p.pool, rxDepth: c.RxDepth, want: c.RxDepth}
	sendOn := sendQueue(queue, steering.device.driver, steering.mode)
	if err = steering.device.check(sendOn, c.MTU); err == nil {
		err = b.open(c, sendOn)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// sendQueue returns the queue to send on for frames to arrive at the peer's
// queue of the given number. On a cable that is up to the peer's network card.
// A veth that has no XDP program in driver mode leaves in a frame the queue
// that it was sent on, which its peer reads as the one that it was received on,
// and that counts from 1, since 0 stands for none.
func sendQueue(queue int, driver string, mode bpf.Mode) int {
	if driver == "veth" && mode == bpf.Generic {
		return queue + 1
	}
	return queue
}

// openSender makes a second socket send for p, on another queue than the one
// that p receives on: a socket is bound to one queue for both.
func (p *Port) openSender(c Config, queue int) (err error) {
	dev := p.steering.device
	d := depths{fill: depthMin, completion: c.TxDepth, rx: depthMin, tx: c.TxDepth}
	if p.out, err = newSocket(dev.name, c.Arena, d); err != nil {
		p.out = p.sock
		return err
	}
	// Every frame that p sends comes back to the pool through these.
	p.rings.tx, p.rings.completion = p.out.rings.tx, p.out.rings.completion
	return p.out.bind(dev, queue, c.bindings(dev, p.steering.mode), bindPatience)
}
