package mpi

import "slices"

// Keyval is a key of attributes (MPI_Comm_create_keyval). Values are whatever
// the program wants to find again at a communicator.
type Keyval struct {
	// Copy decides what a duplicate of the communicator gets; ok == false:
	// nothing. Nil: nothing (MPI_COMM_NULL_COPY_FN). See CopyAttr.
	Copy func(old *Comm, value any) (copied any, ok bool)
	// Delete is called when the attribute goes: because it is deleted, or
	// overwritten, or the communicator is freed. Nil does nothing.
	Delete func(c *Comm, value any) error
}

// CopyAttr is a Keyval.Copy that gives the duplicate the same value
// (MPI_COMM_DUP_FN).
func CopyAttr(_ *Comm, value any) (any, bool) { return value, true }

// attributes are few: a list in the order in which they were set.
type attributes []attribute

type attribute struct {
	key   *Keyval
	value any
}

func (a attributes) find(k *Keyval) int {
	for i := range a {
		if a[i].key == k {
			return i
		}
	}
	return -1
}

// SetAttr sets an attribute (MPI_Comm_set_attr).
func (c *Comm) SetAttr(k *Keyval, value any) error {
	err := c.live("Comm.SetAttr")
	if err == nil && k == nil {
		err = fail(ErrKeyval, "Comm.SetAttr", "the key is nil")
	}
	if err != nil {
		return c.report(err)
	}
	if old, ok := c.Attr(k); ok && k.Delete != nil {
		if err := k.Delete(c, old); err != nil {
			return c.report(wrapOther("Comm.SetAttr", err))
		}
	}
	c.ep.Enter()
	if i := c.attrs.find(k); i >= 0 {
		c.attrs[i].value = value
	} else {
		c.attrs = append(c.attrs, attribute{k, value})
	}
	c.ep.Leave()
	return nil
}

// Attr returns an attribute (MPI_Comm_get_attr).
func (c *Comm) Attr(k *Keyval) (value any, ok bool) {
	c.ep.Enter()
	defer c.ep.Leave()
	if i := c.attrs.find(k); i >= 0 {
		return c.attrs[i].value, true
	}
	return nil, false
}

// DeleteAttr removes an attribute (MPI_Comm_delete_attr).
func (c *Comm) DeleteAttr(k *Keyval) error {
	value, ok := c.Attr(k)
	if !ok {
		return c.report(fail(ErrKeyval, "Comm.DeleteAttr", "the communicator has no such attribute"))
	}
	return c.report(c.deleteAttr(attribute{k, value}))
}

// deleteAttr deletes an attribute. What the program wants to be called then is
// called outside of the endpoint, for it may call this package.
func (c *Comm) deleteAttr(a attribute) error {
	if a.key.Delete != nil {
		if err := a.key.Delete(c, a.value); err != nil {
			return wrapOther("Comm.DeleteAttr", err)
		}
	}
	c.ep.Enter()
	if i := c.attrs.find(a.key); i >= 0 {
		c.attrs = slices.Delete(c.attrs, i, i+1)
	}
	c.ep.Leave()
	return nil
}

// allAttrs returns the attributes of now.
func (c *Comm) allAttrs() attributes {
	c.ep.Enter()
	all := slices.Clone(c.attrs)
	c.ep.Leave()
	return all
}

// deleteAttrs removes all attributes, the latest first (MPI 4.1, section 7.7.2).
func (c *Comm) deleteAttrs() error {
	for _, a := range slices.Backward(c.allAttrs()) {
		if err := c.deleteAttr(a); err != nil {
			return err
		}
	}
	return nil
}

// copyAttrs gives a duplicate what the keys say.
func (c *Comm) copyAttrs(d *Comm) error {
	for _, a := range c.allAttrs() {
		if a.key.Copy == nil {
			continue
		}
		if value, ok := a.key.Copy(c, a.value); ok {
			d.attrs = append(d.attrs, attribute{a.key, value})
		}
	}
	return nil
}
