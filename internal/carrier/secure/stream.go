package secure

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// A stream begins with a preamble in each direction, of Preamble and 16 random
// ones. Records follow:
//
//	 0      1        3
//	| kind | length | ciphertext | tag, 16 |
//
// Length is that of the ciphertext. Kind and length are authenticated, too.
const (
	// Preamble is what an end of an encrypted stream says first.
	Preamble = "xws\x01"

	randomLen   = 16
	preambleLen = len(Preamble) + randomLen
	recordLen   = 3       // of the header of a record
	recordMost  = 1 << 14 // plaintext of one
	recordWhole = recordLen + recordMost + TagLen
	sendMost    = 4 * recordWhole // that are made at a time
	recvMost    = 4 * recordWhole

	kindData = 1
	kindEnd  = 2 // nothing follows: without it the stream was cut off
)

// role tells the two directions of a stream apart.
type role byte

const (
	dialer   role = 'd'
	accepter role = 'a'
)

// stream is one end of a connection.
type stream struct {
	fabric.Stream
	s       *Streams
	role    role
	opened  bool // the other end's preamble is there, and so are keys
	closed  bool // by its user: it goes when all was sent
	ended   bool // our end is sent: nothing follows
	eof     bool // the other end's end was received
	err     error
	own     [randomLen]byte
	theirs  [randomLen]byte
	tx, rx  direction
	pending []byte // to send, encrypted
	in      []byte // received, not looked at; nil when there is nothing
	plain   []byte // the part of in that was decrypted, and not taken
	at      int    // of in is done with
	one     [1][]byte
}

// direction is the key of one direction.
type direction struct {
	role  role   // of the sender
	next  uint64 // number of the next record
	until uint64 // the first that aead is not for
	aead  cipher.AEAD
	nonce [nonceLen]byte
}

// step prepares for the next record.
func (d *direction) step(x *stream) {
	if d.next == d.until {
		dialed, accepted := &x.own, &x.theirs
		if x.role == accepter {
			dialed, accepted = accepted, dialed
		}
		generation := d.next >> x.s.bits
		d.aead = x.s.keys.streamAEAD(d.role, dialed, accepted, generation)
		d.until = (generation + 1) << x.s.bits
	}
	binary.BigEndian.PutUint64(d.nonce[4:], d.next)
	d.next++
}

// draw makes the keys of the connection new, and the preamble pending.
func (x *stream) draw() {
	_, _ = rand.Read(x.own[:]) // never fails
	x.pending = append(append(x.pending, Preamble...), x.own[:]...)
	x.tx.role, x.rx.role = x.role, dialer+accepter-x.role
}

// moved goes on after something has happened to the stream below.
func (x *stream) moved() {
	x.push()
	if !x.opened && x.err == nil && x.Stream.State() == fabric.StreamOpen {
		x.meet()
	}
	if !x.closed {
		return
	}
	// Reading finds a reset as well, without which what is pending might wait for room for ever.
	if abort := x.unread(); abort || len(x.pending) == 0 || x.State() == fabric.StreamFailed {
		x.leave(abort)
	}
}

// push sends what is pending.
func (x *stream) push() {
	if len(x.pending) > 0 && x.Stream.State() == fabric.StreamOpen {
		x.one[0] = x.pending
		n := x.Stream.Send(x.one[:])
		x.pending = x.pending[:copy(x.pending, x.pending[n:])]
	}
}

// meet reads the other end's preamble.
func (x *stream) meet() {
	for len(x.in) < preambleLen && x.fill() { // until there is no more: there is no further event for the stream
	}
	if len(x.in) < preambleLen {
		if n := min(len(x.in), len(Preamble)); string(x.in[:n]) != Preamble[:n] {
			x.refuse(ErrNotSecure)
		}
		return
	}
	x.know(x.in[:preambleLen])
	x.at = preambleLen
}

// know takes the other end's preamble.
func (x *stream) know(b []byte) {
	if string(b[:len(Preamble)]) != Preamble {
		x.refuse(ErrNotSecure)
		return
	}
	copy(x.theirs[:], b[len(Preamble):])
	x.opened = true
}

// refuse ends the stream for what was received, which is counted.
func (x *stream) refuse(err error) {
	x.err = err
	x.s.forged++
}

// fill receives what there is room for, and returns whether that was anything.
func (x *stream) fill() bool {
	if x.in == nil {
		x.in, x.at = x.s.buffer(), 0
	}
	if x.at > 0 {
		x.in, x.at = x.in[:copy(x.in, x.in[x.at:])], 0
	}
	n, eof := x.Stream.Recv(x.in[len(x.in):cap(x.in)])
	x.in = x.in[:len(x.in)+n]
	if eof && n == 0 && !x.eof && !x.whole() {
		x.err = ErrCutOff
		if !x.opened {
			x.err = ErrNotSecure
		}
	}
	return n > 0
}

// whole reports whether a record is there.
func (x *stream) whole() bool {
	in := x.in[x.at:]
	return len(in) >= recordLen && len(in) >= recordLen+int(binary.BigEndian.Uint16(in[1:]))+TagLen
}

// State says that a stream is open when both ends can send.
func (x *stream) State() fabric.StreamState {
	state := x.Stream.State()
	switch {
	case x.err != nil:
		return fabric.StreamFailed
	case state == fabric.StreamOpen && !x.opened && x.role == dialer:
		return fabric.StreamConnecting
	}
	return state
}

// Err tells why the stream has failed.
func (x *stream) Err() error {
	if x.err != nil {
		return x.err
	}
	return x.Stream.Err()
}

// MSS returns what a record in one segment carries.
func (x *stream) MSS() int {
	if n := x.Stream.MSS(); n > recordLen+TagLen {
		return n - recordLen - TagLen
	}
	return 0
}

// Recv decrypts what has arrived.
func (x *stream) Recv(dst []byte) (n int, eof bool) {
	x.moved()
	for n < len(dst) && x.State() == fabric.StreamOpen && x.opened {
		if len(x.plain) > 0 {
			k := copy(dst[n:], x.plain)
			x.plain = x.plain[k:]
			n += k
			x.s.taken += uint64(k)
			continue
		}
		if x.eof || !x.whole() && !x.fill() {
			break
		}
		if x.whole() {
			x.record()
		}
	}
	if x.in != nil && len(x.plain) == 0 && x.at == len(x.in) {
		x.s.spare = append(x.s.spare, x.in[:0])
		x.in, x.plain, x.at = nil, nil, 0
	}
	return n, n == 0 && x.eof && len(x.plain) == 0 && x.State() == fabric.StreamOpen
}

// record decrypts the record that is there, where it lies.
func (x *stream) record() {
	in := x.in[x.at:]
	length := int(binary.BigEndian.Uint16(in[1:]))
	end := recordLen + length + TagLen
	x.rx.step(x)
	plain, err := x.rx.aead.Open(in[recordLen:recordLen], x.rx.nonce[:], in[recordLen:end], in[:recordLen])
	if err != nil || length > recordMost {
		x.refuse(ErrForged)
		return
	}
	x.at += end
	switch kind := in[0]; {
	case kind == kindData && !x.eof:
		x.plain = plain
	case kind == kindEnd && length == 0:
		x.eof = true
	default:
		x.refuse(ErrForged)
	}
}

// Send encrypts bytes from the front of the buffers, and returns how many.
func (x *stream) Send(bufs [][]byte) (taken int) {
	x.moved()
	off := 0
	for x.opened && !x.ended && x.State() == fabric.StreamOpen && len(x.pending) == 0 && len(bufs) > 0 {
		out := x.s.out[:0]
		for len(bufs) > 0 && len(out)+recordWhole <= cap(out) {
			first := len(out)
			out = out[:first+recordLen]
			for len(bufs) > 0 && len(out) < first+recordLen+recordMost {
				part := bufs[0][off:]
				part = part[:min(len(part), first+recordLen+recordMost-len(out))]
				out = append(out, part...)
				if off += len(part); off == len(bufs[0]) {
					bufs, off = bufs[1:], 0
				}
			}
			n := len(out) - first - recordLen
			if n == 0 {
				out = out[:first]
				break
			}
			taken += n
			out = x.seal(kindData, out, first)
		}
		x.post(out)
	}
	x.s.given += uint64(taken)
	return taken
}

// seal makes a record of the bytes of out from first on, of which the header is not there yet.
func (x *stream) seal(kind byte, out []byte, first int) []byte {
	header := out[first : first+recordLen]
	header[0] = kind
	binary.BigEndian.PutUint16(header[1:], uint16(len(out)-first-recordLen))
	x.tx.step(x)
	plain := out[first+recordLen:]
	return out[:first+recordLen+len(x.tx.aead.Seal(plain[:0], x.tx.nonce[:], plain, header))]
}

// post sends records, and keeps what finds no room.
func (x *stream) post(out []byte) {
	if len(x.pending) > 0 {
		x.pending = append(x.pending, out...)
		return
	}
	x.one[0] = out
	n := x.Stream.Send(x.one[:])
	x.pending = append(x.pending, out[n:]...)
}

// end sends the record that ends our direction, behind what was taken.
func (x *stream) end() {
	if x.opened && !x.ended && x.State() == fabric.StreamOpen {
		x.post(x.seal(kindEnd, x.s.out[:recordLen], 0))
	}
	x.ended = true
}

// CloseWrite ends our direction.
func (x *stream) CloseWrite() {
	x.moved()
	x.end()
}

// Close gives the stream back.
func (x *stream) Close(abort bool) {
	x.moved()
	if abort = abort || x.unread(); !abort {
		x.end()
	}
	if len(x.pending) > 0 && !abort && x.State() == fabric.StreamOpen {
		x.closed = true // the rest goes out by itself
		return
	}
	x.leave(abort)
}

// unread reports whether bytes have arrived that were not taken, or something is wrong: then
// the other end is to see a reset. The record that ends its direction is none of them.
func (x *stream) unread() bool {
	for x.opened && len(x.plain) == 0 && x.State() == fabric.StreamOpen && (x.whole() || x.fill()) {
		if x.whole() {
			x.record()
		}
	}
	return x.err != nil || len(x.plain) > 0 || x.opened && len(x.in) > x.at && x.in[x.at] != kindEnd
}

// leave gives the stream below back.
func (x *stream) leave(abort bool) {
	x.s.all[x.ID()] = nil
	if x.in != nil {
		x.s.spare = append(x.s.spare, x.in[:0])
		x.in, x.plain = nil, nil
	}
	x.Stream.Close(abort)
}
