package capi

import "github.com/xwarp/xwarp/mpi"

// made gives the program a communicator that was made of another one.
func (l *Lib) made(c *mpi.Comm, err error, of *comm, to Handles) error {
	if err == nil {
		to.set(0, l.addComm(c, of.handler))
	}
	return err
}

// idup is made for a communicator that is there when a request has ended.
func (l *Lib) idup(of Handle, c *mpi.Comm, r mpi.Request, err error, to, request Handles) error {
	if err != nil {
		return err
	}
	to.set(0, l.addComm(c, l.lookup(of).handler))
	return l.start(r, nil, of, request)
}

// CommDup is MPI_Comm_dup.
func CommDup(l *Lib, comm Handle, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, err := c.Dup()
	return l.made(d, err, c, to)
}

// CommDupWithInfo is MPI_Comm_dup_with_info.
func CommDupWithInfo(l *Lib, comm, info Handle, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	i, err := l.infoOrNull(info)
	if err != nil {
		return err
	}
	d, err := c.DupWithInfo(i)
	return l.made(d, err, c, to)
}

// CommIdup is MPI_Comm_idup.
func CommIdup(l *Lib, comm Handle, to, request Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, r, err := c.Idup()
	return l.idup(comm, d, r, err, to, request)
}

// CommIdupWithInfo is MPI_Comm_idup_with_info.
func CommIdupWithInfo(l *Lib, comm, info Handle, to, request Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	i, err := l.infoOrNull(info)
	if err != nil {
		return err
	}
	d, r, err := c.IdupWithInfo(i)
	return l.idup(comm, d, r, err, to, request)
}

// commAndGroup looks both up.
func (l *Lib) commAndGroup(ch, gh Handle) (*comm, *mpi.Group, error) {
	c, err := l.comm(ch)
	if err != nil {
		return nil, nil, err
	}
	g, err := l.group(gh)
	return c, g, err
}

// CommCreate is MPI_Comm_create.
func CommCreate(l *Lib, comm, group Handle, to Handles) error {
	c, g, err := l.commAndGroup(comm, group)
	if err != nil {
		return err
	}
	n, err := c.Create(g)
	return l.made(n, err, c, to)
}

// CommCreateGroup is MPI_Comm_create_group. Ranks that are not in the group get
// MPI_COMM_NULL.
func CommCreateGroup(l *Lib, comm, group Handle, tag int, to Handles) error {
	c, g, err := l.commAndGroup(comm, group)
	if err != nil {
		return err
	}
	if c.Inter() {
		return fail(mpi.ErrComm, "it is an intercommunicator: merge it first")
	}
	if g.Rank(l.proc) == mpi.Undefined {
		to.set(0, MPI_COMM_NULL)
		return nil
	}
	n, err := c.CreateGroup(g, tagFrom(tag))
	return l.made(n, err, c, to)
}

// CommSplit is MPI_Comm_split.
func CommSplit(l *Lib, comm Handle, color, key int, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	n, err := c.Split(color, key)
	return l.made(n, err, c, to)
}

// splitTypes are the kinds of MPI_Comm_split_type.
var splitTypes = map[int]mpi.SplitType{
	MPI_COMM_TYPE_SHARED: mpi.TypeShared, MPI_COMM_TYPE_HW_GUIDED: mpi.TypeHWGuided,
	MPI_COMM_TYPE_HW_UNGUIDED: mpi.TypeHWUnguided, MPI_COMM_TYPE_RESOURCE_GUIDED: mpi.TypeHWGuided,
	MPI_UNDEFINED: mpi.Undefined,
}

// CommSplitType is MPI_Comm_split_type.
func CommSplitType(l *Lib, comm Handle, splitType, key int, info Handle, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	i, err := l.infoOrNull(info)
	if err != nil {
		return err
	}
	kind, ok := splitTypes[splitType]
	if !ok {
		return fail(mpi.ErrArg, "there is no kind %d of splitting", splitType)
	}
	n, err := c.SplitTypeWithInfo(kind, key, i)
	return l.made(n, err, c, to)
}

// CommFree is MPI_Comm_free.
func CommFree(l *Lib, comm Handles) error { return l.endComm(comm, (*mpi.Comm).Free) }

// CommDisconnect is MPI_Comm_disconnect.
func CommDisconnect(l *Lib, comm Handles) error { return l.endComm(comm, (*mpi.Comm).Disconnect) }

func (l *Lib) endComm(at Handles, end func(*mpi.Comm) error) error {
	h := at.get(0)
	c, err := l.comm(h)
	if err == nil {
		err = end(c.Comm)
	}
	if err != nil {
		return on(h, err)
	}
	l.dropComm(h)
	at.set(0, MPI_COMM_NULL)
	return nil
}

// comparisons are the results of comparing, as package mpi orders them.
var comparisons = [...]int{mpi.Ident: MPI_IDENT, mpi.Congruent: MPI_CONGRUENT, mpi.Similar: MPI_SIMILAR, mpi.Unequal: MPI_UNEQUAL}

// CommCompare is MPI_Comm_compare.
func CommCompare(l *Lib, comm1, comm2 Handle, result Ints) error {
	a, err := l.comm(comm1)
	if err != nil {
		return err
	}
	b, err := l.comm(comm2)
	if err == nil {
		result.set(0, comparisons[a.Compare(b.Comm)])
	}
	return err
}

// CommGetParent is MPI_Comm_get_parent: there is none.
func CommGetParent(l *Lib, parent Handles) error {
	err := l.up()
	if err == nil {
		parent.set(0, MPI_COMM_NULL)
	}
	return err
}

// CommGetName is MPI_Comm_get_name. MPI_COMM_NULL has a name since MPI 4.0.
func CommGetName(l *Lib, comm Handle, name Text, length Ints) error {
	if comm == MPI_COMM_NULL && l.up() == nil {
		length.set(0, name.set("MPI_COMM_NULL", MPI_MAX_OBJECT_NAME))
		return nil
	}
	c, err := l.comm(comm)
	if err == nil {
		length.set(0, name.set(c.Name(), MPI_MAX_OBJECT_NAME))
	}
	return err
}

// CommSetName is MPI_Comm_set_name.
func CommSetName(l *Lib, comm Handle, name string) error {
	c, err := l.comm(comm)
	if err == nil {
		c.SetName(name)
	}
	return err
}

// CommGetInfo is MPI_Comm_get_info.
func CommGetInfo(l *Lib, comm Handle, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	i, err := c.Info()
	return l.newInfo(i, err, to)
}

// CommSetInfo is MPI_Comm_set_info.
func CommSetInfo(l *Lib, comm, info Handle) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	i, err := l.info(info)
	if err != nil {
		return err
	}
	return c.SetInfo(i)
}

// CommGroup is MPI_Comm_group.
func CommGroup(l *Lib, comm Handle, to Handles) error {
	c, err := l.comm(comm)
	if err == nil {
		to.set(0, l.addGroup(c.Group()))
	}
	return err
}

// CommTestInter is MPI_Comm_test_inter.
func CommTestInter(l *Lib, comm Handle, flag Ints) error {
	c, err := l.comm(comm)
	if err == nil {
		flag.setFlag(c.Inter())
	}
	return err
}

// intercomm returns an intercommunicator.
func (l *Lib) intercomm(h Handle) (*comm, error) {
	c, err := l.comm(h)
	if err == nil && !c.Inter() {
		return nil, fail(mpi.ErrComm, "it is no intercommunicator")
	}
	return c, err
}

// CommRemoteSize is MPI_Comm_remote_size.
func CommRemoteSize(l *Lib, comm Handle, size Ints) error {
	c, err := l.intercomm(comm)
	if err == nil {
		size.set(0, c.RemoteSize())
	}
	return err
}

// CommRemoteGroup is MPI_Comm_remote_group.
func CommRemoteGroup(l *Lib, comm Handle, to Handles) error {
	c, err := l.intercomm(comm)
	if err == nil {
		to.set(0, l.addGroup(c.RemoteGroup()))
	}
	return err
}

// IntercommCreate is MPI_Intercomm_create. The communicator of the leaders counts at these
// only.
func IntercommCreate(l *Lib, local Handle, leader int, peer Handle, remote, tag int, to Handles) error {
	c, err := l.comm(local)
	if err != nil {
		return err
	}
	var p *mpi.Comm
	if c.Rank() == leader {
		both, err := l.comm(peer)
		if err != nil {
			return err
		}
		p = both.Comm
	}
	n, err := c.CreateInter(leader, p, rankFrom(remote), tagFrom(tag))
	return l.made(n, err, c, to)
}

// IntercommMerge is MPI_Intercomm_merge.
func IntercommMerge(l *Lib, comm Handle, high int, to Handles) error {
	c, err := l.intercomm(comm)
	if err != nil {
		return err
	}
	n, err := c.Merge(high != 0)
	return l.made(n, err, c, to)
}
