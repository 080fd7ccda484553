package sim

import (
	"fmt"
	"maps"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// job is what the ranks of one Launch share.
type job struct {
	ranks  []*Rank
	inside int // ranks that have entered the present Fence
}

// Rank is one rank's membership in a simulated job. It implements boot.Job.
type Rank struct {
	job    *job
	task   *Task
	rank   int
	local  int               // position among the ranks of the node
	staged map[string]string // put since the last Fence
	table  map[string]string // visible to all
}

// AbortError is what Run returns when a rank has called Abort.
type AbortError struct {
	Rank, Code int
	Why        string
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("sim: rank %d aborted the job with code %d: %s", e.Rank, e.Code, e.Why)
}

// Launch starts one rank on each of the nodes given, which may repeat: rank i
// runs body on nodes[i] as the task "rank i". It is xrun's part in a world.
func (w *World) Launch(nodes []*Node, body func(*Task, *Rank) error) {
	j := &job{}
	perNode := map[*Node]int{}
	for i, n := range nodes {
		r := &Rank{job: j, rank: i, local: perNode[n], staged: map[string]string{}, table: map[string]string{}}
		perNode[n]++
		j.ranks = append(j.ranks, r)
		r.task = w.Go(n, fmt.Sprintf("rank %d", i), func(t *Task) error { return body(t, r) })
	}
}

// Rank returns the number of the rank.
func (r *Rank) Rank() int { return r.rank }

// Size returns the number of ranks.
func (r *Rank) Size() int { return len(r.job.ranks) }

// Host returns the number of the node and the position on it.
func (r *Rank) Host() (host, localRank int) { return r.task.node.id, r.local }

// Key returns the secret of the job, which is made of the seed.
func (r *Rank) Key() uint64 { return r.task.world.config.Seed ^ 0x5851f42d4c957f2d }

// Put makes a value visible to all ranks after the next Fence.
func (r *Rank) Put(key, value string) error {
	r.staged[key] = value
	return nil
}

// Fence waits until all ranks are inside. It takes no virtual time.
func (r *Rank) Fence() error {
	r.task.settle()
	r.job.inside++
	if r.job.inside < len(r.job.ranks) {
		doing := r.task.doing
		r.task.Doing("fence of the job")
		r.task.wait(mono.Never, false)
		r.task.Doing(doing)
		return nil
	}
	r.job.inside = 0
	for _, other := range r.job.ranks {
		maps.Copy(other.table, other.staged)
		clear(other.staged)
		if other != r {
			other.task.wake()
		}
	}
	return nil
}

// Get returns what rank had put under key before the last Fence.
func (r *Rank) Get(rank int, key string) (string, bool) {
	if rank < 0 || rank >= len(r.job.ranks) {
		return "", false
	}
	v, ok := r.job.ranks[rank].table[key]
	return v, ok
}

// Abort ends the world. It does not return.
func (r *Rank) Abort(code int, why string) {
	r.task.world.failed = &AbortError{Rank: r.rank, Code: code, Why: why}
	r.task.handOver()
}

// Finalize does nothing: Run watches how ranks end.
func (r *Rank) Finalize() error { return nil }
