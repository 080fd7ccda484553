package mpi

import "sync/atomic"

// typeNotes is what a process adds to a datatype. They are kept apart from it, for
// datatypes have no owner.
type typeNotes struct {
	name  atomic.Pointer[string] // nil: none was given
	attrs attributes[Datatype]
}

// TypeKeyval is a key of attributes of datatypes (MPI_Type_create_keyval).
type TypeKeyval = KeyvalOf[Datatype]

// CopyTypeAttr is a TypeKeyval.Copy that gives the duplicate the same value
// (MPI_TYPE_DUP_FN).
func CopyTypeAttr(_ Datatype, value any) (any, bool, error) { return value, true, nil }

// notes returns what there is about t, which is made if there is nothing yet.
func (p *Proc) notes(op string, t Datatype) (*typeNotes, error) {
	if t.IsNull() {
		return nil, fail(ErrType, op, "there is no datatype")
	}
	p.ep.Enter()
	defer p.ep.Leave()
	n := p.types[t]
	if n == nil {
		n = &typeNotes{}
		p.types[t] = n
	}
	return n, nil
}

// noted returns what there is about t, or nil.
func (p *Proc) noted(t Datatype) *typeNotes {
	p.ep.Enter()
	defer p.ep.Leave()
	return p.types[t]
}

// TypeSetName names a datatype, for messages to people (MPI_Type_set_name).
func (p *Proc) TypeSetName(t Datatype, name string) error {
	n, err := p.notes("TypeSetName", t)
	if err == nil {
		n.name.Store(&name)
	}
	return err
}

// TypeName returns the name of a datatype (MPI_Type_get_name): MPI's own of a
// predefined one that was given no other.
func (p *Proc) TypeName(t Datatype) string {
	if n := p.noted(t); n != nil {
		if name := n.name.Load(); name != nil {
			return *name
		}
	}
	switch {
	case t.Predefined() || t.IsNull():
		return t.String()
	}
	return ""
}

// TypeSetAttr sets an attribute of a datatype (MPI_Type_set_attr).
func (p *Proc) TypeSetAttr(t Datatype, k *TypeKeyval, value any) error {
	n, err := p.notes("TypeSetAttr", t)
	if err != nil {
		return err
	}
	return n.attrs.set("TypeSetAttr", t, k, value)
}

// TypeAttr returns an attribute of a datatype (MPI_Type_get_attr).
func (p *Proc) TypeAttr(t Datatype, k *TypeKeyval) (value any, ok bool) {
	if n := p.noted(t); n != nil {
		return n.attrs.get(k)
	}
	return nil, false
}

// TypeDeleteAttr removes an attribute of a datatype (MPI_Type_delete_attr).
func (p *Proc) TypeDeleteAttr(t Datatype, k *TypeKeyval) error {
	n, err := p.notes("TypeDeleteAttr", t)
	if err != nil {
		return err
	}
	return n.attrs.remove("TypeDeleteAttr", t, k)
}

// TypeDup is [TypeDup] that copies the attributes as their keys say.
func (p *Proc) TypeDup(old Datatype) (Datatype, error) {
	n := p.noted(old)
	if n == nil {
		return TypeDup(old)
	}
	copies, err := n.attrs.copies("TypeDup", old)
	if err != nil {
		return Datatype{}, err
	}
	t, err := TypeDup(old)
	if err != nil || len(copies) == 0 {
		return t, err
	}
	to, err := p.notes("TypeDup", t)
	if err == nil {
		to.attrs.list = copies
	}
	return t, err
}

// TypeFree forgets the name and the attributes of a datatype (MPI_Type_free), for
// which their keys' Delete is called. The datatype itself needs no freeing; the
// predefined ones cannot be freed.
func (p *Proc) TypeFree(t Datatype) error {
	switch {
	case t.IsNull():
		return fail(ErrType, "TypeFree", "there is no datatype")
	case t.Predefined():
		return fail(ErrType, "TypeFree", "%v is predefined", t)
	}
	if n := p.noted(t); n != nil {
		if err := n.attrs.removeAll("TypeFree", t); err != nil {
			return err
		}
		p.ep.Enter()
		delete(p.types, t)
		p.ep.Leave()
	}
	return nil
}
