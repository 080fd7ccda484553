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

// encrypted says so, for people.
func (c *Config) encrypted() string {
	if !settings(c.lookup).Secure {
		return ""
	}
	return ", encrypted"
}
