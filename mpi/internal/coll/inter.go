package coll

// Inter is the two groups of an intercommunicator, seen by a rank of the local
// one. Ranks of the remote group have numbers behind those of the local group in
// the transport.
//
// Collectives between groups are made of those inside of a group and of messages
// between the first members, the leaders, or directly between members where
// lengths are known to these only.
type Inter struct{ Local, Remote Team }

// NewInter returns the groups of local and remote ranks, seen by rank me.
func NewInter(me, local, remote int) Inter {
	ranks := make([]int32, remote)
	for i := range ranks {
		ranks[i] = int32(local + i)
	}
	return Inter{Team{Me: me, Size: local}, Team{Me: -1, Size: remote, Ranks: ranks}}
}

// Barrier ends on no rank before all ranks of the remote group have begun it.
func (i Inter) Barrier(s *Schedule) {
	ReduceBinomial(s, i.Local, nil, nil, 0)
	if i.Local.Me == 0 {
		s.swap(i.Remote, 0, nil, 0, nil)
	}
	BcastBinomial(s, i.Local, nil, 0)
}

// SendBcast is what the root of a Bcast does; others of its group do nothing.
func (i Inter) SendBcast(s *Schedule, buf []byte) {
	s.send(i.Remote, 0, buf)
	s.fence()
}

// RecvBcast is what the group does that gets what a rank of the other one has.
func (i Inter) RecvBcast(s *Schedule, buf []byte, root int) {
	if i.Local.Me == 0 {
		s.recv(i.Remote, root, buf)
		s.fence()
	}
	Bcast(s, i.Local, buf, 0)
}

// SendReduce is what the group does whose vectors are reduced for a root in the
// other one.
func (i Inter) SendReduce(s *Schedule, in []byte, root int) {
	acc := i.reduce(s, in)
	if i.Local.Me == 0 {
		s.send(i.Remote, root, acc)
		s.fence()
	}
}

// RecvReduce is what the root of a Reduce does.
func (i Inter) RecvReduce(s *Schedule, out []byte) {
	s.recv(i.Remote, 0, out)
	s.fence()
}

// reduce reduces the vectors of the local group at its leader.
func (i Inter) reduce(s *Schedule, in []byte) (acc []byte) {
	if i.Local.Me == 0 {
		acc = s.Temp(len(in))
	}
	Reduce(s, i.Local, in, acc, 0)
	return acc
}

// Allreduce gives each group the reduction of the vectors of the other one.
func (i Inter) Allreduce(s *Schedule, in, out []byte) {
	acc := i.reduce(s, in)
	if i.Local.Me == 0 {
		s.swap(i.Remote, 0, acc, 0, out)
	}
	Bcast(s, i.Local, out, 0)
}

// ReduceScatter gives each group the reduction of the vectors of the other one,
// in parts of the lengths of blocks, which are the parts of in.
func (i Inter) ReduceScatter(s *Schedule, in []byte, blocks [][]byte, out []byte) {
	acc := i.reduce(s, in)
	var parts [][]byte
	if i.Local.Me == 0 {
		theirs := s.Temp(len(in))
		s.swap(i.Remote, 0, acc, 0, theirs)
		parts = s.Blocks(len(blocks))
		at := 0
		for k, b := range blocks {
			parts[k] = theirs[at : at+len(b)]
			at += len(b)
		}
	}
	ScatterLinear(s, i.Local, parts, out, 0)
}

// Allgather gives each group the equal blocks of the other one.
func (i Inter) Allgather(s *Schedule, mine, all []byte) {
	var ours []byte
	if i.Local.Me == 0 {
		ours = s.Temp(len(mine) * i.Local.Size)
	}
	Gather(s, i.Local, mine, ours, 0)
	if i.Local.Me == 0 {
		s.swap(i.Remote, 0, ours, 0, all)
	}
	Bcast(s, i.Local, all, 0)
}

// Exchange sends out[k] to member k of the remote group and receives in[k] from
// it. A list that is nil has no messages.
func (i Inter) Exchange(s *Schedule, out, in []Block) {
	for k := range in {
		s.recvBlock(i.Remote, k, in[k])
	}
	for k := range out {
		s.sendBlock(i.Remote, k, out[k])
	}
	s.fence()
}

// Send sends to one member of the remote group.
func (i Inter) Send(s *Schedule, b []byte, to int) {
	s.send(i.Remote, to, b)
	s.fence()
}

// Recv receives from one member of the remote group.
func (i Inter) Recv(s *Schedule, b []byte, from int) {
	s.recv(i.Remote, from, b)
	s.fence()
}
