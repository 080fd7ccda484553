package p2p

import (
	"encoding/binary"
	"fmt"
)

// handshake is the private data with which ranks connect, and accept: which rank
// its sender is, and which one it expects at the other end. Ports are used again,
// so that the port of a rank may have become that of another job.
//
//	 0               4       6       8                               16
//	+---------------+-------+-------+-------------------------------+
//	| "xwMP"        |version|verdict| job key                       |
//	+---------------+-------+-------+-------------------------------+
//	| sender's rank | other's rank  |
//	+---------------+---------------+
//	16              20              24
type handshake struct {
	verdict  verdict
	key      uint64
	from, to int32
}

const (
	handshakeMagic = 0x78774d50
	handshakeLen   = 24
)

// verdict is what a rank says to a connection.
type verdict uint16

const (
	accepted     verdict = iota
	simultaneous         // the one that refuses is connecting at the same time, and its connection counts
	stranger             // it is of another job, or another version, or for another rank
	lostHere             // the one that asks is lost, as far as the other one knows, or is connected already
	full                 // there are as many connections as there may be
	verdictEnd
)

var verdictNames = [verdictEnd]string{"accepted", "both connect at the same time", "it belongs to somebody else", "it believes this rank to be lost", "it has no room for more connections"}

func (v verdict) String() string {
	if v < verdictEnd {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint16(v))
}

// put returns the bytes of a handshake.
func (g *handshake) put() []byte {
	b := make([]byte, handshakeLen)
	binary.BigEndian.PutUint32(b, handshakeMagic)
	binary.BigEndian.PutUint16(b[4:], Version)
	binary.BigEndian.PutUint16(b[6:], uint16(g.verdict))
	binary.BigEndian.PutUint64(b[8:], g.key)
	binary.BigEndian.PutUint32(b[16:], uint32(g.from))
	binary.BigEndian.PutUint32(b[20:], uint32(g.to))
	return b
}

// parse reads a handshake. false means that it is none of this version.
func (g *handshake) parse(b []byte) bool {
	if len(b) != handshakeLen || binary.BigEndian.Uint32(b) != handshakeMagic || binary.BigEndian.Uint16(b[4:]) != Version {
		return false
	}
	g.verdict = verdict(binary.BigEndian.Uint16(b[6:]))
	g.key = binary.BigEndian.Uint64(b[8:])
	g.from, g.to = int32(binary.BigEndian.Uint32(b[16:])), int32(binary.BigEndian.Uint32(b[20:]))
	return g.verdict < verdictEnd
}
