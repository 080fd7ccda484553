package p2p

import (
	"errors"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Stats counts what an endpoint did.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent
	Reads             uint64 // large messages received that were read: see Rendezvous
	Delegated         uint64 // large messages of this rank for a ghost to send
	Invited           uint64 // large messages of this rank into memory that a ghost of the receiver has
	Met               uint64 // of the delegated ones, those that went from ghost to ghost
	Atomics           uint64 // of memory of others, asked for
	Near              uint64 // of the eager ones, those through shared memory
	Pushed            uint64 // pieces of large messages that this rank has copied into the memory of neighbours
	Unexpected        uint64 // messages that came before their receive
	Queued            uint64 // times that the queue pair had no room
	Malformed         uint64 // messages that our code did not send
	Stale             uint64 // answers to requests that had failed, and messages of lost peers
	Connections       uint64 // that came about
	Linked            uint64 // messages whose data went over a connection beside datagrams
	Strangers         uint64 // connections that a process asked for which is not of this job
}

// Endpoint is the point-to-point half of a rank: what its parts share, and what goroutines
// call. Each part keeps its own state, and the others use its methods.
//
// Owner: engine.
type Endpoint struct {
	Stats Stats

	cfg   Config
	rank  int32
	eng   *progress.Engine
	peers []peer

	driver     // how a goroutine makes progress
	groups     // communicators
	failures   failures
	requests   requestPool
	match      matching
	out        sender
	net        network
	near       neighbours
	poller     poller
	rendezvous rendezvous
	reads      reads
	pulls      pulls
	pieces     pieces
	lanes      lanes
	actives    actives
	delegator  delegator
	inviter    inviter
	delegatee  *delegatee // of a ghost, or nil
}

// New makes an endpoint with receives posted, so that peers may send as soon
// as they know its address. It adds itself to the context's engine. The caller closes it,
// and the context, which stays the caller's, behind it.
func New(ctx *verbs.Context, cfg Config) (*Endpoint, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	ep := &Endpoint{cfg: cfg, rank: int32(cfg.Rank), eng: ctx.Engine(), peers: make([]peer, cfg.Size)}
	ep.driver = driver{ep: ep, waits: &waits{ep: ep}}
	ep.groups.ep = ep
	ep.failures = failures{ep: ep, abortAt: mono.Never}
	ep.requests.ep = ep
	ep.match.ep = ep
	ep.out.ep = ep
	ep.near.cfg, ep.near.eng, ep.near.stats = &ep.cfg, ep.eng, &ep.Stats
	ep.poller.ep, ep.poller.wakeAt = ep, mono.Never
	ep.rendezvous = rendezvous{ep: ep, most: min(ctx.Attr().MaxMsg, 1<<30), wr: verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, NumSGE: 1}}
	ep.reads = reads{ep: ep, most: readPiece, wr: verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, NumSGE: 1}}
	ep.pulls.ep = ep
	ep.actives = actives{ep: ep, inline: verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Inline}, atomic: verbs.SendWR{Flags: verbs.Signaled, NumSGE: 1}}
	ep.pieces = pieces{ep: ep, most: cfg.EagerIdle}
	if cfg.tunesIdle {
		ep.pieces.most = idleMost
	}
	ep.lanes.ep, ep.delegator.ep, ep.inviter.ep = ep, ep, ep
	for i := range ep.peers {
		ep.peers[i].rank, ep.peers[i].self = int32(i), i == cfg.Rank
	}
	if cfg.Aborted != nil || cfg.Deaths != nil {
		ep.failures.abortAt = ep.eng.Clock().Now().Add(abortInterval)
	}
	ep.eng.SetSleepHook(ep.waits)
	if err := ep.net.create(ctx, ep); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	if cfg.Numbers {
		ep.match.numbers = map[match.Envelope]uint64{}
	}
	if cfg.Threads {
		ep.lock = newProgressLock(ep)
	}
	ep.eng.Add(&ep.poller)
	ep.minSpins, ep.maxSpins, ep.maxHits = spinsLeast, spinsMost, hitsFar
	if ep.eng.Crowded() {
		ep.maxSpins = spinsLeast
	}
	if err := ep.near.listen(); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	return ep, nil
}

// Engine returns the engine that moves everything.
func (ep *Endpoint) Engine() *progress.Engine { return ep.eng }

// Close takes the endpoint off the engine and frees its buffers. Call Drain
// first to make sure that everything sent has arrived.
func (ep *Endpoint) Close() error {
	ep.Enter()
	defer ep.Leave()
	ep.eng.Remove(&ep.poller)
	return errors.Join(ep.near.close(), ep.net.close())
}
