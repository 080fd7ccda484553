package mpi

import (
	"github.com/xwarp/xwarp/internal/job/boot"
)

// secretOf returns the secret that a rank encrypts with, or nil. Where the launcher has drawn
// one all ranks have it, whatever their environment says, so they cannot disagree.
func secretOf(job boot.Job, cfg Config) ([]byte, error) {
	secret := cfg.secret
	if c, ok := job.(boot.Confidential); ok {
		secret = c.Secret()
	}
	if secret == nil && cfg.Secure && job.Size() > 1 {
		return nil, fail(ErrArg, "Init", "%s asks for encryption, and no launcher has given the ranks a secret: start them with xrun --secure", EnvSecure)
	}
	return secret, nil
}
