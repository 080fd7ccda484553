package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// The assertions that are used (MPI 4.1, section 7.4.4).
const (
	assertNoAnyTag    = "mpi_assert_no_any_tag"
	assertNoAnySource = "mpi_assert_no_any_source"
	assertExactLength = "mpi_assert_exact_length"
)

// assertions are the hints of communicators that MPI knows. The first three are
// held against what the program does: a receive that breaks its word fails. Nothing
// becomes faster by them, for a receive with wildcards costs no more than one
// without. The other two give leave for what is not done here: order costs nothing.
var assertions = [...]string{
	assertNoAnyTag, assertNoAnySource, assertExactLength, "mpi_assert_allow_overtaking",
	"mpi_assert_strict_persistent_collective_ordering",
}

// SetInfo gives hints (MPI_Comm_set_info). All ranks call it, with the same values
// of mpi_assert_*, when no receive is under way that breaks them. Keys that are not
// known do nothing.
//
// Receives with AnySource after mpi_assert_no_any_source, and with AnyTag after
// mpi_assert_no_any_tag, fail with classes ErrRank and ErrTag. After
// mpi_assert_exact_length a message that is not as long as the receive buffer is
// received, and the error is of class ErrOther, or ErrTruncate when it is longer.
func (c *Comm) SetInfo(info *Info) error {
	if err := c.live("Comm.SetInfo"); err != nil {
		return c.report(err)
	}
	return c.report(c.hint("Comm.SetInfo", info))
}

func (c *Comm) hint(op string, info *Info) error {
	hints := c.hints.Dup()
	for _, key := range assertions {
		switch value, ok := info.Get(key); {
		case !ok:
		case value != "true" && value != "false":
			return fail(ErrInfoValue, op, "%s is %q; it must be true or false", key, value)
		default:
			if err := hints.Set(key, value); err != nil {
				return err
			}
		}
	}
	if value, ok := info.Get(asyncConfig); ok {
		if _, err := parseAsync(op, value); err != nil {
			return err
		}
		if err := hints.Set(asyncConfig, value); err != nil {
			return err
		}
	}
	c.assume(hints)
	return nil
}

// assume makes the hints hold.
func (c *Comm) assume(hints *Info) {
	says := func(key string) bool {
		value, _ := hints.Get(key)
		return value == "true"
	}
	c.hints = hints
	c.noAny.source, c.noAny.tag, c.exact = says(assertNoAnySource), says(assertNoAnyTag), says(assertExactLength)
}

// exactly refuses a message that was received without an error and is not as long
// as its buffer, whose length is room modulo 4 GiB, if it was to be.
func (c *Comm) exactly(op string, st p2p.Status, room uint32) error {
	if !c.exact || !st.Mark.Got() || uint32(st.Bytes) == room {
		return nil
	}
	return &Error{Class: ErrOther, Op: op, Rank: c.from(st.Source), Detail: fmt.Sprintf(
		"the message has %d bytes and its buffer has not, where %s has said that they are as long", st.Bytes, assertExactLength)}
}

// Info returns the hints that hold (MPI_Comm_get_info), those that the program has not given as
// well, and mpi_memory_alloc_kinds. The copy belongs to the caller.
func (c *Comm) Info() (*Info, error) {
	if err := c.live("Comm.Info"); err != nil {
		return nil, c.report(err)
	}
	info := c.hints.Dup()
	err := info.Set(keyMemory, memoryKinds)
	for _, key := range assertions {
		if _, given := info.Get(key); !given && err == nil {
			err = info.Set(key, "false")
		}
	}
	return info, c.report(err)
}
