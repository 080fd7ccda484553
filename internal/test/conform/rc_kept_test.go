package conform

import (
	"io"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// keptStreams is a carrier of streams that stays open for the next case: to open
// an AF_XDP socket takes longer than a case.
type keptStreams struct {
	fabric.Streams
	open map[io.Closer]bool // streams and listeners that nobody has closed
}

func keepStreams(s fabric.Streams) *keptStreams {
	return &keptStreams{Streams: s, open: map[io.Closer]bool{}}
}

type (
	keptStream struct {
		fabric.Stream
		k  *keptStreams
		id fabric.StreamID
	}
	keptListener struct {
		fabric.Listener
		k  *keptStreams
		id fabric.StreamID
	}
	// aborts closes what a case has left.
	aborts struct{ fabric.Stream }
	shuts  struct{ fabric.Listener }
)

func (a aborts) Close() error { a.Stream.Close(true); return nil }
func (s shuts) Close() error  { s.Listener.Close(); return nil }

func (k *keptStreams) stream(s fabric.Stream) fabric.Stream {
	k.open[aborts{s}] = true
	return keptStream{s, k, s.ID()}
}

// Dial implements fabric.Streams.
func (k *keptStreams) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	s, err := k.Streams.Dial(to, from)
	if err != nil {
		return nil, err
	}
	return k.stream(s), nil
}

// Listen implements fabric.Streams.
func (k *keptStreams) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	l, err := k.Streams.Listen(at, backlog)
	if err != nil {
		return nil, err
	}
	k.open[shuts{l}] = true
	return keptListener{l, k, l.ID()}, nil
}

// Close closes all that was opened, and not the carrier.
func (k *keptStreams) Close() error {
	for c := range k.open {
		c.Close()
		delete(k.open, c)
	}
	k.Flush()
	return nil
}

// ID implements fabric.Stream, also when the carrier was closed.
func (s keptStream) ID() fabric.StreamID { return s.id }

// ID implements fabric.Listener, likewise.
func (l keptListener) ID() fabric.StreamID { return l.id }

// Close implements fabric.Stream.
func (s keptStream) Close(abort bool) {
	if s.k.open[aborts{s.Stream}] {
		delete(s.k.open, aborts{s.Stream})
		s.Stream.Close(abort)
	}
}

// Accept implements fabric.Listener.
func (l keptListener) Accept() fabric.Stream {
	s := l.Listener.Accept()
	if s == nil {
		return nil
	}
	return l.k.stream(s)
}

// Close implements fabric.Listener.
func (l keptListener) Close() {
	if l.k.open[shuts{l.Listener}] {
		delete(l.k.open, shuts{l.Listener})
		l.Listener.Close()
	}
}

// closeAll closes a carrier and what it stands on at the end of the test.
func closeAll(t *testing.T, s fabric.Streams, under []io.Closer) {
	t.Cleanup(func() {
		for _, c := range append([]io.Closer{s}, under...) {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
