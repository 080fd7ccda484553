package mpa

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// From siw: its Terminate for a CRC that was wrong, with a right one.
func TestTrailer_siw(t *testing.T) {
	want, _ := hex.DecodeString("00164147000000000000000200000001000000000202000075d367ed")
	body := want[:len(want)-CRCLen]
	tx := Tx{CRC: true}
	var b [TrailerMax]byte
	if n := tx.Trailer(b[:], body[:2], body[2:7], nil, body[7:]); n != CRCLen || !bytes.Equal(b[:n], want[len(body):]) {
		t.Errorf("% x, want % x", b[:n], want[len(body):])
	}
}
