package trace

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// WindowCount is what a rank has done with a window of one-sided communication.
type WindowCount struct {
	Name    string `json:"name"`
	Context uint32 `json:"context"` // of its communicator, by which events name it
	Ranks   int    `json:"ranks"`

	Fences            uint64 `json:"fences"` // epochs that have begun
	Starts            uint64 `json:"starts"`
	Posts             uint64 `json:"posts"`
	Locks             uint64 `json:"locks"`
	LockAlls          uint64 `json:"lock_alls"`
	WaitedNanoseconds uint64 `json:"waited_ns"`           // for locks, and for answers of targets
	WaitedMost        uint64 `json:"waited_most_ns"`      // of that, for one rank
	WaitedFor         int    `json:"waited_for"`          // which; -1: for none
	Served            []Done `json:"served_by,omitempty"` // operations, by the server that did them
}

// Done is what one has done of the operations on a window.
type Done struct {
	By          string `json:"by"` // "itself", "own rank", "target", "ghost 0", ...
	Puts        uint64 `json:"puts"`
	Gets        uint64 `json:"gets"`
	Accumulates uint64 `json:"accumulates"`
	who         uint64
}

// ServerName names the server of operations, by a number that rma.Server returns.
func ServerName(who int) string {
	if who < len(servers) {
		return servers[max(who, 0)]
	}
	return fmt.Sprintf("ghost %d", who-len(servers))
}

// servers are those of rma.ByItself, ByOwn and ByTarget.
var servers = [...]string{"loads and stores", "own rank", "target"}

const (
	// MaxWindows is of how many windows a record has counters.
	MaxWindows = 16
	// MaxServed is of how many that do operations on a window.
	MaxServed = 8

	windowHead = nameLen + 9*8
	windowLen  = windowHead + MaxServed*doneLen
	doneLen    = 4 * 8
)

func (c *WindowCount) words() []*uint64 {
	return []*uint64{&c.Fences, &c.Starts, &c.Posts, &c.Locks, &c.LockAlls, &c.WaitedNanoseconds, &c.WaitedMost}
}

func (d *Done) words() []*uint64 { return []*uint64{&d.who, &d.Puts, &d.Gets, &d.Accumulates} }

// windowAt returns where the window with a number below MaxWindows is.
func windowAt(i int) int { return headLen + maxOps*opLen + MaxComms*commLen + i*windowLen }

// SetWindow writes the counters of a window, by a number below MaxWindows. Of its name the
// first 40 bytes are kept, of the servers the first 8.
func (r *Record) SetWindow(i int, c WindowCount) {
	at := r.putName(windowAt(i), c.Name, c.Context, c.Ranks)
	r.put(at, uint64(c.WaitedFor+1))
	putWords(r.b[at+8:], c.words())
}

// SetDone writes what one has done of the operations on a window.
func (r *Record) SetDone(window, i, who int, puts, gets, accumulates uint64) {
	if i < MaxServed {
		d := Done{Puts: puts, Gets: gets, Accumulates: accumulates, who: uint64(who)}
		putWords(r.b[windowAt(window)+windowHead+i*doneLen:], d.words())
	}
}

// window reads what was written. false means that nothing was.
func (r *Record) window(i int) (c WindowCount, ok bool) {
	at := 0
	c.Name, c.Context, c.Ranks, at = r.nameAt(windowAt(i))
	c.WaitedFor = int(int32(r.get(at))) - 1
	getWords(r.b[at+8:], c.words())
	for k := range MaxServed {
		var d Done
		getWords(r.b[windowAt(i)+windowHead+k*doneLen:], d.words())
		if d.Puts+d.Gets+d.Accumulates > 0 {
			d.By = ServerName(int(uint32(d.who)))
			c.Served = append(c.Served, d)
		}
	}
	return c, c.Ranks > 0
}

// windows reads all.
func (r *Record) windows() (all []WindowCount) {
	for i := range MaxWindows {
		if c, ok := r.window(i); ok {
			all = append(all, c)
		}
	}
	return all
}

// addWindows adds the counters of a rank. at is where each window is in the summary. Which rank has
// waited for which is of one rank, and not in it.
func (s *Summary) addWindows(windows []WindowCount, at map[comm]int) {
	for _, c := range windows {
		key := comm{c.Name, c.Context, c.Ranks}
		i, found := at[key]
		if !found {
			i = len(s.Windows)
			at[key] = i
			s.Windows = append(s.Windows, WindowCount{Name: c.Name, Context: c.Context, Ranks: c.Ranks, WaitedFor: -1})
		}
		sum, most := &s.Windows[i], s.Windows[i].WaitedMost
		for k, w := range sum.words() {
			*w += *c.words()[k]
		}
		sum.WaitedMost = max(most, c.WaitedMost)
		for _, d := range c.Served {
			k := slices.IndexFunc(sum.Served, func(have Done) bool { return have.By == d.By })
			if k < 0 {
				k = len(sum.Served)
				sum.Served = append(sum.Served, Done{By: d.By})
			}
			sum.Served[k].Puts += d.Puts
			sum.Served[k].Gets += d.Gets
			sum.Served[k].Accumulates += d.Accumulates
		}
	}
}

// title is what a window is called.
func (c *WindowCount) title() string {
	if c.Name != "" {
		return c.Name
	}
	return fmt.Sprintf("context %d", c.Context)
}

// writeWindows writes what was done with windows: the epochs of all ranks, the servers of the
// operations, and for which rank each has waited longest.
func (s Summary) writeWindows(w io.Writer, t *tabwriter.Writer) error {
	if len(s.Windows) == 0 {
		return nil
	}
	fmt.Fprintln(t, "\nwindow\tranks\tfences\tstarts\tposts\tlocks\tlock_alls\twaited\t")
	for _, c := range s.Windows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t\n", c.title(), c.Ranks, c.Fences, c.Starts, c.Posts, c.Locks, c.LockAlls, short(c.WaitedNanoseconds))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(t, "\nwindow\tserved by\tputs\tgets\taccumulates\t")
	for _, c := range s.Windows {
		for _, d := range c.Served {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t\n", c.title(), d.By, d.Puts, d.Gets, d.Accumulates)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range s.Ranks {
		for _, c := range r.Windows {
			if c.WaitedFor < 0 {
				continue
			}
			if _, err := fmt.Fprintf(w, "rank %d has waited %v in window %s, of that %v for its rank %d\n",
				r.Rank, short(c.WaitedNanoseconds), c.title(), short(c.WaitedMost), c.WaitedFor); err != nil {
				return err
			}
		}
	}
	return nil
}
