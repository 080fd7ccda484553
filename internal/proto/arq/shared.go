package arq

import "fmt"

// Shared is what all peers of one endpoint have in common: the configuration,
// and the memory that only those need which have something in flight. An idle
// peer holds none of it.
//
// Owner: engine, like the Senders and Receivers that use it.
type Shared struct {
	cfg   Config
	rings [][]Unit   // free; each as long as the window
	bits  [][]uint64 // free and all 0; one bit for each unit of the window
}

// NewShared returns what the peers of an endpoint share. depth is how many
// datagrams of one peer may wait at its receiver; see Config.WithDefaults.
func NewShared(c Config, depth int) *Shared {
	c = c.WithDefaults(depth)
	if c.Window > WindowMax || c.Window&(c.Window-1) != 0 || c.Window <= 0 {
		panic(fmt.Sprintf("arq: window %d is not a power of two up to %d", c.Window, WindowMax))
	}
	return &Shared{cfg: c}
}

// Config returns the configuration with its defaults filled in.
func (sh *Shared) Config() *Config { return &sh.cfg }

func (sh *Shared) takeRing() []Unit {
	if n := len(sh.rings); n > 0 {
		r := sh.rings[n-1]
		sh.rings = sh.rings[:n-1]
		return r
	}
	return make([]Unit, sh.cfg.Window)
}

// kept is how many rings wait to be used again. What more peers than that had
// in flight at a time is given back to the system.
const kept = 64

func (sh *Shared) giveRing(r []Unit) {
	if len(sh.rings) < kept {
		sh.rings = append(sh.rings, r)
	}
}

func (sh *Shared) takeBits() []uint64 {
	if n := len(sh.bits); n > 0 {
		b := sh.bits[n-1]
		sh.bits = sh.bits[:n-1]
		return b
	}
	return make([]uint64, (sh.cfg.Window+63)/64)
}

// giveBits takes back a ring of bits, which must all be 0.
func (sh *Shared) giveBits(b []uint64) {
	if len(sh.bits) < kept {
		sh.bits = append(sh.bits, b)
	}
}
