// Package record is the target's half of RDMA Write-Record: tagged chunks of
// one message that may arrive in any order, twice or never, and the map of
// which bytes did arrive.
//
// Write-Record follows Grant, Rashti, Afsahi, Balaji, "RDMA Capable iWARP over
// Datagrams" (IPDPS 2011); the wire format is ours (docs/PROTOCOL.md).
package record

import "encoding/binary"

// ChunkLen is the length in bytes of the header in front of a chunk, behind
// the DDP header.
const ChunkLen = 12

// Chunk is that header:
//
//	0..3   message ID: tells the records of one source apart
//	4..7   message length in bytes
//	8..11  offset of this chunk in the message
//
// The tagged offset of the DDP header is the address of this chunk, and L
// marks the chunk that ends the message.
type Chunk struct {
	ID     uint32
	Length uint32
	Offset uint32
}

// Put writes c to the first ChunkLen bytes of b.
func (c *Chunk) Put(b []byte) {
	_ = b[ChunkLen-1]
	binary.BigEndian.PutUint32(b, c.ID)
	binary.BigEndian.PutUint32(b[4:], c.Length)
	binary.BigEndian.PutUint32(b[8:], c.Offset)
}

// Parse reads c from the start of b. ok is false when b is too short.
func (c *Chunk) Parse(b []byte) (ok bool) {
	if len(b) < ChunkLen {
		return false
	}
	c.ID = binary.BigEndian.Uint32(b)
	c.Length = binary.BigEndian.Uint32(b[4:])
	c.Offset = binary.BigEndian.Uint32(b[8:])
	return true
}

// Fits tells whether n bytes of payload at tagged offset to are a chunk of
// such a message: they do not reach past its end, and last is set exactly on
// those that end it. The message then begins at to - c.Offset.
func (c *Chunk) Fits(to uint64, n int, last bool) bool {
	end := uint64(c.Offset) + uint64(n)
	return n >= 0 && end <= uint64(c.Length) && last == (end == uint64(c.Length)) && to >= uint64(c.Offset)
}
