package peers

import (
	"errors"

	"github.com/xwarp/xwarp/bench"
)

// raw is what the ranks could do at best: frames between the hosts without any
// protocol.
type raw struct {
	place   *bench.Place
	abort   func(code int, why string)
	session *bench.Session // one at a time, for it has the device
	test    string         // of the session
}

// The headers in front of a message in bytes: those of Ethernet, and with them
// those of IPv4 and UDP.
const (
	ethernetHeader = 14
	packetHeader   = ethernetHeader + 20 + 8
	shortestFrame  = 64
)

// frame returns the frame that carries messages of that size, in bytes: one as
// long as a datagram with the message would be, in streams a full one. It
// returns 0 when there is none.
func frame(t Table, size int) int {
	full := t.Where.MTU + ethernetHeader
	n := max(size+packetHeader, shortestFrame)
	switch {
	case t.Case.Family != bench.MPI || t.Case.Kind == bench.Duplex:
		return 0
	case t.Case.Kind == bench.Bandwidth:
		return full
	case t.Case.Kind == bench.Rate:
		return shortestFrame
	case n > full:
		return 0
	}
	return n
}

// open opens the test that t is to be compared with.
func (r *raw) open(t Table) error {
	name := map[bench.Kind]string{bench.PingPong: "raw_lat", bench.Rate: "raw_rate", bench.Bandwidth: "raw_bw"}[t.Case.Kind]
	if r.test == name {
		return nil
	}
	if err := r.end(); err != nil {
		return err
	}
	spec := bench.Spec{Test: name, Fabric: "xdp", MTU: t.Where.MTU, Warmup: -1}
	for _, size := range t.Sizes {
		if n := frame(t, size); n > 0 {
			spec.Sizes = append(spec.Sizes, n)
		}
	}
	config := r.place.Client
	config.Abort = r.abort
	s, err := bench.Connect(r.place.Context, spec, config)
	if err != nil {
		return err
	}
	r.session, r.test = s, name
	return nil
}

func (r *raw) end() error {
	s := r.session
	r.session, r.test = nil, ""
	if s == nil {
		return nil
	}
	return s.Close()
}

// run measures frames for messages of the order's size.
func (r *raw) run(t Table, o Order) (bench.Point, error) {
	if err := r.open(t); err != nil {
		return bench.Point{}, err
	}
	return r.session.Run(bench.Burst{Size: frame(t, o.Size), Iters: o.Iters, Warmup: o.Warmup, Window: o.Window})
}

func (r *raw) close() error {
	return errors.Join(r.end(), r.place.Close())
}
