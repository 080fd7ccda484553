package device

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Bulk is a way for large data.
type Bulk string

// The ways for large data.
const (
	// BulkAuto is what was measured to be better. Where the NIC's driver copies frames, it is
	// BulkKernel if the MTU is below bulkMTU and the kernel lets us buffer enough, and
	// BulkTCP too if Spec.BulkStreams says that the user chooses between the two. Else it is
	// BulkFrames.
	BulkAuto Bulk = ""
	// BulkFrames sends it like everything else, in frames of AF_XDP.
	BulkFrames Bulk = "frames"
	// BulkKernel sends it by a UDP socket of the kernel beside AF_XDP, which takes
	// 64 KiB in one piece. Its port is that of the endpoint plus dgram.BulkPort.
	BulkKernel Bulk = "kernel"
	// BulkTCP opens TCP of the kernel beside AF_XDP, as Context.Streams: MPI has large
	// data go by RDMA Writes over it where it finds that faster.
	BulkTCP Bulk = "tcp"
)

// Beside asks for connections beside reliable datagrams, for large data. must: they are
// needed, over whatever carries them; else they are opened where they may be faster.
func (s *Spec) Beside(must bool) {
	switch {
	case !must:
		s.BulkStreams = true
	case strings.HasPrefix(s.Fabric, "xdp"):
		s.Bulk = BulkTCP
	default:
		s.RC = true
	}
}

// ParseBulk reads a way for large data: auto, frames, kernel or tcp. Its error names them.
func ParseBulk(s string) (Bulk, error) {
	switch config.Bulk.Index(s) {
	case -1:
		return "", fmt.Errorf("device: %.32q is no way for large data: want %v", s, config.Bulk)
	case 0:
		return BulkAuto, nil
	}
	return Bulk(s), nil
}

const (
	// bulkMTU is from what MTU on frames are as fast as pieces of 64 KiB.
	bulkMTU = 12 << 10
	// bulkWindow is how many bytes of a peer the socket must be able to hold for
	// it to be chosen: users without privileges may have less (net.core.rmem_max).
	bulkWindow = 1 << 20
	// bulkSlots is how many pieces of 64 KiB are received at a time at most.
	bulkSlots = 16
)

// openBulk opens a socket of the kernel for large data beside an endpoint on
// port, if that is wanted, as o.bulk.
func (o *opening) openBulk(s *Spec, first fabric.Datagram, port fabric.Port) error {
	local, most := first.Local(), first.Caps().MaxPayload
	auto := s.Bulk == BulkAuto
	switch {
	case s.Bulk == BulkTCP && s.Capture != "":
		return fmt.Errorf("device: of what goes through AF_XDP only frames can be captured, and large data would go by TCP of the kernel: leave Capture away, or Bulk %q", s.Bulk)
	case s.Bulk == BulkTCP && s.RC:
		return fmt.Errorf("device: Bulk %q and RC, which is TCP in user space, do not go together: choose one", s.Bulk)
	case s.Bulk == BulkTCP || auto && s.BulkStreams && !s.RC && s.Capture == "" && !port.Caps().ZeroCopy:
		streams, err := openTCP(s, first.Arena(), besideAFXDP())
		if err == nil {
			o.streams = streams
		}
		if !auto {
			return err
		}
	}
	switch {
	case s.Bulk == BulkFrames || auto && (s.Capture != "" || port.Caps().ZeroCopy || most >= bulkMTU):
		return nil
	case s.Capture != "":
		return fmt.Errorf("device: of what goes through AF_XDP only frames can be captured, and large data would go through the kernel: leave Capture away, or Bulk %q", s.Bulk)
	case local.Port() > 0xffff-dgram.BulkPort:
		if auto {
			return nil
		}
		return fmt.Errorf("device: port %d leaves no room for that of large data, which is %d higher: choose a lower one", local.Port(), dgram.BulkPort)
	}
	second, err := kudp.Open(kudp.Config{
		Arena: first.Arena(), Pool: port.Pool(), MTU: most + ipUDPLen(local.Addr()), RxSlots: bulkSlots,
		Local: netip.AddrPortFrom(local.Addr(), local.Port()+dgram.BulkPort), Mark: bpf.BypassMark,
	})
	switch {
	case err != nil && auto:
		return nil // another program has the port: everything goes in frames
	case err != nil:
		return fmt.Errorf("device: large data beside AF_XDP: %w", err)
	case auto && second.Caps().RxDepth*most < bulkWindow:
		return second.Close()
	}
	o.bulkFD = second.FD()
	wrapped, err := s.withFaults(second)
	if err != nil {
		return err
	}
	o.bulk, err = s.withSecret(wrapped)
	return err
}
