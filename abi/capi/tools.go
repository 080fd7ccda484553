package capi

import (
	"fmt"
	"sync"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/mpi"
)

// tools is the state of the tools interface, MPI_T. Its control variables are those of package
// config, its performance variables the counters of package mpi, and its categories the groups
// of the former and one for the latter. There are no events.
type tools struct {
	mu       sync.Mutex // guards all of it
	users    int        // calls of MPI_T_init_thread without their MPI_T_finalize
	groups   []config.Group
	controls []control
	counters []counter
	known    map[string]int // index of a counter

	controlHandles table[*control]
	counterHandles table[*counting]
	sessions       table[*toolSession]

	proc  *mpi.Proc
	last  []mpi.Variable // what the counters were at when the process left the job
	watch bool           // the program wants counters that count in a watched process only
}

// Handles of MPI_T are addresses for C that only these tables know.
const (
	kindControl kind = 1 + iota
	kindCounter
	kindToolSession
)

func (t *tools) init() {
	t.controlHandles.kind, t.counterHandles.kind, t.sessions.kind = kindControl, kindCounter, kindToolSession
	t.known = map[string]int{}
}

// toolsError is an error of MPI_T: the number that its functions return.
type toolsError int

func (e toolsError) Error() string { return fmt.Sprintf("error %d of MPI_T", int(e)) }

// enter begins a call of MPI_T, which leave ends.
func (l *Lib) enter() (*tools, error) {
	t := &l.tools
	t.mu.Lock()
	if t.users == 0 {
		t.mu.Unlock()
		return nil, toolsError(MPI_T_ERR_NOT_INITIALIZED)
	}
	return t, nil
}

func (t *tools) leave() { t.mu.Unlock() }

// inTools calls f between enter and leave.
func (l *Lib) inTools(f func(*tools) error) error {
	t, err := l.enter()
	if err != nil {
		return err
	}
	defer t.leave()
	return f(t)
}

// TInitThread is MPI_T_init_thread.
func TInitThread(l *Lib, required int, provided Ints) error {
	t := &l.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.groups == nil {
		t.list()
	}
	provided.set(0, required)
	return nil
}

// TFinalize is MPI_T_finalize.
func TFinalize(l *Lib) error {
	return l.inTools(func(t *tools) error {
		t.users--
		return nil
	})
}

// setText returns a text as functions of MPI_T do: its length with the byte 0 goes to length,
// and as much of it as there is room for to name, unless there is none.
func setText(name Text, length Ints, s string) {
	if length.null() {
		return
	}
	n := len(s)
	if room := length.get(0); name >= lowest && room > 0 {
		n = name.set(s, room)
	}
	length.set(0, n+1)
}

// setWord sets a variable of the program that has an address.
func setWord(at Addr, word uintptr) {
	if at.memory() {
		*at.word() = word
	}
}

// setType sets a variable for a datatype, which may be missing.
func setType(to Handles, h Handle) {
	if !to.null() {
		to.set(0, h)
	}
}

// indexed returns an element of a list.
func indexed[T any](list []T, i int) (*T, error) {
	if i < 0 || i >= len(list) {
		return nil, toolsError(MPI_T_ERR_INVALID_INDEX)
	}
	return &list[i], nil
}

// named returns the index of the element with a name.
func named[T any](list []T, is func(*T) bool, index Ints) error {
	for i := range list {
		if is(&list[i]) {
			index.set(0, i)
			return nil
		}
	}
	return toolsError(MPI_T_ERR_INVALID_NAME)
}

// toolHandle returns what a handle of MPI_T is for.
func toolHandle[T any](t *table[*T], h Addr) (*T, error) {
	if v := t.get(Handle(h)); v != nil {
		return *v, nil
	}
	return nil, toolsError(MPI_T_ERR_INVALID_HANDLE)
}

// joined is told that the process is a rank now.
func (t *tools) joined(p *mpi.Proc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proc = p
	if t.watch {
		p.SetHooks(nil)
	}
}

// leaving is told that the process is going to leave the job.
func (t *tools) leaving() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = t.variables()
}
