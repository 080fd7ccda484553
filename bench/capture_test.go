package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// packets counts what a capture holds, by direction.
func packets(t *testing.T, file string) (in, out int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, _, opts, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			return in, out
		}
		if err != nil {
			t.Fatal(err)
		}
		switch opts.Flags.Direction {
		case pcapgo.NgEpbFlagDirectionInbound:
			in++
		case pcapgo.NgEpbFlagDirectionOutbound:
			out++
		}
	}
}

// The client writes a capture with each message of a ping-pong, both ways, and
// with no frame that was lost on purpose.
func TestCapture(t *testing.T) {
	for _, c := range []struct {
		name string
		site func(*testing.T) site
		spec Spec
	}{
		{"sockets", loopback, brief("send_lat", "udp", 8)},
		{"frames of a test", func(t *testing.T) site { return hosts(t, 3000) }, brief("raw_lat", "xdp", 64)},
		{"frames of verbs", func(t *testing.T) site { return hosts(t, 3000) }, brief("send_lat", "xdp", 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.site(t)
			s.client.Capture = filepath.Join(t.TempDir(), "client.pcapng")
			session, err := Connect(t.Context(), c.spec, ConnectConfig{Local: s.client, Addr: s.serve(t, ServeConfig{})})
			if err != nil {
				t.Fatal(err)
			}
			check(t, session)
			if err := session.Close(); err != nil {
				t.Fatal(err)
			}
			turns := c.spec.Iters + c.spec.Warmup
			if in, out := packets(t, s.client.Capture); in < turns || out < turns {
				t.Errorf("%d packets in and %d out were captured of %d round trips", in, out, turns)
			}
		})
	}
}

func TestCapture_refused(t *testing.T) {
	for _, c := range []struct{ file, test string }{
		{"client.pcapng", "raw_lat"}, // the kernel's own: not ours to capture
		{"no/such/folder/client.pcapng", "send_lat"},
	} {
		s := loopback(t)
		s.client.Capture = filepath.Join(t.TempDir(), c.file)
		session, err := Connect(t.Context(), brief(c.test, "udp", 8), ConnectConfig{Local: s.client, Addr: s.serve(t, ServeConfig{})})
		if err == nil {
			t.Errorf("%s was opened: %v", c.test, session.Close())
		} else if !errors.Is(err, ErrUsage) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", c.test, err)
		}
	}
}
