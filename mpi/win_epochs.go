package mpi

import "strings"

// Which kinds of epochs a window will have its program may say when it makes it (Si, Peña,
// Hammond, Balaji, Takagi, Ishikawa: Casper, IPDPS 2015). Where no rank locks another one by
// itself, nothing is in the way of locks of all: LockAll then asks no rank, and there is no
// memory for locks.

// The hints.
const (
	epochsUsed  = "epochs_used"         // a list of epochNames
	noLocks     = "no_locks"            // neither lock nor lockall is among them
	noLoadStore = "no_local_load_store" // the program touches its memory by operations only
)

// epochNames are the kinds, in the order of the bits of an epochSet.
const epochNames = "fence,pscw,lock,lockall"

// epochSet are kinds of epochs.
type epochSet uint8

// The kinds.
const (
	epochFence epochSet = 1 << iota
	epochPSCW
	epochLock
	epochLockAll
)

// epochs are the kinds that a window may have: when it was made, and now.
type epochs struct{ made, used epochSet }

// take takes what hints say; first: the window is being made.
func (e *epochs) take(op string, hints *Info, first bool) error {
	value, _ := hints.Get(epochsUsed)
	var used epochSet
	for name := range strings.SplitSeq(value, ",") {
		kind := epochSet(1)
		for known := range strings.SplitSeq(epochNames, ",") {
			if known == strings.TrimSpace(name) {
				break
			}
			kind <<= 1
		}
		if kind > epochLockAll {
			return fail(ErrInfoValue, op, "%s is %q; it must be a list of %s", epochsUsed, value, epochNames)
		}
		used |= kind
	}
	if value, _ := hints.Get(noLocks); value == "true" {
		used &^= epochLock | epochLockAll
	}
	if first {
		e.made = used
	}
	if e.used = used & e.made; e.used&(epochLock|epochLockAll) == 0 {
		return hints.Set(noLocks, "true")
	}
	return nil
}

// What ranks tell each other of a window that they make, to be joined by or.
const (
	winLacks    int64 = 1 << iota // there is no memory for it
	winApart                      // its memory may lie apart from that of others
	winLocked                     // ranks may be locked one by one
	winOverlaps                   // it is made of overlapping windows
	winWords                      // its memory begins at a multiple of 8
	winSegments                   // its ghosts are bound by segment
)

// declares is what this rank has to say of that for its program.
func (e *epochs) declares() int64 {
	if e.made&epochLock != 0 {
		return winLocked
	}
	return 0
}
