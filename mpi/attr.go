package mpi

// Keyval is a key of attributes of communicators (MPI_Comm_create_keyval).
type Keyval = KeyvalOf[*Comm]

// KeyvalOf is a key of attributes of objects of type O. Values are whatever the
// program wants to find again at an object.
type KeyvalOf[O any] struct {
	// Copy decides what a duplicate of the object gets; ok == false: nothing.
	// Nil: nothing (MPI_COMM_NULL_COPY_FN). See CopyAttr.
	Copy func(old O, value any) (copied any, ok bool)
	// Delete is called when the attribute goes: because it is deleted, or
	// overwritten, or the object is freed. Nil does nothing.
	Delete func(o O, value any) error
}

// CopyAttr is a Keyval.Copy that gives the duplicate the same value
// (MPI_COMM_DUP_FN).
func CopyAttr(_ *Comm, value any) (any, bool) { return value, true }

// attributes are few: a list in the order in which they were set.
type attributes[O any] []attribute[O]

type attribute[O any] struct {
	key   *KeyvalOf[O]
	value any
}

func (a attributes[O]) find(k *KeyvalOf[O]) int {
	for i := range a {
		if a[i].key == k {
			return i
		}
	}
	return -1
}

// set sets an attribute of o.
func (a *attributes[O]) set(op string, o O, k *KeyvalOf[O], value any) error {
	if k == nil {
		return fail(ErrKeyval, op, "the key is nil")
	}
	i := a.find(k)
	if i < 0 {
		*a = append(*a, attribute[O]{k, value})
		return nil
	}
	if k.Delete != nil {
		if err := k.Delete(o, (*a)[i].value); err != nil {
			return wrapOther(op, err)
		}
	}
	(*a)[i].value = value
	return nil
}

// get returns an attribute.
func (a attributes[O]) get(k *KeyvalOf[O]) (value any, ok bool) {
	if i := a.find(k); i >= 0 {
		return a[i].value, true
	}
	return nil, false
}

// remove removes an attribute of o.
func (a *attributes[O]) remove(op string, o O, k *KeyvalOf[O]) error {
	i := a.find(k)
	if i < 0 {
		return fail(ErrKeyval, op, "there is no such attribute")
	}
	return a.removeAt(op, o, i)
}

func (a *attributes[O]) removeAt(op string, o O, i int) error {
	if gone := (*a)[i]; gone.key.Delete != nil {
		if err := gone.key.Delete(o, gone.value); err != nil {
			return wrapOther(op, err)
		}
	}
	*a = append((*a)[:i], (*a)[i+1:]...)
	return nil
}

// removeAll removes all attributes, the latest first (MPI 4.1, section 7.7.2).
func (a *attributes[O]) removeAll(op string, o O) error {
	for i := len(*a) - 1; i >= 0; i-- {
		if err := a.removeAt(op, o, i); err != nil {
			return err
		}
	}
	return nil
}

// copyOf returns what a duplicate of o gets.
func (a attributes[O]) copyOf(o O) (copies attributes[O]) {
	for _, at := range a {
		if at.key.Copy == nil {
			continue
		}
		if value, ok := at.key.Copy(o, at.value); ok {
			copies = append(copies, attribute[O]{at.key, value})
		}
	}
	return copies
}

// SetAttr sets an attribute (MPI_Comm_set_attr).
func (c *Comm) SetAttr(k *Keyval, value any) error {
	err := c.live("Comm.SetAttr")
	if err == nil {
		err = c.attrs.set("Comm.SetAttr", c, k, value)
	}
	return c.report(err)
}

// Attr returns an attribute (MPI_Comm_get_attr).
func (c *Comm) Attr(k *Keyval) (value any, ok bool) { return c.attrs.get(k) }

// DeleteAttr removes an attribute (MPI_Comm_delete_attr).
func (c *Comm) DeleteAttr(k *Keyval) error {
	return c.report(c.attrs.remove("Comm.DeleteAttr", c, k))
}
