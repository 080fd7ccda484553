package bench

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/carrier/secure"
	"github.com/xwarp/xwarp/internal/job/boot"
)

// KeyLen is the length in bytes of the key of a control connection.
const KeyLen = secure.SecretLen

// errKeyMissing is what an end without a key says of one that has it.
var errKeyMissing = errors.New("the other end encrypts it: give both ends the same --secure-key")

// protect makes a control connection one that is encrypted and authenticated, if there is a
// key, which the other end must have, too. It closes conn after an error, or if the other end
// does not answer within timeout.
func protect(conn net.Conn, key []byte, dialed bool, timeout time.Duration) (net.Conn, error) {
	if key == nil {
		return conn, nil
	}
	late := time.AfterFunc(timeout, func() { conn.Close() })
	c, err := secure.NewConn(conn, key, dialed)
	if !late.Stop() && err != nil {
		err = fmt.Errorf("it does not answer within %v: is that an xperf server?", timeout)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("control connection to %s: %w; give both ends the same --secure-key", conn.RemoteAddr(), err)
	}
	return c, nil
}

// keyHow says how to make the file of a key.
const keyHow = "make one with (umask 077; openssl rand -hex 32 > FILE), and take it to both hosts"

// CheckKey refuses a test with encryption whose control connection would be in clear. Its
// error wraps ErrUsage.
func CheckKey(s Spec, key []byte) error {
	if s.Secure && key == nil {
		return usagef("--secure needs a key that both ends have, or --testbed: --secure-key FILE; %s", keyHow)
	}
	return nil
}

// ReadKey reads a key from a file that others cannot read: 64 hexadecimal digits. Its errors
// wrap ErrUsage.
func ReadKey(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("--secure-key: %v: %s", err, keyHow)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Mode().Perm()&0o077 != 0 {
		return nil, usagef("--secure-key: others may read or change %s: chmod 600 it", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*KeyLen))
	if err != nil {
		return nil, usagef("--secure-key: %v", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeyLen {
		return nil, usagef("--secure-key: %s does not hold %d hexadecimal digits: %s", name, 2*KeyLen, keyHow)
	}
	return key, nil
}

// newPrivate draws what one end of a test agrees on a secret with.
func newPrivate() *ecdh.PrivateKey {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // never, crypto/rand says
	}
	return k
}

// agreeOn returns the secret of a test with encryption (X25519, RFC 7748). The control
// connection that it goes over is authenticated, so no host is in between; and a host that gets hold
// of the key of that later does not learn what was measured with.
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
