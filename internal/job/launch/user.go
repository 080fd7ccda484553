package launch

import (
	"fmt"
	osuser "os/user"
	"strconv"
	"syscall"
)

// credentials returns the credentials of a process that runs as a user, given by name or
// number.
func credentials(name string) (*syscall.Credential, error) {
	u, err := osuser.Lookup(name)
	if err != nil {
		u, err = osuser.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("no user %q on this host", name)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", name, err)
	}
	c := &syscall.Credential{}
	for _, n := range append([]string{u.Uid, u.Gid}, groups...) {
		id, err := strconv.ParseUint(n, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s has number %q: %w", name, n, err)
		}
		c.Groups = append(c.Groups, uint32(id))
	}
	c.Uid, c.Gid, c.Groups = c.Groups[0], c.Groups[1], c.Groups[2:]
	return c, nil
}
