package mpi

import (
	"slices"
	"sync"
)

// Keyval is a key of attributes of communicators (MPI_Comm_create_keyval).
type Keyval = KeyvalOf[*Comm]

// KeyvalOf is a key of attributes of objects of type O. Values are whatever the
// program wants to find again at an object.
type KeyvalOf[O any] struct {
	// Copy decides what a duplicate of the object gets; ok == false: nothing.
	// Nil: nothing (MPI_COMM_NULL_COPY_FN). See CopyAttr. An error is that of the call
	// that was to make the duplicate, which then makes none.
	Copy func(old O, value any) (copied any, ok bool, err error)
	// Delete is called when the attribute goes: because it is deleted, or
	// overwritten, or the object is freed. Nil does nothing. An error is that of the call,
	// which then leaves the object as it is.
	Delete func(o O, value any) error
}

// CopyAttr is a Keyval.Copy that gives the duplicate the same value
// (MPI_COMM_DUP_FN).
func CopyAttr(_ *Comm, value any) (any, bool, error) { return value, true, nil }

// attributes are few: a list in the order in which they were set. Any goroutine
// may use it; what the program wants to be called is called without the lock, for
// it may use the attributes too.
type attributes[O any] struct {
	mu   sync.Mutex
	list []attribute[O]
}

type attribute[O any] struct {
	key   *KeyvalOf[O]
	value any
}

// all returns the attributes of now.
func (a *attributes[O]) all() []attribute[O] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

func (a *attributes[O]) find(k *KeyvalOf[O]) int {
	return slices.IndexFunc(a.list, func(at attribute[O]) bool { return at.key == k })
}

// set sets an attribute of o.
func (a *attributes[O]) set(op string, o O, k *KeyvalOf[O], value any) error {
	if k == nil {
		return fail(ErrKeyval, op, "the key is nil")
	}
	if old, ok := a.get(k); ok && k.Delete != nil {
		if err := k.Delete(o, old); err != nil {
			return wrapOther(op, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		a.list[i].value = value
	} else {
		a.list = append(a.list, attribute[O]{k, value})
	}
	return nil
}

// get returns an attribute.
func (a *attributes[O]) get(k *KeyvalOf[O]) (value any, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		return a.list[i].value, true
	}
	return nil, false
}

// remove removes an attribute of o.
func (a *attributes[O]) remove(op string, o O, k *KeyvalOf[O]) error {
	value, ok := a.get(k)
	if !ok {
		return fail(ErrKeyval, op, "there is no such attribute")
	}
	if k.Delete != nil {
		if err := k.Delete(o, value); err != nil {
			return wrapOther(op, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		a.list = slices.Delete(a.list, i, i+1)
	}
	return nil
}

// removeAll removes all attributes, the latest first (MPI 4.1, section 7.7.2).
func (a *attributes[O]) removeAll(op string, o O) error {
	for _, at := range slices.Backward(a.all()) {
		if _, there := a.get(at.key); !there { // the Delete of another one has removed it
			continue
		}
		if err := a.remove(op, o, at.key); err != nil {
			return err
		}
	}
	return nil
}

// copies returns what a duplicate of o gets.
func (a *attributes[O]) copies(op string, o O) (list []attribute[O], err error) {
	for _, at := range a.all() {
		if at.key.Copy == nil {
			continue
		}
		value, ok, err := at.key.Copy(o, at.value)
		if err != nil {
			return nil, wrapOther(op, err)
		}
		if ok {
			list = append(list, attribute[O]{at.key, value})
		}
	}
	return list, nil
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
func (c *Comm) Attr(k *Keyval) (value any, ok bool) {
	if c == nil {
		return nil, false
	}
	return c.attrs.get(k)
}

// DeleteAttr removes an attribute (MPI_Comm_delete_attr).
func (c *Comm) DeleteAttr(k *Keyval) error {
	err := c.live("Comm.DeleteAttr")
	if err == nil {
		err = c.attrs.remove("Comm.DeleteAttr", c, k)
	}
	return c.report(err)
}
