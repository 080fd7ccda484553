package mpi

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Names of process sets (MPI 4.1, section 11.3.2). Those that begin with PsetHost are
// the ranks of a host: PsetHost + "0" and so on. Hosts are numbered from 0 in the order of
// the launcher. The case of letters is of no matter, as in other URIs.
const (
	PsetWorld = "mpi://WORLD"
	PsetSelf  = "mpi://SELF"
	PsetHost  = "xwarp://host/"
)

// MaxStringTag is the longest tag in bytes that tells communicators apart that are
// made at the same time (MPI_MAX_STRINGTAG_LEN, without the zero at the end).
const MaxStringTag = 255

// Psets returns the names of the process sets that this process is in
// (MPI_Session_get_num_psets, MPI_Session_get_nth_pset): World, Self, and its host.
// Their order stays as it is.
func (s *Session) Psets() ([]string, error) {
	if err := s.live("Session.Psets"); err != nil {
		return nil, s.report(err)
	}
	return []string{PsetWorld, PsetSelf, PsetHost + strconv.Itoa(s.p.hosts[s.p.rank])}, nil
}

// PsetInfo returns what is known about a process set (MPI_Session_get_pset_info): its
// number of processes, under the key mpi_size. The copy belongs to the caller.
func (s *Session) PsetInfo(name string) (*Info, error) {
	const op = "Session.PsetInfo"
	world, err := s.pset(op, name)
	if err != nil {
		return nil, s.report(err)
	}
	return &Info{[]infoPair{{"mpi_size", strconv.Itoa(len(world))}}}, nil
}

// GroupFromPset returns the processes of a process set in the order of their ranks
// (MPI_Group_from_session_pset). The host of another process is a set for that, too. It
// asks no process whether it lives.
func (s *Session) GroupFromPset(name string) (*Group, error) {
	world, err := s.pset("Session.GroupFromPset", name)
	if err != nil {
		return nil, s.report(err)
	}
	return &Group{world: world, session: s}, nil
}

// pset returns the ranks of World in a set.
func (s *Session) pset(op, name string) (world []int32, err error) {
	if err := s.live(op); err != nil {
		return nil, err
	}
	for rank, host := range s.p.hosts {
		if strings.EqualFold(name, PsetWorld) || strings.EqualFold(name, PsetSelf) && rank == s.p.rank || strings.EqualFold(name, PsetHost+strconv.Itoa(host)) {
			world = append(world, int32(rank))
		}
	}
	if world == nil {
		return nil, fail(ErrArg, op, "there is no process set %.64q: Session.Psets has their names", name)
	}
	return world, nil
}

// sessionContext is the context of messages between ranks that make a communicator
// and have none in common. It is the same on all ranks.
const sessionContext = 4

// meet makes the communicator that these messages are of. It is called inside.
func (p *Proc) meet() {
	p.meeting = p.view(sessionContext, p.world.Group())
	p.meeting.announce()
}

// CommCreateFromGroup makes a communicator of a group of the session
// (MPI_Comm_create_from_group). All ranks of the group call it, with the same group and
// the same tag, of at most MaxStringTag bytes. Goroutines of a rank that make
// communicators at the same time give different tags. Of the empty group it makes
// none. h becomes the error handler of the communicator; it also sees the error when
// there is none to be had, on a communicator that is of no use.
func (s *Session) CommCreateFromGroup(g *Group, tag string, info *Info, h Errhandler) (*Comm, error) {
	m := making{s: s, op: "Session.CommCreateFromGroup", stringTag: tag, h: h}
	hints, err := m.check(info, g)
	if err != nil || g.Size() == 0 {
		return nil, m.report(err)
	}
	var n *Comm
	err = m.among(g, func(part *Comm) error {
		got, err := part.agree(m.op, 1, nil)
		if err == nil {
			n = s.p.newComm(2*got[0], g)
		}
		return err
	})
	return m.made(n, hints, err)
}

// IntercommCreateFromGroups makes an intercommunicator of two groups of the session
// that do not overlap (MPI_Intercomm_create_from_groups), the first of which this rank
// is in. All ranks of both call it with the same tag, those of one group with the same
// local group and the same leader, a rank of it. The remote group and the rank of its
// leader in it count at the leader only. See CommCreateFromGroup for the rest.
func (s *Session) IntercommCreateFromGroups(local *Group, leader int, remote *Group, remoteLeader int, tag string, info *Info, h Errhandler) (*Comm, error) {
	m := making{s: s, op: "Session.IntercommCreateFromGroups", stringTag: tag, h: h}
	hints, err := m.check(info, local)
	if err == nil && local.Size() > 0 {
		err = m.checkLeaders(local, leader, remote, remoteLeader)
	}
	if err != nil || local.Size() == 0 || remote != nil && remote.Size() == 0 {
		return nil, m.report(err)
	}
	var n *Comm
	err = m.among(local, func(part *Comm) error {
		var other []int32
		got, err := part.agree(m.op, 2, func(free *contextSet) (err error) {
			var exchange func(out, in []byte) error
			if part.rank == leader {
				var end func()
				exchange, end = m.leaders(local, remote, remoteLeader)
				defer end()
			}
			other, err = part.meet(m.op, leader, free, exchange)
			return err
		})
		if err == nil {
			n = part.inter(got, &Group{world: other, session: s})
		}
		return err
	})
	return m.made(n, hints, err)
}

// making is a communicator that is being made of groups.
type making struct {
	s         *Session
	op        string
	stringTag string
	h         Errhandler
}

// report shows an error to the handler that the communicator was to have.
func (m *making) report(err error) error {
	if m.s == nil {
		return err
	}
	none := &Comm{p: m.s.p, ep: m.s.p.ep, session: m.s, freed: true}
	none.SetErrhandler(m.h)
	return none.report(err)
}

// check says what is wrong with the arguments, and else returns the hints.
func (m *making) check(info *Info, local *Group) (hints *Info, err error) {
	if err := m.s.live(m.op); err != nil {
		return nil, err
	}
	var scratch Comm
	switch {
	case local == nil:
		return nil, fail(ErrGroup, m.op, "the group is nil")
	case local.Size() == 0:
	case local.mixed || local.session != m.s:
		return nil, fail(ErrGroup, m.op, "the group is not of this session")
	case local.Rank(m.s.p) == Undefined:
		return nil, fail(ErrGroup, m.op, "this rank is not in the group: only its ranks call it")
	}
	if n := len(m.stringTag); n > MaxStringTag {
		return nil, fail(ErrArg, m.op, "a tag of %d bytes; tags have at most %d", n, MaxStringTag)
	}
	err = scratch.hint(m.op, info)
	return scratch.hints, err
}

func (m *making) checkLeaders(local *Group, leader int, remote *Group, remoteLeader int) error {
	switch {
	case leader < 0 || leader >= local.Size():
		return fail(ErrRank, m.op, "leader %d is no rank of the local group, which has ranks 0 to %d", leader, local.Size()-1)
	case local.Rank(m.s.p) != leader:
		return nil
	case remote == nil:
		return fail(ErrGroup, m.op, "the remote group is nil")
	case remote.Size() == 0:
		return nil
	case remote.mixed || remote.session != m.s:
		return fail(ErrGroup, m.op, "the remote group is not of this session")
	case remoteLeader < 0 || remoteLeader >= remote.Size():
		return fail(ErrRank, m.op, "leader %d is no rank of the remote group, which has ranks 0 to %d", remoteLeader, remote.Size()-1)
	case local.Intersection(remote).Size() > 0:
		return fail(ErrGroup, m.op, "a rank is in both groups")
	}
	return nil
}

// tag is that of the messages: a hash of the string, with room for two kinds. Two
// strings with one hash do no harm, unless goroutines use them at the same time: then
// the second one gets an error.
func (m *making) tag(kind int32) int32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.stringTag)) // never fails
	sum := h.Sum64()
	return tagPart | int32((sum^sum>>29^sum>>58)&(1<<29-1))<<1 | kind
}

// The kinds.
const (
	amongRanks = iota // of a group
	amongLeaders
)

// among calls f with a communicator of the group that lives as long, in which messages
// have the tag.
func (m *making) among(g *Group, f func(part *Comm) error) error {
	p, tag := m.s.p, m.tag(amongRanks)
	p.ep.Enter()
	_, taken := p.creating[tag]
	p.creating[tag] = struct{}{}
	p.ep.Leave()
	if taken {
		return fail(ErrArg, m.op, "another goroutine is making a communicator with the tag %.64q, or one that looks the same: use another tag", m.stringTag)
	}
	part := p.view(sessionContext, g)
	part.coll.part = tag
	end := p.ep.RegisterPart(sessionContext, tag, g.world)
	err := f(part)
	end()
	p.ep.Enter()
	delete(p.creating, tag)
	p.ep.Leave()
	return err
}

// leaders returns how to exchange bytes with the leader of the other group. When a
// rank of either group is lost, it fails, for the other leader may never come.
func (m *making) leaders(local, remote *Group, remoteLeader int) (exchange func(out, in []byte) error, end func()) {
	p, tag, peer := m.s.p, m.tag(amongLeaders), remote.world[remoteLeader]
	end = p.ep.RegisterPart(sessionContext, tag, slices.Concat(local.world, remote.world))
	return func(out, in []byte) error {
		return p.exchange(m.op, p.meeting, match.Envelope{Context: sessionContext + 1, Source: peer, Tag: tag}, out, in)
	}, end
}

// exchange sends bytes to a rank of World, which is the source of env, and receives as
// many that fit env from it. They count as messages of c.
func (p *Proc) exchange(op string, c *Comm, env match.Envelope, out, in []byte) error {
	r := p.ep.Irecv(env, in)
	back := env
	back.Source = int32(p.rank)
	c.sentAs(back, env.Source, len(out))
	_, err := p.ep.Isend(back, int(env.Source), out).Wait()
	st, recvErr := r.Wait()
	c.gotAs(env.Context, st)
	if err == nil {
		err = recvErr
	}
	return wrap(op, err)
}

// made gives a new communicator what it was to have.
func (m *making) made(n *Comm, hints *Info, err error) (*Comm, error) {
	if err != nil {
		return nil, m.report(err)
	}
	n.SetErrhandler(m.h)
	n.assume(hints)
	return n, nil
}
