package footprint

import (
	"errors"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// world carries connections over the simulator's streams, which no descriptor
// and no port number of the machine limits.
type world struct {
	world *sim.World
	ends  [2]*later
}

// later is the clock and the parker of an end before its task runs.
type later struct {
	node *sim.Node
	task *sim.Task // nil: it does not run
}

func newWorld() carrier {
	w := &world{world: sim.New(sim.Config{Limit: 1 << 62})}
	for i, n := range w.world.Nodes(len(w.ends)) {
		w.ends[i] = &later{node: n}
	}
	return w
}

func (w *world) open(i int) (verbs.Config, error) {
	return overStreams(w.ends[i].node.Streams(sim.StreamConfig{}), w.ends[i], w.ends[i]), nil
}

// Now implements mono.Clock.
func (l *later) Now() mono.Time {
	if l.task == nil {
		return mono.Time(1)
	}
	return l.task.Now()
}

// Park implements progress.Parker.
func (l *later) Park(until mono.Time, idle mono.Duration) bool {
	if l.task == nil {
		return false
	}
	return l.task.Park(until, idle)
}

func (w *world) run(server, clients turn) error {
	turns := [2]turn{server, clients}
	var errs [2]error
	for i := range turns {
		w.world.Go(w.ends[i].node, [2]string{"server", "clients"}[i], func(task *sim.Task) error {
			w.ends[i].task = task
			errs[i] = turns[i].play()
			w.ends[i].task = nil
			return errs[i]
		})
	}
	err := w.world.Run()
	turns = [2]turn{} // the world keeps its tasks: they shall not keep the ends
	return errors.Join(append(errs[:], err)...)
}

// play steps an end until it has ended.
func (t turn) play() error {
	for {
		work, over, err := t.step()
		if over || err != nil {
			return err
		}
		if work == 0 {
			t.ctx.Engine().Park()
		}
	}
}
