package p2p

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Transport is what carries messages between hosts.
type Transport uint8

// The transports, in the order of config.Transports.
const (
	RD     Transport = iota // one queue pair of reliable datagrams
	RC                      // a connection to each peer, made on first use
	UD                      // unreliable datagrams, and reliability of our own
	Hybrid                  // RD, and connections beside it for large data
)

func (t Transport) String() string { return config.Transports.Name(uint8(t), "Transport") }

// ErrTransport is wrapped when a name is not that of a transport.
var ErrTransport = errors.New("unknown transport")

// ParseTransport is the inverse of String.
func ParseTransport(s string) (Transport, error) {
	if i := config.Transports.Index(s); i >= 0 {
		return Transport(i), nil
	}
	return RD, fmt.Errorf("%w %.32q: want %v", ErrTransport, s, config.Transports)
}
