package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// SecretLen is the length in bytes of a secret.
const SecretLen = 32

const (
	keyLen   = 16
	nonceLen = 12
)

// Labels of the derivation of keys (RFC 5869). Another version of the format has others.
const (
	salt  = "xwarp secure datagrams"
	label = "xwarp datagram key 1"
)

// schedule derives keys from the secret of a job.
type schedule struct{ prk []byte }

func newSchedule(secret []byte) (schedule, error) {
	if len(secret) != SecretLen {
		return schedule{}, fmt.Errorf("secure: the secret has %d bytes: want %d", len(secret), SecretLen)
	}
	prk, err := hkdf.Extract(sha256.New, secret, []byte(salt))
	if err != nil {
		err = fmt.Errorf("secure: %w", err)
	}
	return schedule{prk}, err
}

// aead returns the cipher of the datagrams of one direction: from the instance that h names,
// at the address src, to dst, and of one generation. A datagram to a multicast group has no dst.
func (s schedule) aead(h *header, src, dst fabric.Remote, generation uint64) cipher.AEAD {
	info := make([]byte, 0, 96)
	info = append(info, label...)
	info = binary.BigEndian.AppendUint32(info, h.who)
	info = binary.BigEndian.AppendUint64(info, h.instead)
	if h.flags&flagGroup != 0 {
		dst = fabric.Remote{}
	}
	info = appendRemote(appendRemote(info, src), dst)
	info = binary.BigEndian.AppendUint64(info, generation)
	key, err := hkdf.Expand(sha256.New, s.prk, string(info), keyLen)
	if err != nil {
		panic("secure: " + err.Error()) // only for keys that are too long
	}
	return newAEAD(key)
}

// newAEAD returns AES-GCM with nonces of 12 bytes and tags of 16.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("secure: " + err.Error()) // only for keys of another length
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		panic("secure: " + err.Error()) // AES has blocks of 16 bytes
	}
	return c
}

// appendRemote appends 18 bytes: the address, of IPv4 mapped to IPv6, and the port. Those
// of the zero Remote are zeros.
func appendRemote(b []byte, r fabric.Remote) []byte {
	var ip [16]byte
	if r != (fabric.Remote{}) {
		ip = r.AddrPort().Addr().As16()
	}
	return binary.BigEndian.AppendUint16(append(b, ip[:]...), r.Port())
}

const streamLabel = "xwarp stream key 1"

// streamAEAD returns the cipher of one direction of a stream and of one generation. Both ends
// have drawn something for the stream, so no key comes twice, whatever is played again.
func (s schedule) streamAEAD(sender role, dialed, accepted *[randomLen]byte, generation uint64) cipher.AEAD {
	info := append([]byte(streamLabel), byte(sender))
	info = append(append(info, dialed[:]...), accepted[:]...)
	info = binary.BigEndian.AppendUint64(info, generation)
	key, err := hkdf.Expand(sha256.New, s.prk, string(info), keyLen)
	if err != nil {
		panic("secure: " + err.Error()) // only for keys that are too long
	}
	return newAEAD(key)
}
