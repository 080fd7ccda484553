package inet

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Source ports. The endpoints at ports FirstPort to FirstPort+511 may send from the upper half
// of all ports as well, where each has 64: number k of the one at FirstPort+i is
// 32768 + 64 i + k. So the source port tells a receiver which endpoint has sent.
const (
	sourcesAt    = 1 << 15
	SourceOwners = (1<<16 - sourcesAt) / fabric.SourcePorts
)

// sources are those of an endpoint at port local.
type sources struct{ first, local uint16 }

// owner returns the port of the endpoint that has sent from a port.
func (o sources) owner(port uint16) uint16 {
	if port < sourcesAt || o.first == 0 {
		return port
	}
	return o.first + (port-sourcesAt)/fabric.SourcePorts
}

// put makes k the number of the source port in a UDP header with the sum s, and returns the
// sum then.
func (o sources) put(udp []byte, k uint8, s Sum) Sum {
	owner := o.local - o.first
	if o.first == 0 || owner >= SourceOwners {
		return s
	}
	port := sourcesAt + owner*fabric.SourcePorts + uint16(k)%fabric.SourcePorts
	binary.BigEndian.PutUint16(udp, port)
	return s.AddWord(port).AddWord(^o.local)
}
