package capi

import (
	"github.com/xwarp/xwarp/mpi"
)

// info returns an info, or says what is wrong.
func (l *Lib) info(h Handle) (*mpi.Info, error) {
	if i := l.infos.get(h); i != nil {
		return *i, nil
	}
	switch {
	case h == MPI_INFO_ENV && l.up() == nil:
		return mpi.InfoEnv(), nil
	case h == MPI_INFO_NULL:
		return nil, fail(mpi.ErrInfo, "MPI_INFO_NULL")
	}
	return nil, fail(mpi.ErrInfo, "%#x is no info, or was freed", uintptr(h))
}

// infoOrNull is info where MPI_INFO_NULL says nothing.
func (l *Lib) infoOrNull(h Handle) (*mpi.Info, error) {
	if h == MPI_INFO_NULL {
		return nil, nil
	}
	return l.info(h)
}

// newInfo gives the program an info.
func (l *Lib) newInfo(i *mpi.Info, err error, to Handles) error {
	if err == nil {
		to.set(0, l.infos.add(i))
	}
	return err
}

// InfoCreate is MPI_Info_create.
func InfoCreate(l *Lib, to Handles) error { return l.newInfo(&mpi.Info{}, nil, to) }

// InfoCreateEnv is MPI_Info_create_env. It says the same before MPI_Init and after MPI_Finalize.
func InfoCreateEnv(l *Lib, _ int, _ Addr, to Handles) error { return l.newInfo(mpi.InfoEnv(), nil, to) }

// InfoFree is MPI_Info_free.
func InfoFree(l *Lib, info Handles) error {
	h := info.get(0)
	if l.infos.get(h) == nil {
		return fail(mpi.ErrInfo, "%#x is no info that MPI_Info_create has made, or was freed", uintptr(h))
	}
	l.infos.remove(h)
	info.set(0, MPI_INFO_NULL)
	return nil
}

// InfoDup is MPI_Info_dup.
func InfoDup(l *Lib, info Handle, to Handles) error {
	i, err := l.info(info)
	if err != nil {
		return err
	}
	return l.newInfo(i.Dup(), nil, to)
}

// InfoSet is MPI_Info_set.
func InfoSet(l *Lib, info Handle, key, value string) error {
	i, err := l.info(info)
	if err != nil {
		return err
	}
	return i.Set(key, value)
}

// InfoDelete is MPI_Info_delete.
func InfoDelete(l *Lib, info Handle, key string) error {
	i, err := l.keyed(info, key)
	if err != nil {
		return err
	}
	return i.Delete(key)
}

// keyed returns an info that is asked for a key.
func (l *Lib) keyed(h Handle, key string) (*mpi.Info, error) {
	i, err := l.info(h)
	if err == nil && (key == "" || len(key) > mpi.MaxInfoKey) {
		return nil, fail(mpi.ErrInfoKey, "a key of %d bytes; keys have 1 to %d", len(key), mpi.MaxInfoKey)
	}
	return i, err
}

// InfoGet is MPI_Info_get.
func InfoGet(l *Lib, info Handle, key string, length int, value Text, flag Ints) error {
	i, err := l.keyed(info, key)
	if err != nil {
		return err
	}
	if length < 0 {
		return fail(mpi.ErrArg, "room for %d bytes", length)
	}
	v, ok := i.Get(key)
	if ok {
		value.set(v, length+1)
	}
	flag.setFlag(ok)
	return nil
}

// InfoGetString is MPI_Info_get_string.
func InfoGetString(l *Lib, info Handle, key string, length Ints, value Text, flag Ints) error {
	i, err := l.keyed(info, key)
	if err != nil {
		return err
	}
	v, ok := i.Get(key)
	if ok {
		value.set(v, length.get(0))
		length.set(0, len(v)+1)
	}
	flag.setFlag(ok)
	return nil
}

// InfoGetValuelen is MPI_Info_get_valuelen.
func InfoGetValuelen(l *Lib, info Handle, key string, length, flag Ints) error {
	i, err := l.keyed(info, key)
	if err != nil {
		return err
	}
	v, ok := i.Get(key)
	if ok {
		length.set(0, len(v))
	}
	flag.setFlag(ok)
	return nil
}

// InfoGetNkeys is MPI_Info_get_nkeys.
func InfoGetNkeys(l *Lib, info Handle, n Ints) error {
	i, err := l.info(info)
	if err == nil {
		n.set(0, i.Len())
	}
	return err
}

// InfoGetNthkey is MPI_Info_get_nthkey.
func InfoGetNthkey(l *Lib, info Handle, n int, key Text) error {
	i, err := l.info(info)
	if err != nil {
		return err
	}
	s, err := i.Key(n)
	if err == nil {
		key.set(s, mpi.MaxInfoKey+1)
	}
	return err
}

// GetHwResourceInfo is MPI_Get_hw_resource_info.
func GetHwResourceInfo(l *Lib, to Handles) error {
	if err := l.up(); err != nil {
		return err
	}
	return l.newInfo(l.proc.HWResourceInfo(), nil, to)
}
