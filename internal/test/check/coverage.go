package check

import (
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// Coverage counts what runs have reached, by name: a checker that meets nothing
// finds nothing.
type Coverage map[string]int

// Add adds what another run has reached.
func (c Coverage) Add(other Coverage) {
	for name, n := range other {
		c[name] += n
	}
}

// Missing returns what no run has reached and should have, given enough seeds.
func (c Coverage) Missing() (names []string) {
	for _, code := range []verbs.Opcode{
		verbs.OpSend, verbs.OpSendWithInv, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpRDMARead,
		verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicSwap, verbs.OpRDMAWriteRecord,
	} {
		for _, end := range []string{succeeded, failed, refused} {
			if code != verbs.OpSend || end != refused {
				names = append(names, code.String()+end)
			}
		}
	}
	names = append(names,
		verbs.OpBindMW.String()+succeeded, verbs.OpLocalInv.String()+succeeded,
		"UD "+verbs.OpSend.String()+succeeded, "UD "+verbs.OpRDMAWriteRecord.String()+succeeded,
		"unsignalled", "fenced", "datagram lost", "datagram doubled", "datagram to a group", "completion event", "key ended meanwhile",
		"association replaced", "life ended", "record whole", "record in part",
	)
	return slices.DeleteFunc(names, func(name string) bool { return c[name] > 0 })
}

const (
	succeeded = " succeeded"
	failed    = " failed"
	refused   = " refused"
)

// cover counts what the run has reached.
func (m *Model) cover() Coverage {
	c := m.reached
	for _, o := range m.ops {
		name := o.Code.String()
		if o.ToQP != 0 {
			name = "UD " + name
		}
		switch {
		case o.Wrong != "":
			name += refused
		case o.ok:
			name += succeeded
		default:
			name += failed
		}
		c[name]++
		c.when(!o.Signaled, "unsignalled")
		c.when(o.Fence, "fenced")
		c.when(o.ToQP != 0 && o.Code == verbs.OpSend && len(o.copies) == 0, "datagram lost")
		c.when(len(o.copies) > 1, "datagram to a group")
		for _, n := range o.copies {
			c.when(n > 1, "datagram doubled")
		}
		c.when(!o.ok && o.verdict(m.now()) == may, "key ended meanwhile")
	}
	for _, streams := range m.streams {
		c.when(len(streams) > 1, "association replaced")
	}
	return c
}

func (c Coverage) when(happened bool, name string) {
	if happened {
		c[name]++
	}
}
