package mpi

// assertions are the hints of communicators that MPI knows (MPI 4.1, section 7.4.4).
// They allow an implementation to do less; this one does not need it, but tells
// what it was told.
var assertions = [...]string{
	"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
	"mpi_assert_strict_persistent_collective_ordering",
}

// SetInfo gives hints (MPI_Comm_set_info). All ranks call it, with the same values
// of mpi_assert_*. Keys that are not known do nothing.
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
	c.hints = hints
	return nil
}

// Info returns the hints that hold (MPI_Comm_get_info). The copy belongs to the
// caller.
func (c *Comm) Info() (*Info, error) {
	if err := c.live("Comm.Info"); err != nil {
		return nil, c.report(err)
	}
	return c.hints.Dup(), nil
}

// DupWithInfo is [Comm.Dup] with hints for the new communicator
// (MPI_Comm_dup_with_info). Dup itself does not copy them.
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	d, err := c.Dup()
	if err != nil {
		return nil, err
	}
	if err := d.hint("Comm.DupWithInfo", info); err != nil {
		return d, c.report(err)
	}
	return d, nil
}
