package check

import (
	"encoding/binary"
	"strconv"

	"github.com/xwarp/xwarp/verbs"
)

func itoa(i int) string { return strconv.Itoa(i) }

// ReceivedUD says that a receive of an unreliable datagram queue pair has
// completed: from is the host that the completion names, data what is in the
// buffer.
func (m *Model) ReceivedUD(l *Life, wc *verbs.WC, from int, qpn uint32, data []byte) {
	if _, ok := l.recvs[wc.WRID]; !ok {
		m.fail("%v: completion %v of receive %#x, which is not posted", l, wc.Status, wc.WRID)
		return
	}
	delete(l.recvs, wc.WRID)
	if wc.Status == verbs.WRFlushErr {
		return
	}
	var o *Op
	if len(data) >= 8 {
		o = m.ops[binary.LittleEndian.Uint64(data)]
	}
	switch {
	case wc.Status != verbs.Success:
		m.fail("%v: receive %#x failed: %v; all of them are large enough", l, wc.WRID, wc.Status)
	case o == nil || o.Stream != nil || o.Code != verbs.OpSend || o.Wrong != "":
		m.fail("%v: host %d delivered %d bytes that nobody sent here as an unreliable datagram", l, from, len(data))
	case from < 0 && m.rules.Corrupt:
		// The CRC does not cover the addresses, and three bits can flip so that
		// the 16 bits of UDP's checksum do not show it: the sender is unknown
		// then, but never another host.
	case o.Life.Host != from || o.ToHost >= 0 && (o.ToHost != l.Host || o.ToQP != qpn):
		m.fail("%v: delivered to queue pair %d as from host %d: %v to host %d, queue pair %d", l, qpn, from, o, o.ToHost, o.ToQP)
	case len(data) != o.Len || differs(data, o.ID) >= 0:
		m.fail("%v: delivered %d bytes, changed: %v", l, len(data), o)
	default:
		if o.copies == nil {
			o.copies = map[*Life]int{}
		}
		if o.copies[l]++; o.copies[l] > m.rules.Copies {
			m.fail("%v: delivered %d times; the network doubles at most to %d: %v", l, o.copies[l], m.rules.Copies, o)
		}
	}
}
