package mpi

import "sync"

// The program's own errors (MPI 4.1, section 9.5). A class or code that was added is
// the Class of an [Error] as those of this package are; the numbers mean something
// in one process only.

// lastClass is the highest number that is not the program's (MPI_ERR_LASTCODE).
const lastClass ErrorClass = 0x3fff

// UserErrors are the classes and codes that a program has added. Several goroutines
// may use them at once, before there is a [Proc] as well.
type UserErrors struct {
	mu   sync.Mutex // guards what follows
	all  map[ErrorClass]*userError
	last ErrorClass // that was added
}

// userError is a class that the program has added, or a code.
type userError struct {
	class ErrorClass // of a code; of a class itself
	text  string
}

// AddErrorClass adds an error class (MPI_Add_error_class).
func (u *UserErrors) AddErrorClass() ErrorClass {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.addError(0)
}

// AddErrorCode adds an error code of a class (MPI_Add_error_code): a number that
// says more than its class.
func (u *UserErrors) AddErrorCode(class ErrorClass) (ErrorClass, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if class == Success || u.classOf(class) != class {
		return 0, fail(ErrArg, "AddErrorCode", "there is no class %d", int(class))
	}
	return u.addError(class), nil
}

// addError adds a code of a class, or a class.
func (u *UserErrors) addError(class ErrorClass) ErrorClass {
	if u.all == nil {
		u.all, u.last = map[ErrorClass]*userError{}, lastClass
	}
	u.last++
	if class == 0 {
		class = u.last
	}
	u.all[u.last] = &userError{class: class}
	return u.last
}

// LastUsedCode returns the highest error code that there was until now (the
// attribute MPI_LASTUSEDCODE).
func (u *UserErrors) LastUsedCode() ErrorClass {
	u.mu.Lock()
	defer u.mu.Unlock()
	return max(lastClass, u.last)
}

// RemoveErrorClass removes a class (MPI_Remove_error_class), which must have no
// codes.
func (u *UserErrors) RemoveErrorClass(class ErrorClass) error {
	return u.removeError("RemoveErrorClass", class, true)
}

// RemoveErrorCode removes a code (MPI_Remove_error_code).
func (u *UserErrors) RemoveErrorCode(code ErrorClass) error {
	return u.removeError("RemoveErrorCode", code, false)
}

func (u *UserErrors) removeError(op string, code ErrorClass, class bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.all[code]
	if e == nil || (e.class == code) != class {
		return fail(ErrArg, op, "%d is nothing that was added, or was removed", int(code))
	}
	for other, has := range u.all {
		if has.class == code && other != code {
			return fail(ErrArg, op, "class %d has code %d: remove that first", int(code), int(other))
		}
	}
	delete(u.all, code)
	return nil
}

// AddErrorString gives a class or a code that was added a text, or another one
// (MPI_Add_error_string).
func (u *UserErrors) AddErrorString(code ErrorClass, text string) error {
	return u.setErrorString("AddErrorString", code, text)
}

// RemoveErrorString takes the text away (MPI_Remove_error_string).
func (u *UserErrors) RemoveErrorString(code ErrorClass) error {
	return u.setErrorString("RemoveErrorString", code, "")
}

func (u *UserErrors) setErrorString(op string, code ErrorClass, text string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.all[code]
	if e == nil {
		return fail(ErrArg, op, "%d is nothing that was added", int(code))
	}
	e.text = text
	return nil
}

// ErrorString returns the text of a class or a code (MPI_Error_string): empty for
// one that was added and has none.
func (u *UserErrors) ErrorString(code ErrorClass) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e := u.all[code]; e != nil {
		return e.text
	}
	return code.String()
}

// ErrorClass returns the class of a code (MPI_Error_class), which is the same for a
// class. See [ClassOf] for errors.
func (u *UserErrors) ErrorClass(code ErrorClass) ErrorClass {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.classOf(code)
}

func (u *UserErrors) classOf(code ErrorClass) ErrorClass {
	if e := u.all[code]; e != nil {
		return e.class
	}
	if _, known := classNames[code]; known {
		return code
	}
	return ErrUnknown
}
