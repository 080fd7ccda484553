package p2p

import (
	"errors"
	"fmt"
	"strings"
)

// Transport is what carries messages between hosts.
type Transport uint8

// The transports.
const (
	RD     Transport = iota // one queue pair of reliable datagrams
	RC                      // a connection to each peer, made on first use
	UD                      // unreliable datagrams, and reliability of our own
	Hybrid                  // RD, and a connection to those peers that much is sent to
)

var transportNames = [...]string{RD: "rd", RC: "rc", UD: "ud", Hybrid: "hybrid"}

func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return fmt.Sprintf("Transport(%d)", uint8(t))
}

// ErrTransport is wrapped when a name is not that of a transport.
var ErrTransport = errors.New("unknown transport")

// ParseTransport is the inverse of String.
func ParseTransport(s string) (Transport, error) {
	for i, name := range transportNames {
		if s == name {
			return Transport(i), nil
		}
	}
	return RD, fmt.Errorf("%w %.32q: use one of %s", ErrTransport, s, strings.Join(transportNames[:], ", "))
}
