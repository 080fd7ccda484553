package device

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/secure"
)

// checkSecret refuses a secret that may be a mistake.
func (s *Spec) checkSecret() error {
	if n := len(s.Secret); s.Secret != nil && n != secure.SecretLen {
		return fmt.Errorf("device: the secret has %d bytes: draw %d random ones", n, secure.SecretLen)
	}
	return nil
}

// withSecret encrypts what a carrier carries, if there is a secret. After an error the
// carrier is closed.
func (s *Spec) withSecret(dg fabric.Datagram) (fabric.Datagram, error) {
	if s.Secret == nil || s.Fabric == "shm" {
		return dg, nil
	}
	e, err := secure.New(dg, secure.Config{Secret: s.Secret})
	if err != nil {
		return nil, errors.Join(err, dg.Close())
	}
	return e, nil
}

// streamsWithSecret is withSecret for streams, if there are any.
func (s *Spec) streamsWithSecret(inner fabric.Streams) (fabric.Streams, error) {
	if s.Secret == nil || inner == nil {
		return inner, nil
	}
	e, err := secure.NewStreams(inner, secure.Config{Secret: s.Secret})
	if err != nil {
		return inner, err
	}
	return e, nil
}
