package device

import (
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// Open opens a device. The caller closes the context, and everything that was
// opened for it goes with it. Its errors are those of the carrier, and say what to do.
func Open(s Spec) (*verbs.Context, error) {
	s.Fabric = cmp.Or(s.Fabric, config.DefaultFabric)
	if err := checkFabric(s.Fabric); err != nil {
		return nil, err
	}
	if s.Clock == nil {
		s.Clock = mono.Real{}
	}
	for s.Epoch == 0 {
		s.Epoch = rand.Uint32()
	}
	if s.Slot != "" {
		if err := s.takeSlot(); err != nil {
			return nil, err
		}
	}
	if err := s.checkSecret(); err != nil {
		return nil, err
	}
	devices, err := s.devices()
	if err != nil {
		return nil, err
	}
	arena, err := s.openArena()
	if err != nil {
		return nil, err
	}
	o := opening{closers: []io.Closer{arena}, bulkFD: -1, devices: devices}
	under, err := o.carriers(&s, arena)
	if err != nil {
		return nil, o.undo(err)
	}
	poller, err := progress.NewPoller(s.Clock, s.Poller)
	if err != nil {
		return nil, errors.Join(under.Close(), o.undo(err))
	}
	under.watch(poller)
	poller.Watch(o.bulkFD)
	for _, dg := range o.several {
		poller.WatchBell(dg)
	}
	o.closers = append(o.closers, poller)
	c := verbs.Config{
		Datagram: under.datagram, Bulk: under.bulk, Streams: under.streams, Engine: progress.New(s.Clock, poller), Key: s.Key, Epoch: s.Epoch,
		NoCRC: s.NoCRC || s.Secret != nil && s.Fabric != "shm", Dgram: s.Dgram,
	}
	watch, err := o.openWatch(&s)
	if err != nil {
		return nil, errors.Join(under.Close(), o.undo(err))
	}
	if watch != nil {
		c.Link = watch
	}
	c.Closers = o.reversed()
	ctx, err := verbs.New(c)
	if err != nil {
		return nil, errors.Join(under.Close(), o.undo(err))
	}
	if watch != nil {
		failWith(ctx, watch)
	}
	return ctx, nil
}

// carriers are what a context stands on: datagrams, streams or both.
type carriers struct {
	datagram fabric.Datagram // or nil
	bulk     fabric.Datagram // a second path for large data, or nil
	streams  fabric.Streams  // or nil
}

// Close closes the carriers, as long as no context has taken them over.
func (c carriers) Close() error {
	var errs [3]error
	if c.bulk != nil {
		errs[2] = c.bulk.Close()
	}
	if c.datagram != nil {
		errs[0] = c.datagram.Close()
	}
	if c.streams != nil {
		errs[1] = c.streams.Close()
	}
	return errors.Join(errs[:]...)
}

// watch makes input of the carriers end a Park.
func (c carriers) watch(p *progress.Poller) {
	if c.datagram != nil {
		p.WatchBell(c.datagram)
	}
	if c.streams != nil {
		p.WatchBell(c.streams)
	}
}

// carriers opens what s asks for. After an error nothing of it is open but what
// undo closes.
func (o *opening) carriers(s *Spec, arena *mem.Arena) (c carriers, err error) {
	if err := s.checkStreams(); err != nil {
		return c, err
	}
	if s.Fabric != "tcp" {
		c.datagram, err = o.onDevices(s, arena)
		c.streams, c.bulk = o.streams, o.bulk
		if err != nil {
			return c, errors.Join(err, c.Close())
		}
	}
	if s.onKernelTCP() {
		if c.streams, err = openTCP(s, arena, ktcp.Config{}); err != nil {
			return c, errors.Join(err, c.Close())
		}
	}
	if c.streams, err = s.streamsWithSecret(c.streams); err != nil {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
}

// wrapped opens a carrier of datagrams, with the faults that are asked for, and
// encryption above them.
func (o *opening) wrapped(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	dg, err := o.datagram(s, arena)
	if err != nil {
		return nil, err
	}
	if dg, err = s.withFaults(dg); err != nil {
		return nil, err
	}
	return s.withSecret(dg)
}

// withFaults puts the faults that are asked for over a carrier. After an error the
// carrier is closed.
func (s *Spec) withFaults(dg fabric.Datagram) (fabric.Datagram, error) {
	if s.Faults == (fault.Config{}) {
		return dg, nil
	}
	f, err := fault.NewDatagram(dg, s.Faults)
	if err != nil {
		return nil, errors.Join(err, dg.Close())
	}
	return f, nil
}

// opening is what was opened so far, in order.
type opening struct {
	closers []io.Closer
	bulk    fabric.Datagram   // for large data, or nil
	bulkFD  int               // its descriptor, or -1
	streams fabric.Streams    // on the same port as the datagrams, or nil
	devices []string          // if there are several
	several []fabric.Datagram // the carriers on them
}

func (o *opening) reversed() []io.Closer {
	r := slices.Clone(o.closers)
	slices.Reverse(r)
	return r
}

func (o *opening) undo(err error) error {
	for _, c := range o.reversed() {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (o *opening) datagram(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	var dg fabric.Datagram
	var err error
	switch s.Fabric {
	case "udp":
		dg, err = openUDP(s, arena)
	case "shm":
		dg, err = openShm(s, arena)
	default:
		return o.openXDP(s, arena)
	}
	if err != nil {
		return nil, err
	}
	return s.captureDatagram(dg)
}
