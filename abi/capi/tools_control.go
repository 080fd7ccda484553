package capi

import (
	"os"
	"strconv"

	"github.com/xwarp/xwarp/internal/base/config"
)

// control is a control variable: one of the environment, which MPI_Init reads. Switches and
// words are numbers, of words with an enumeration, everything else is text.
type control struct {
	config.Var
	group int
}

// textRoom is how many characters the value of a variable with text has at most.
const textRoom = 1024

// list makes the lists of variables and categories.
func (t *tools) list() {
	for _, g := range config.Groups() {
		if !g.Users {
			continue
		}
		for _, v := range g.Vars {
			t.controls = append(t.controls, control{v, len(t.groups)})
		}
		t.groups = append(t.groups, g)
	}
	t.count()
}

func (c *control) numeric() bool { return c.Switch() || c.Words() != nil }

func (c *control) datatype() Handle {
	if c.numeric() {
		return MPI_INT
	}
	return MPI_CHAR
}

func (c *control) room() int {
	if c.numeric() {
		return 1
	}
	return textRoom
}

func (c *control) scope() int {
	if c.Rank() {
		return MPI_T_SCOPE_ALL_EQ
	}
	return MPI_T_SCOPE_CONSTANT
}

// text is the value of the variable, which can be written again: nothing where the default
// tells what one is made of.
func (c *control) text() string {
	if v, ok := os.LookupEnv(c.Name); ok {
		return v
	}
	if c.Rank() && c.Set(c.Default) != nil {
		return ""
	}
	return c.Default
}

// number is the value as a number.
func (c *control) number() int {
	if w := c.Words(); w != nil {
		return max(w.Index(c.text()), 0)
	}
	n, _ := strconv.Atoi(c.text()) // which MPI_Init says if it is none
	return n
}

// parse is the text of a value of the program.
func (c *control) parse(from Addr) (string, bool) {
	if !c.numeric() {
		return from.String(), true
	}
	n := Ints{At: uintptr(from)}.get(0)
	if w := c.Words(); w != nil {
		if n < 0 || n >= len(w) {
			return "", false
		}
		return w[n].Name, true
	}
	return strconv.Itoa(n), true
}

// TCvarGetNum is MPI_T_cvar_get_num.
func TCvarGetNum(l *Lib, n Ints) error {
	return l.inTools(func(t *tools) error {
		n.set(0, len(t.controls))
		return nil
	})
}

// TCvarGetInfo is MPI_T_cvar_get_info.
func TCvarGetInfo(l *Lib, index int, name Text, nameLen, verbosity Ints, datatype Handles, enum Addr, desc Text, descLen, bind, scope Ints) error {
	return l.inTools(func(t *tools) error {
		c, err := indexed(t.controls, index)
		if err != nil {
			return err
		}
		setText(name, nameLen, c.Name)
		setText(desc, descLen, c.Doc)
		verbosity.set(0, MPI_T_VERBOSITY_USER_BASIC)
		setType(datatype, c.datatype())
		setWord(enum, t.enumOf(index))
		bind.set(0, MPI_T_BIND_NO_OBJECT)
		scope.set(0, c.scope())
		return nil
	})
}

// TCvarGetIndex is MPI_T_cvar_get_index.
func TCvarGetIndex(l *Lib, name string, index Ints) error {
	return l.inTools(func(t *tools) error {
		return named(t.controls, func(c *control) bool { return c.Name == name }, index)
	})
}

// TCvarHandleAlloc is MPI_T_cvar_handle_alloc.
func TCvarHandleAlloc(l *Lib, index int, _, handle Addr, count Ints) error {
	return l.inTools(func(t *tools) error {
		c, err := indexed(t.controls, index)
		if err == nil {
			setWord(handle, uintptr(t.controlHandles.add(c)))
			count.set(0, c.room())
		}
		return err
	})
}

// TCvarHandleFree is MPI_T_cvar_handle_free.
func TCvarHandleFree(l *Lib, handle Addr) error {
	return l.inTools(func(t *tools) error {
		h := *handle.word()
		if _, err := toolHandle(&t.controlHandles, Addr(h)); err != nil {
			return err
		}
		t.controlHandles.remove(Handle(h))
		setWord(handle, 0)
		return nil
	})
}

// TCvarRead is MPI_T_cvar_read.
func TCvarRead(l *Lib, handle, buf Addr) error {
	return l.inTools(func(t *tools) error {
		c, err := toolHandle(&t.controlHandles, handle)
		switch {
		case err != nil:
		case c.numeric():
			Ints{At: uintptr(buf)}.set(0, c.number())
		default:
			Text(buf).set(c.text(), textRoom)
		}
		return err
	})
}

// TCvarWrite is MPI_T_cvar_write. What is written counts in MPI_Init.
func TCvarWrite(l *Lib, handle, buf Addr) error {
	return l.inTools(func(t *tools) error {
		c, err := toolHandle(&t.controlHandles, handle)
		switch {
		case err != nil:
			return err
		case !c.Rank():
			return toolsError(MPI_T_ERR_CVAR_SET_NEVER)
		case t.proc != nil:
			return toolsError(MPI_T_ERR_CVAR_SET_NOT_NOW)
		}
		text, ok := c.parse(buf)
		if ok && text == c.text() { // what a tool has read it may write
			return nil
		}
		if !ok || c.Set(text) != nil || os.Setenv(c.Name, text) != nil {
			return toolsError(MPI_T_ERR_INVALID)
		}
		return nil
	})
}

// An enumeration has the number of its variable, as an address that is none.
const enumStep = 16

// enumOf is the enumeration of a variable, or MPI_T_ENUM_NULL.
func (t *tools) enumOf(index int) uintptr {
	if t.controls[index].Words() == nil {
		return 0
	}
	return lowest + uintptr(index)*enumStep
}

// enum returns the words of an enumeration, and whose they are.
func (t *tools) enum(h Addr) (*control, error) {
	i := (int(h) - lowest) / enumStep
	if i < 0 || i >= len(t.controls) || t.enumOf(i) != uintptr(h) {
		return nil, toolsError(MPI_T_ERR_INVALID_HANDLE)
	}
	return &t.controls[i], nil
}

// TEnumGetInfo is MPI_T_enum_get_info.
func TEnumGetInfo(l *Lib, enum Addr, n Ints, name Text, nameLen Ints) error {
	return l.inTools(func(t *tools) error {
		c, err := t.enum(enum)
		if err == nil {
			n.set(0, len(c.Words()))
			setText(name, nameLen, c.Name)
		}
		return err
	})
}

// TEnumGetItem is MPI_T_enum_get_item.
func TEnumGetItem(l *Lib, enum Addr, i int, value Ints, name Text, nameLen Ints) error {
	return l.inTools(func(t *tools) error {
		c, err := t.enum(enum)
		if err != nil {
			return err
		}
		w, err := indexed(c.Words(), i)
		if err == nil {
			value.set(0, i)
			setText(name, nameLen, w.Name)
		}
		return err
	})
}
