package mpi

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
)

// Limits of an Info, in bytes. They are those of the MPI standard ABI, without the
// zero at the end.
const (
	MaxInfoKey   = 255  // MPI_MAX_INFO_KEY
	MaxInfoValue = 1023 // MPI_MAX_INFO_VAL
)

// Info is a list of keys and values, which tell MPI what it may make use of
// (MPI_Info). The zero value is empty and ready to use; nil is an empty one that
// nothing can be added to (MPI_INFO_NULL). Keys that MPI does not know are kept and
// do nothing.
type Info struct{ pairs []infoPair }

type infoPair struct{ key, value string }

// NewInfo makes an Info of keys and values in turn (MPI_Info_create).
func NewInfo(keysAndValues ...string) (*Info, error) {
	i := &Info{}
	if len(keysAndValues)%2 != 0 {
		return nil, fail(ErrArg, "NewInfo", "key %q has no value", keysAndValues[len(keysAndValues)-1])
	}
	for ; len(keysAndValues) > 0; keysAndValues = keysAndValues[2:] {
		if err := i.Set(keysAndValues[0], keysAndValues[1]); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *Info) find(key string) int {
	if i == nil {
		return -1
	}
	return slices.IndexFunc(i.pairs, func(p infoPair) bool { return p.key == key })
}

// Set adds a key with its value, or gives a key another value (MPI_Info_set).
func (i *Info) Set(key, value string) error {
	const op = "Info.Set"
	switch {
	case i == nil:
		return fail(ErrInfo, op, "the info is nil")
	case len(key) < 1 || len(key) > MaxInfoKey:
		return fail(ErrInfoKey, op, "a key of %d bytes; keys have 1 to %d", len(key), MaxInfoKey)
	case len(value) > MaxInfoValue:
		return fail(ErrInfoValue, op, "a value of %d bytes; values have up to %d", len(value), MaxInfoValue)
	}
	if at := i.find(key); at >= 0 {
		i.pairs[at].value = value
	} else {
		i.pairs = append(i.pairs, infoPair{key, value})
	}
	return nil
}

// Get returns the value of a key (MPI_Info_get_string).
func (i *Info) Get(key string) (value string, ok bool) {
	if at := i.find(key); at >= 0 {
		return i.pairs[at].value, true
	}
	return "", false
}

// Delete removes a key (MPI_Info_delete).
func (i *Info) Delete(key string) error {
	at := i.find(key)
	if at < 0 {
		return fail(ErrInfoNoKey, "Info.Delete", "there is no key %q", key)
	}
	i.pairs = slices.Delete(i.pairs, at, at+1)
	return nil
}

// Len returns the number of keys (MPI_Info_get_nkeys).
func (i *Info) Len() int {
	if i == nil {
		return 0
	}
	return len(i.pairs)
}

// Key returns the n-th key, from 0 on, in the order in which they were added
// (MPI_Info_get_nthkey).
func (i *Info) Key(n int) (string, error) {
	if n < 0 || n >= i.Len() {
		return "", fail(ErrArg, "Info.Key", "key %d of %d", n, i.Len())
	}
	return i.pairs[n].key, nil
}

// Dup returns a copy (MPI_Info_dup).
func (i *Info) Dup() *Info {
	if i == nil {
		return &Info{}
	}
	return &Info{slices.Clone(i.pairs)}
}

// InfoEnv returns what is known about the start of this process (MPI_INFO_ENV): the
// keys command, argv, maxprocs, host, arch, wdir and thread_level, those of them
// that could be found out. The copy belongs to the caller.
func (p *Proc) InfoEnv() *Info {
	env := startInfo(strconv.Itoa(p.job.Size()))
	env.pairs = append(env.pairs, infoPair{keyThreadLevel, threadPrefix + strings.ToUpper(p.QueryThread().String())})
	return env
}

// InfoEnv is [Proc.InfoEnv] of a process that need not have joined its job
// (MPI_Info_create_env): maxprocs and thread_level are what the environment says.
func InfoEnv() *Info {
	procs := "1"
	for _, name := range []string{pmi.EnvSize, config.EnvSize} {
		if size := os.Getenv(name); size != "" {
			procs = size
		}
	}
	env := startInfo(procs)
	if i := config.Threads.Index(os.Getenv(EnvThreads)); i >= 0 {
		env.pairs = append(env.pairs, infoPair{keyThreadLevel, threadPrefix + strings.ToUpper(ThreadLevel(i).String())})
	}
	return env
}

// startInfo is what both say.
func startInfo(procs string) *Info {
	env := &Info{}
	add := func(key, value string) {
		if value != "" && len(value) <= MaxInfoValue {
			env.pairs = append(env.pairs, infoPair{key, value})
		}
	}
	if len(os.Args) > 0 {
		add("command", os.Args[0])
		add("argv", strings.Join(os.Args[1:], " "))
	}
	add("maxprocs", procs)
	if host, err := os.Hostname(); err == nil {
		add("host", host)
	}
	add("arch", runtime.GOARCH)
	if dir, err := os.Getwd(); err == nil {
		add("wdir", dir)
	}
	return env
}
