package launch

import "github.com/xwarp/xwarp/internal/job/boot"

// newSecret returns a secret for the ranks if they are to encrypt what they send. It goes to
// them by way of the agents, and nowhere else.
func (c *Config) newSecret() []byte {
	if !settings(c.lookup).Secure {
		return nil
	}
	return boot.NewSecret()
}

// checkSecure refuses to encrypt what is not encrypted yet.
func (c *Config) checkSecure() error {
	if set := settings(c.lookup); set.Secure && (set.Transport == "rc" || set.Transport == "hybrid") {
		return configErrorf("--secure does not encrypt transport %s yet: use rd or ud", set.Transport)
	}
	return nil
}
