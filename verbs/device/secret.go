package device

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/secure"
)

// ErrNotSecure is wrapped when Spec.Secret is set, and something else would go over the
// network in clear.
var ErrNotSecure = errors.New("nothing encrypts that yet")

// checkSecret refuses what a secret does not protect.
func (s *Spec) checkSecret() error {
	switch {
	case s.Secret == nil:
		return nil
	case len(s.Secret) != secure.SecretLen:
		return fmt.Errorf("device: the secret has %d bytes: draw %d random ones", len(s.Secret), secure.SecretLen)
	case s.Fabric == "tcp" || s.RC:
		return fmt.Errorf("device: connections (RC) with a secret: %w: use datagrams (RD or UD) over xdp or udp", ErrNotSecure)
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
