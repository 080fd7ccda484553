package rping

import "encoding/binary"

// InfoLen is the length of an Info in bytes.
const InfoLen = 16

// Info says where memory of the client is. It is what all Sends of the client
// hold; a server's Sends are as long, and their contents are not used.
//
//	 0               8       12      16
//	+---------------+-------+-------+
//	| address       | key   | size  |   big-endian
//	+---------------+-------+-------+
type Info struct {
	Addr uint64
	RKey uint32
	Size uint32 // bytes
}

// Put writes i to the first InfoLen bytes of b.
func (i *Info) Put(b []byte) {
	binary.BigEndian.PutUint64(b, i.Addr)
	binary.BigEndian.PutUint32(b[8:], i.RKey)
	binary.BigEndian.PutUint32(b[12:], i.Size)
}

// Parse reads a message that came in. It returns false when that has not the
// length of an Info, which is what rping checks.
func (i *Info) Parse(b []byte) bool {
	if len(b) != InfoLen {
		return false
	}
	i.Addr = binary.BigEndian.Uint64(b)
	i.RKey = binary.BigEndian.Uint32(b[8:])
	i.Size = binary.BigEndian.Uint32(b[12:])
	return true
}
