package mpi

// The program's own errors (MPI 4.1, section 9.5). A class or code that was added is
// the Class of an [Error] as those of this package are; the numbers mean something
// in one process only.

// lastClass is the highest number that is not the program's (MPI_ERR_LASTCODE).
const lastClass ErrorClass = 0x3fff

// userError is a class that the program has added, or a code.
type userError struct {
	class ErrorClass // of a code; of a class itself
	text  string
}

// AddErrorClass adds an error class (MPI_Add_error_class).
func (p *Proc) AddErrorClass() ErrorClass {
	p.ep.Enter()
	defer p.ep.Leave()
	return p.addError(0)
}

// AddErrorCode adds an error code of a class (MPI_Add_error_code): a number that
// says more than its class.
func (p *Proc) AddErrorCode(class ErrorClass) (ErrorClass, error) {
	p.ep.Enter()
	defer p.ep.Leave()
	if class == Success || p.classOf(class) != class {
		return 0, fail(ErrArg, "AddErrorCode", "there is no class %d", int(class))
	}
	return p.addError(class), nil
}

// addError adds a code of a class, or a class.
func (p *Proc) addError(class ErrorClass) ErrorClass {
	if p.errors == nil {
		p.errors, p.lastError = map[ErrorClass]*userError{}, lastClass
	}
	p.lastError++
	if class == 0 {
		class = p.lastError
	}
	p.errors[p.lastError] = &userError{class: class}
	return p.lastError
}

// LastUsedCode returns the highest error code that there was until now (the
// attribute MPI_LASTUSEDCODE).
func (p *Proc) LastUsedCode() ErrorClass {
	p.ep.Enter()
	defer p.ep.Leave()
	return max(lastClass, p.lastError)
}

// RemoveErrorClass removes a class (MPI_Remove_error_class), which must have no
// codes.
func (p *Proc) RemoveErrorClass(class ErrorClass) error {
	return p.removeError("RemoveErrorClass", class, true)
}

// RemoveErrorCode removes a code (MPI_Remove_error_code).
func (p *Proc) RemoveErrorCode(code ErrorClass) error {
	return p.removeError("RemoveErrorCode", code, false)
}

func (p *Proc) removeError(op string, code ErrorClass, class bool) error {
	p.ep.Enter()
	defer p.ep.Leave()
	e := p.errors[code]
	if e == nil || (e.class == code) != class {
		return fail(ErrArg, op, "%d is nothing that was added, or was removed", int(code))
	}
	for other, has := range p.errors {
		if has.class == code && other != code {
			return fail(ErrArg, op, "class %d has code %d: remove that first", int(code), int(other))
		}
	}
	delete(p.errors, code)
	return nil
}

// AddErrorString gives a class or a code that was added a text, or another one
// (MPI_Add_error_string).
func (p *Proc) AddErrorString(code ErrorClass, text string) error {
	return p.setErrorString("AddErrorString", code, text)
}

// RemoveErrorString takes the text away (MPI_Remove_error_string).
func (p *Proc) RemoveErrorString(code ErrorClass) error {
	return p.setErrorString("RemoveErrorString", code, "")
}

func (p *Proc) setErrorString(op string, code ErrorClass, text string) error {
	p.ep.Enter()
	defer p.ep.Leave()
	e := p.errors[code]
	if e == nil {
		return fail(ErrArg, op, "%d is nothing that was added", int(code))
	}
	e.text = text
	return nil
}

// ErrorString returns the text of a class or a code (MPI_Error_string): empty for
// one that was added and has none.
func (p *Proc) ErrorString(code ErrorClass) string {
	p.ep.Enter()
	defer p.ep.Leave()
	if e := p.errors[code]; e != nil {
		return e.text
	}
	return code.String()
}

// ErrorClass returns the class of a code (MPI_Error_class), which is the same for a
// class. See [ClassOf] for errors.
func (p *Proc) ErrorClass(code ErrorClass) ErrorClass {
	p.ep.Enter()
	defer p.ep.Leave()
	return p.classOf(code)
}

func (p *Proc) classOf(code ErrorClass) ErrorClass {
	if e := p.errors[code]; e != nil {
		return e.class
	}
	if _, known := classNames[code]; known {
		return code
	}
	return ErrUnknown
}
