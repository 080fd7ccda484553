package rping

import (
	"bytes"
	"fmt"
)

// The letters behind the number of a ping go from 'A' to 'z' and begin anew;
// each ping starts one further than the one before.
const (
	firstLetter = 'A'
	lastLetter  = 'z'
	letters     = lastLetter - firstLetter + 1
)

// Fill makes b, of at least MinSize bytes, the text of a ping, counted from 0,
// with a zero at its end, byte for byte as rping does.
func Fill(b []byte, ping int) {
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", ping))
	c := byte(firstLetter + ping%letters)
	for i := n; i < len(b); i++ {
		b[i] = c
		if c++; c > lastLetter {
			c = firstLetter
		}
	}
	b[len(b)-1] = 0
}

// text returns what is before the zero in b, or all of b when there is none.
func text(b []byte) []byte {
	before, _, _ := bytes.Cut(b, []byte{0})
	return before
}

// mismatch says where two buffers of one length differ.
func mismatch(sent, got []byte, ping int) error {
	for i := range sent {
		if sent[i] != got[i] {
			return fmt.Errorf("%w: ping %d, byte %d is %#02x, %#02x was sent", ErrMismatch, ping, i, got[i], sent[i])
		}
	}
	return nil
}
