package inet

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Source ports. The endpoints at ports FirstPort to FirstPort+511 may send from the upper half
// of all ports as well, where each has 64: number k of the one at FirstPort+i is
// 32768 + 64 i + k. Whoever receives from there knows by that whose it is.
const (
	sourcesAt    = 1 << 15
	SourceOwners = (1<<16 - sourcesAt) / fabric.SourcePorts
)

// own returns the port of the endpoint that has sent from a port.
func (e *Endpoint) own(port uint16) uint16 {
	if port < sourcesAt || e.firstPort == 0 {
		return port
	}
	return e.firstPort + (port-sourcesAt)/fabric.SourcePorts
}

// putSource makes k the number of the source port in a UDP header with the sum s, and
// returns the sum then.
func (e *Endpoint) putSource(udp []byte, k uint8, s Sum) Sum {
	owner := e.localPort - e.firstPort
	if e.firstPort == 0 || owner >= SourceOwners {
		return s
	}
	port := sourcesAt + owner*fabric.SourcePorts + uint16(k)%fabric.SourcePorts
	binary.BigEndian.PutUint16(udp, port)
	return s.AddWord(port).AddWord(^e.localPort)
}
