package capture_test

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// packet is an IPv4 packet with a datagram of ours.
func packet(t *testing.T, id uint16, payload []byte) []byte {
	t.Helper()
	ip := layers.IPv4{Version: 4, TTL: 64, Id: id, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(10, 0, 0, 1), DstIP: net.IPv4(10, 0, 0, 2)}
	udp := layers.UDP{SrcPort: 18700, DstPort: 18700}
	must(t, udp.SetNetworkLayerForChecksum(&ip))
	b := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, &ip, &udp, gopacket.Payload(payload)))
	return b.Bytes()
}

// linkSLL2 is LINKTYPE_LINUX_SLL2, what tcpdump writes on "any".
const linkSLL2 = 276

// linkHeaders are kinds of captures, with what stands in front of a packet that
// was seen at one of two places: where it came in, and where it went out.
var linkHeaders = map[string]struct {
	link   layers.LinkType
	header func(place int) []byte
}{
	"tcpdump on any": {linkSLL2, func(place int) []byte {
		b := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, uint32(2+place)) // protocol, interface
		b = append(b, 0, 1, byte(3+place), 6)                                   // Ethernet, to another host or outgoing
		return append(b, 2, 0, 0, 0, 0, 1, 0, 0)
	}},
	"tshark on any": {layers.LinkTypeLinuxSLL, func(place int) []byte {
		b := []byte{0, byte(3 + place), 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}
		return append(b, 8, 0)
	}},
	"two interfaces": {layers.LinkTypeEthernet, func(int) []byte {
		return []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}
	}},
}

// On "any", or at several ports of a bridge, a capture has each datagram more
// than once. That is not sent again, and what is sent again still is.
func TestDissector_seenAgain(t *testing.T) {
	needTshark(t)
	var l lsn
	x := l.data(segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, 1, 2, 3, 4))
	frames := []struct {
		id           uint16
		place        int
		seen, resent string
	}{
		{1, 0, "", ""},
		{1, 1, "1", ""},
		{2, 0, "", "1"}, // a frame of ours that is sent again has another identification
		{2, 1, "3", ""},
		{2, 0, "", "1"}, // one of the kernel may have the same
		{2, 1, "5", ""},
	}
	for name, h := range linkHeaders {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "made.pcapng")
			out, err := os.Create(file)
			must(t, err)
			defer out.Close()
			w, err := pcapgo.NewNgWriter(out, h.link)
			must(t, err)
			_, err = w.AddInterface(pcapgo.NgInterface{Name: "another", LinkType: h.link, SnapLength: 1 << 16})
			must(t, err)
			for _, f := range frames {
				b := append(h.header(f.place), packet(t, f.id, x)...)
				info := gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}
				if h.link == layers.LinkTypeEthernet {
					info.InterfaceIndex = f.place
				}
				must(t, w.WritePacket(info, b))
			}
			must(t, w.Flush())
			fields := append([]string{"xwarp.seen", "xwarp.resent"}, always...)
			for _, passes := range [][]string{nil, {"-2"}} {
				for i, r := range tshark(t, file, fields, passes...) {
					checkGood(t, i+1, r)
					if f := frames[i]; r.one("xwarp.seen") != f.seen || r.one("xwarp.resent") != f.resent {
						t.Errorf("%v frame %d: seen in %q and sent in %q before, want %q and %q: %s", passes, i+1, r["xwarp.seen"], r["xwarp.resent"], f.seen, f.resent, r.one("_ws.col.Info"))
					}
				}
			}
		})
	}
}
