package bench

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// newPrivate draws what one end of a test agrees on a secret with.
func newPrivate() *ecdh.PrivateKey {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // never, crypto/rand says
	}
	return k
}

// agreeOn returns the secret of a test with encryption (X25519, RFC 7748). Whoever reads the
// control connection does not learn it. Nobody proves who he is, so whoever can change what
// goes over it can be in between: this is for measuring.
func agreeOn(own *ecdh.PrivateKey, theirs []byte) ([]byte, error) {
	public, err := ecdh.X25519().NewPublicKey(theirs)
	if err != nil {
		return nil, fmt.Errorf("the other end does not agree on a secret: %w", err)
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("the other end does not agree on a secret: %w", err)
	}
	return hkdf.Key(sha256.New, shared, nil, "xperf secret", boot.SecretLen)
}
