package vectors

import (
	"encoding/binary"
	"slices"
	"testing"
)

// Connection is a TCP connection in a capture: what each side has sent, as far
// as nothing is missing.
type Connection struct {
	Initiator, Responder []byte
}

// TCPConnections returns the connections of a pcap file of Ethernet frames
// (IPv4), in the order of their beginning.
func TCPConnections(t testing.TB, pcap []byte) []Connection {
	t.Helper()
	le, be := binary.LittleEndian, binary.BigEndian
	if len(pcap) < 24 || le.Uint32(pcap) != 0xa1b2c3d4 || le.Uint32(pcap[20:]) != 1 {
		t.Fatal("not a pcap file of Ethernet frames")
	}
	var order []string // whoever sent a SYN first is the initiator
	sides := map[string]*side{}
	for b := pcap[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		frame := b[16 : 16+n]
		b = b[16+n:]
		if n < 54 || be.Uint16(frame[12:]) != 0x0800 || frame[23] != 6 {
			continue
		}
		ip := frame[14 : 14+be.Uint16(frame[16:])]
		tcp := ip[int(ip[0]&15)*4:]
		from := string(ip[12:16]) + string(tcp[:2])
		to := string(ip[16:20]) + string(tcp[2:4])
		seq, payload := be.Uint32(tcp[4:]), tcp[int(tcp[12]>>4)*4:]
		const syn, ack = 0x02, 0x10
		if tcp[13]&syn != 0 {
			sides[from+to] = &side{first: seq + 1}
			if tcp[13]&ack == 0 && !slices.Contains(order, from+to) {
				order = append(order, from+to)
			}
			continue
		}
		if s := sides[from+to]; s != nil {
			s.parts = append(s.parts, part{seq - s.first, payload})
		}
	}
	var out []Connection
	for _, key := range order {
		half := len(key) / 2
		out = append(out, Connection{sides[key].stream(), sides[key[half:]+key[:half]].stream()})
	}
	return out
}

// side is what one end of a connection has sent.
type side struct {
	first uint32 // sequence number of its first byte
	parts []part
}

type part struct {
	off  uint32
	data []byte
}

func (s *side) stream() []byte {
	if s == nil {
		return nil
	}
	slices.SortStableFunc(s.parts, func(a, b part) int { return int(int32(a.off - b.off)) })
	var out []byte
	for _, p := range s.parts {
		if have := uint32(len(out)); p.off <= have && have < p.off+uint32(len(p.data)) {
			out = append(out, p.data[have-p.off:]...)
		}
	}
	return out
}
