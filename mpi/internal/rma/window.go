package rma

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Code says what went wrong, in the terms of this layer; losses are p2p.Error.
type Code uint8

// The codes.
const (
	Sync  Code = iota + 1 // there is no epoch for it, or one is in the way
	Range                 // not memory of the target
	Type                  // elements that the operation is not for
)

// Error is what a call of this package returns when it is wrong.
type Error struct {
	Code   Code
	Target int32 // or -1
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Remote is the memory of a target, as it has told when the window was made.
type Remote struct {
	Size     uint64  // bytes
	Unit     uint64  // displacement unit in bytes
	Key      uint32  // to write and read it with; 0: only messages may
	Addr     uint64  // under that key
	Client   int32   // of a ghost that serves it; 0: its rank does
	Locked   bool    // its rank may lock others one by one
	Words    bool    // it begins at a multiple of 8
	Segments bool    // its rank binds by segment
	Follows  bool    // Puts and Gets are to follow at once which process its rank wants to do them
	Others   []Other // that serve it, too
	Own      Access  // of memory that a ghost serves: where it is at the rank itself
}

// Access is where others write and read memory.
type Access struct {
	Key    uint32 // 0: only messages may
	twin   int32  // 0, or the target for whichever of ghost and rank does not serve at present: see board.go
	Addr   uint64
	others *others
}

// Config describes a window.
type Config struct {
	In      p2p.Inside
	Context uint32 // of its communicator
	Rank    int32
	World   []int32 // rank in World of each rank
	Ranks   int     // of the job
	Index   []int32 // the other way round, -1 for those that are not members
	Memory  []byte
	Dynamic bool       // memory is attached; offsets are addresses
	Common  *Common    // or nil: ranks of this host have nothing in common
	Ghosts  *Ghosts    // of the job; nil: none
	Binding Binding    // of Puts and Gets of this rank
	Layers  []uint32   // contexts of overlapping windows; nil: see layers
	Clock   mono.Clock // for how long this rank waits for others; nil: that is not measured
}

// Window is a window as one rank has it.
//
// For each rank of its communicator it takes 136 bytes, as many again where ghosts serve, one more when a rank locks
// this one, and for each of this host 176 more and in the segment, once for all, 4 for each
// pair of them and, if there are no others, 128 for each; beside that some 2.5 KiB, 8 KiB more once short operations were gathered, what
// registering the memory takes, and 120 bytes
// for each Get or fetching operation that was ever under way at a time.
type Window struct {
	flow
	here server // of the memory of this rank

	access  access
	opened  int     // targets that are locked
	started []int32 // of the access epoch of Start
	exposed []int32 // of the exposure epoch of Post
	posted  bool    // there is one: exposed may have no ranks

	near neighbours
}

// flow is what is under way between this rank and its targets.
type flow struct {
	in      p2p.Inside
	context uint32
	me      int32
	self    p2p.ActiveHandler // the window
	index   []int32
	ghosts  *Ghosts // or nil
	boards  *Boards // or nil: Puts and Gets follow none
	layers  layers
	targets []target // by rank, and behind those the other ghosts that serve memory: see spread
	ranks   int
	spread  spread

	locks   bool    // targets may be locked one by one, so that locks of all may have to wait
	busy    bool    // operations were started since the last fence
	touched []int32 // ranks with operations since the last flush of all
	sweeps  int     // goroutines that go over touched: it only grows meanwhile
	pending []pending
	fetches []fetch
	idle    int32 // first free one, or -1
	flying  int   // that are not
	gather  gather
	loop    []byte // of messages to the own rank

	counts counters
}

// access is the access epoch of a rank.
type access uint8

const (
	none   access = iota
	fenced        // between two fences
	starts        // between Start and Complete
	some          // some targets are locked
	all           // between LockAll and UnlockAll
)

// target is what a rank knows of another one as a target.
type target struct {
	Remote
	others  *others       // or nil: one serves all of its memory
	near    *neighbour    // or nil: its memory is not mapped here
	err     error         // that an operation has met and no caller was told of
	home    int32         // the rank in World
	world   int32         // what serves its memory: the rank, or a ghost
	client  int32         // which is told by this for which rank; 0: the rank
	by      int32         // in counters.served: of the process that does what needs no message, or gets that
	waited  mono.Duration // for it
	chunk   int32         // longest body of a message
	acks    int32         // answers to come to sayFlush and sayUnlock
	fetches int32         // answers to come that bring data
	writes  int32         // in Window.pending, which messages to the target come behind
	apart   int32         // there, too: Reads, and Writes that are there when they are done
	posts   int32         // its exposure epochs that this rank has not joined
	ends    int32         // its access epochs that have ended and this rank has not waited for
	held    Mode          // its lock that this rank has
	free    bool          // it was not asked for that, because of NOCHECK
	asked   bool          // it was, and has not given it yet
	refused bool          // it could not give it at once
	dirty   bool          // something was sent that this rank has not asked about yet
	listed  bool          // in Window.touched
	begun   bool          // in Window.started
	plain   bool          // Writes go there
	reached bool          // and Reads
}

// Tally counts what is left of one operation whose end a caller waits for.
type Tally struct {
	Left int
	Err  error
}

func (t *Tally) end(err error) {
	if t == nil {
		return
	}
	t.Left--
	if t.Err == nil {
		t.Err = err
	}
}

// pending is a Write or a Read under way.
type pending struct {
	r      *p2p.Request
	target int32
	apart  bool // in target.apart
	tally  *Tally
}

// fetch is an answer to come.
type fetch struct {
	cur    dtype.Cursor // where the next bytes go
	bytes  int
	tally  *Tally
	target int32
	next   int32 // in the list of free ones
	busy   bool
}

// fetchMost is how many answers may be under way, so that what waits for room at a target
// is bounded.
const fetchMost = 512

// selfChunk is the longest message to the own rank in bytes.
const selfChunk = 16 << 10

// New makes a window and lets others find it. It can be used when Meet was called.
func New(c Config) *Window {
	w := &Window{
		flow: flow{ranks: len(c.World), spread: spread{binding: c.Binding}, layers: c.Layers, in: c.In, context: c.Context, me: c.Rank, index: c.Index, targets: make([]target, len(c.World)), ghosts: c.Ghosts, idle: -1,
			counts: counters{clock: c.Clock, served: []Served{{By: ByItself}, {By: ByOwn}, {By: ByTarget}}},
		},
	}
	w.self = w
	w.here = server{in: c.In, context: c.Context, ranks: c.Ranks, me: c.World[c.Rank], self: w, memory: memory{mem: c.Memory, dynamic: c.Dynamic}}
	w.near.take(w, c.Common)
	for i, world := range c.World { // others may use the memory here before this rank knows theirs
		t := &w.targets[i]
		t.home, t.world = world, world
		switch {
		case t.near != nil:
			t.by = ByItself
		case i == int(w.me):
			t.by = ByOwn
		default:
			t.by = ByTarget
		}
		if t.chunk = selfChunk; i != int(w.me) {
			t.chunk = int32(w.in.ActiveMax(world))
		}
	}
	w.in.SetActive(c.Context, w)
	for _, context := range c.Layers {
		w.in.SetActive(context, w)
	}
	return w
}

// Meet tells where the memory of all ranks is.
func (w *flow) Meet(all []Remote) {
	served := false
	for i := range w.ranks {
		t := &w.targets[i]
		t.Remote = all[i]
		w.locks = w.locks || t.Locked
		switch {
		case t.Client != 0:
			assign(w, t, true)
			served = true
		case i == int(w.me):
			continue
		}
		w.reach(int32(i), t)
	}
	meetOthers(w)
	if served { // what pair adds later must not move what other goroutines point to while they wait
		w.targets = slices.Grow(w.targets, w.ranks)
	}
	pair(w)
}

// Unit returns the displacement unit of a target in bytes.
func (w *flow) Unit(rank int) int { return int(w.targets[rank].Unit) }

// Size returns the size of the memory of a target in bytes.
func (w *flow) Size(rank int) int { return int(w.targets[rank].Size) }

// rankOf returns the rank of a member of World, or of that which a ghost speaks of, or -1.
func (w *flow) rankOf(world, client int32) int32 {
	if client != 0 {
		if world = w.ghosts.rank(world, client); world < 0 {
			return -1
		}
	}
	switch {
	case w.index == nil && int(world) < w.ranks:
		return world
	case int(world) >= len(w.index): // a ghost that says nothing of a rank
		return -1
	}
	return w.index[world]
}

// own reports whether the memory of a rank is that of this rank, and no ghost serves it.
func (w *flow) own(rank int32) bool { return rank == w.me && w.targets[rank].client == 0 }

// target returns what serves the memory of a rank: the rank itself.
func (w *flow) target(rank int32) *target { return &w.targets[rank] }

// touch notes that something is sent to a target that a flush has to cover.
func (w *flow) touch(rank int32, t *target) {
	t.dirty, w.busy = true, true
	if !t.listed {
		t.listed = true
		w.touched = append(w.touched, rank)
	}
}

// send sends a message to a rank. It waits for room.
func (w *flow) send(rank int32, a *p2p.Active) error {
	t := w.target(rank)
	a.Context = w.layers.of(t.client, w.context)
	a.What |= t.client << clientShift
	if w.own(rank) {
		return w.sendSelf(t, a)
	}
	return w.deliver(t.world, a)
}

// sendSelf does at once what a message to the own rank says.
func (w *flow) sendSelf(t *target, a *p2p.Active) error {
	n := a.Size()
	if cap(w.loop) < n {
		w.loop = make([]byte, n)
	}
	b := w.loop[:n]
	a.Put(b)
	if !w.self.Active(t.home, a.What, a.ID, b) {
		return errOwn
	}
	return nil
}

var errOwn = errors.New("rma: a rank refuses a message of its own")

// word sends a message without a body, behind what is gathered for the rank or with it.
func (w *flow) word(rank, what int32, id uint32) error {
	w.awaitGather()
	if w.gather.f.n > 0 && w.gather.target == rank {
		if what == sayFlush || what == sayUnlock || what == sayComplete {
			return w.sendGathered(what, id)
		}
		if err := w.sendGathered(0, 0); err != nil {
			return err
		}
	}
	a := p2p.Active{What: what, ID: id}
	return w.send(rank, &a)
}

// record returns a free record of a fetch.
func (w *flow) record() (int32, *fetch) {
	i := w.idle
	if i < 0 {
		i = int32(len(w.fetches))
		w.fetches = append(w.fetches, fetch{})
	} else {
		w.idle = w.fetches[i].next
	}
	w.flying++
	f := &w.fetches[i]
	f.busy = true
	return i, f
}

// fetched ends a fetch.
func (w *flow) fetched(i int32, err error) {
	f := &w.fetches[i]
	w.target(f.target).fetches--
	f.tally.end(err)
	*f = fetch{next: w.idle}
	w.idle = i
	w.flying--
}

// note keeps an error until a caller waits for the target.
func (t *target) note(err error) {
	if t.err == nil {
		t.err = err
	}
}

// take returns the error that was kept.
func (t *target) take() error {
	err := t.err
	t.err = nil
	return err
}

// abandon forgets what is to come from a target that will send nothing any more, and notes why.
func (w *flow) abandon(rank int32, err error) {
	t := w.target(rank)
	t.note(err)
	if w.gather.target == rank {
		w.gather.f.n, w.gather.data = 0, w.gather.data[:0]
	}
	for i := range w.fetches {
		if f := &w.fetches[i]; f.busy && f.target == rank {
			w.fetched(int32(i), err)
		}
	}
	t.acks, t.asked, t.dirty = 0, false, false
}

// awaitPending waits until another Write or Read may be under way.
func (w *flow) awaitPending() {
	for len(w.pending) >= fetchMost {
		if w.reap(); len(w.pending) < fetchMost {
			return
		}
		w.in.Progress()
	}
}

// abandonLost abandons the ranks from which answers are to come, and none will.
func (w *flow) abandonLost() {
	for i := range w.fetches {
		if f := &w.fetches[i]; f.busy {
			if err := w.in.Trouble(w.context, w.target(f.target).world); err != nil {
				w.abandon(f.target, err)
			}
		}
	}
}

// reap takes the results of Writes and Reads that are done.
func (w *flow) reap() {
	left := w.pending[:0]
	for _, p := range w.pending {
		if !p.r.Ready() {
			left = append(left, p)
			continue
		}
		_, err := w.in.Wait(p.r)
		t := w.target(p.target)
		if p.apart {
			t.apart--
		} else {
			t.writes--
		}
		if p.tally.end(err); p.tally == nil && err != nil {
			t.note(err)
		}
	}
	clear(w.pending[len(left):])
	w.pending = left
}
