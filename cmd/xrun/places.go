package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/job/launch"
)

// mapNames are what peers call places, where that is not our name.
var mapNames = map[string]launch.MapBy{"host": launch.MapNode, "package": launch.MapSocket, "hwthread": launch.MapCore}

// setMap reads --map-by as mpiexec of Open MPI has it: WHAT, or ppr:N:node for N ranks
// per host, and modifiers behind further colons.
func setMap(c *launch.Config, s string) error {
	what, rest, _ := strings.Cut(s, ":")
	if what == "ppr" {
		number, more, _ := strings.Cut(rest, ":")
		var object string
		object, rest, _ = strings.Cut(more, ":")
		if err := positive(&c.PerHost)(number); err != nil || object != "node" && object != "host" {
			return errors.New("want ppr:N:node, N ranks on each host, with N above 0")
		}
		what = string(launch.MapSlot)
	}
	if c.Map = mapNames[what]; c.Map == "" {
		c.Map = launch.MapBy(what)
	}
	if what == "" {
		return errors.New("it is empty")
	}
	if what == "hwthread" && c.Bind == launch.BindAuto {
		c.Bind = launch.BindThread
	}
	for modifier := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' || r == ',' }) {
		name, value, _ := strings.Cut(strings.ToLower(modifier), "=")
		switch name {
		case "pe":
			if err := positive(&c.Cores)(value); err != nil {
				return fmt.Errorf("%s: %w", modifier, err)
			}
			if c.Bind == launch.BindAuto {
				c.Bind = launch.BindCore
			}
		case "oversubscribe":
			c.Oversubscribe = true
		case "nooversubscribe":
			c.Oversubscribe = false
		default:
			return fmt.Errorf("unknown modifier %q: want pe=N (cores for each rank) or oversubscribe", modifier)
		}
	}
	return nil
}

// setBind reads --bind-to.
func setBind(c *launch.Config, s string) error {
	b, err := launch.ParseBinding(s)
	c.Bind, c.Places = b.To, b.Places
	if b.Cores > 0 {
		c.Cores = b.Cores
	}
	return err
}

// setStdin says which ranks read the standard input.
func setStdin(c *launch.Config, s string) error {
	switch s {
	case "none":
		c.StdinTo = launch.StdinNone
		return nil
	case "all":
		c.StdinTo = launch.StdinAll
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return errors.New("want the number of a rank, all or none")
	}
	c.StdinTo = int(n)
	return nil
}
