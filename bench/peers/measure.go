package peers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
)

// Measurement says what is compared and how. Program and Cores must be set.
type Measurement struct {
	// Program is the command of a rank of xwarp, which calls Rank.
	Program []string
	// Server is the command that serves raw tests: see bench.PlaceConfig.
	// Default: raw is left out.
	Server []string
	// Xmpicc compiles programs in C for xwarp: a column for each ABI. Default: none.
	Xmpicc string
	// Peers are the other libraries.
	Peers []Peer
	// Fabric carries xwarp: "xdp" or "udp", or "shm" inside of a host.
	Fabric string
	// Ways are how ours is served, with a column for each. Default: without ghosts alone.
	Ways []bench.Way
	// Cores are the processors that may be used.
	Cores []int
	// Rounds is how many bursts each library gets per size, in turns. Default 5.
	Rounds int
	// Burst is about how long one of them takes. Default 40 ms.
	Burst mono.Duration
	// Best makes results of latency those of the best burst, not of the median
	// one: what else the machine does only adds to them.
	Best bool
	// Progress is told what comes next.
	Progress func(what string)
	// Abort ends the process when MPI asks for it.
	Abort func(code int, why string)
	// Budget is how long Measure goes on to begin rows, and rounds of rows that have had
	// their share of it. Default: to the last one.
	Budget mono.Duration

	pace  *pace    // of Measure
	tests programs // of Measure
}

// pace is how far Measure is.
type pace struct {
	began     mono.Time
	budget    mono.Duration // or 0
	all, done int           // rows
}

// share returns when the row that begins has had its share of the budget: of what is left,
// as much as each row to come. It returns 0 without a budget.
func (p *pace) share(now mono.Time) mono.Time {
	if p == nil || p.budget == 0 {
		return 0
	}
	return now.Add(p.began.Add(p.budget).Sub(now) / mono.Duration(p.all-p.done))
}

// left says how far it is, and how long the rest will take at the pace so far.
func (p *pace) left(now mono.Time) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("; row %d of %d", p.done+1, p.all)
	if p.done > 0 {
		rest := float64(now.Sub(p.began)) / float64(p.done) * float64(p.all-p.done)
		if p.budget > 0 {
			rest = max(min(rest, float64(p.began.Add(p.budget).Sub(now))), 0)
		}
		text += fmt.Sprintf(", %v left", time.Duration(rest).Round(time.Second))
	}
	return text
}

// column is what fills a column of a table.
type column struct {
	library, carrier string
	way              bench.Way // of ours
	ours             bool
	run              func(t Table, o Order) (bench.Point, error)
	close            func() error
}

// RawLibrary is what raw frames are called in results.
const RawLibrary = "raw"

// Measure measures the tables and hands each row to emit: a result for each
// library, those that cannot do it without rounds.
func (m Measurement) Measure(tables []Table, emit func(Table, int, []bench.Result) error) error {
	_, _ = progress.DeferSysmon() // ranks run on the same cores
	m.pace, m.tests = &pace{began: mono.Real{}.Now(), budget: m.Budget}, programs{}
	for _, t := range tables {
		m.pace.all += len(t.Sizes)
	}
	for len(tables) > 0 && !m.spent() {
		n := 1
		for n < len(tables) && same(tables[n].Where, tables[0].Where) {
			n++
		}
		if err := m.together(tables[:n], emit); err != nil {
			return err
		}
		tables = tables[n:]
	}
	return nil
}

// spent reports whether no further row is to begin.
func (m Measurement) spent() bool {
	return m.Budget > 0 && mono.Real{}.Now().Sub(m.pace.began) >= m.Budget
}

// together measures tables of the same ranks.
func (m Measurement) together(tables []Table, emit func(Table, int, []bench.Result) error) (err error) {
	columns, err := m.open(tables)
	defer func() {
		for _, c := range columns {
			err = errors.Join(err, c.close())
		}
	}()
	if err == nil {
		err = m.warm(tables[0].Where, columns)
	}
	if err != nil {
		return err
	}
	for _, t := range tables {
		for _, size := range t.Sizes {
			if m.spent() {
				return nil
			}
			results, err := m.row(t, size, columns)
			m.pace.done++
			if err != nil {
				return err
			}
			if err := emit(t, size, results); err != nil {
				return err
			}
		}
	}
	return nil
}

// warm has all ranks exchange short messages before the first row, so that no row is what a job
// begins with: connections, and memory that no rank has touched yet, which costs tens of
// microseconds for each page where a hypervisor shadows the page tables.
func (m Measurement) warm(w Where, columns []column) error {
	o := Order{Test: "alltoall", Size: 8, Iters: 4000, Window: window}
	if w.Crowded { // ranks without processors are not waited for
		o.Iters = 100
	}
	for _, c := range columns {
		if c.library == RawLibrary || c.way.Variant != "" { // one that takes experiments' orders only
			continue
		}
		m.tell("first messages of "+c.library, w)
		if _, err := c.run(Table{}, o); err != nil {
			return fmt.Errorf("first messages of %s: %w", c.library, err)
		}
	}
	return nil
}

// open starts everything that the tables need.
func (m Measurement) open(tables []Table) (columns []column, err error) {
	w, largest := tables[0].Where, 0
	for _, t := range tables {
		for _, size := range t.Sizes {
			largest = max(largest, t.first(size).Size)
		}
	}
	add := func(j *Job, library string, way bench.Way, ours bool) {
		run := func(t Table, o Order) (bench.Point, error) {
			if way.Variant != "" {
				o.Test += variantMark + way.Variant
			}
			return j.Run(o)
		}
		columns = append(columns, column{library, j.Carrier, way, ours, run, j.Close})
	}
	messages := slices.ContainsFunc(tables, func(t Table) bool { return t.Case.Family == bench.MPI })
	if m.Server != nil && messages && w.Hosts == 2 {
		m.tell("starting raw", w)
		place, err := bench.OpenPlace(bench.PlaceConfig{Server: m.Server, MTU: w.MTU, Cores: w.Cores})
		if err != nil {
			return columns, err
		}
		r := &raw{place: place, abort: m.Abort}
		columns = append(columns, column{RawLibrary, "AF_XDP", bench.Way{}, false, r.run, r.close})
	}
	ways := or(m.Ways, []bench.Way{{}})
	var j *Job
	for i, way := range ways {
		on := w
		on.Way = way
		if i > 0 && alike(way, ways[i-1]) { // its ranks are only told something else
			add(j, on.ours(), way, true)
			columns[len(columns)-1].close = func() error { return nil }
			continue
		}
		m.tell("starting "+on.ours(), w)
		if j, err = Ours(m.Program, on, m.Fabric, largest); err != nil {
			return columns, err
		}
		add(j, on.ours(), way, true)
	}
	if m.Xmpicc != "" {
		for _, abi := range ABIs() {
			m.tell("starting C, "+abi, w)
			j, err := m.inC(abi, w, largest)
			if err != nil {
				return columns, err
			}
			add(j, j.Library, bench.Way{}, true)
		}
	}
	for _, p := range m.Peers {
		m.tell("starting "+p.Name, w)
		j, err := p.start(w, m.tests)
		if err != nil {
			return columns, err
		}
		add(j, j.Library, bench.Way{}, false)
	}
	return columns, nil
}

// alike reports whether one job is for both.
func alike(a, b bench.Way) bool {
	return a.Ghosts == b.Ghosts && a.Progress == b.Progress && slices.Equal(a.Env, b.Env)
}

func (m Measurement) tell(what string, w Where) {
	if m.Progress != nil {
		m.Progress(fmt.Sprintf("%s: %d ranks, MTU %d%s", what, w.Ranks, w.MTU, m.pace.left(mono.Real{}.Now())))
	}
}

// row measures one size with all libraries in turns.
func (m Measurement) row(t Table, size int, columns []column) ([]bench.Result, error) {
	rounds := cmp.Or(m.Rounds, 5)
	length := cmp.Or(m.Burst, 40*mono.Millisecond)
	enough := m.pace.share(mono.Real{}.Now())
	orders := make([]Order, len(columns))
	points := make([][]bench.Point, len(columns))
	warming := -1
	if t.Where.Crowded { // not before it is known what a call takes
		warming = 0
	}
	for round := -1; round < rounds; round++ { // the first one is to learn how long a burst may be
		if round > 0 && enough > 0 && (mono.Real{}).Now() >= enough {
			break
		}
		for turn := range columns {
			k := turn
			if round&1 == 1 { // not always the same one first
				k = len(columns) - 1 - turn
			}
			c := columns[k]
			if c.library == RawLibrary && frame(t, size) == 0 || round >= 0 && orders[k].Iters == 0 {
				continue
			}
			m.tell(fmt.Sprintf("%s, %d bytes, %s", t.Case.Name, size, c.library), t.Where)
			o := orders[k]
			if round < 0 {
				o = t.first(size)
			}
			if round == warming {
				o.Warmup = max(o.Warmup, t.cold(size))
			}
			began := mono.Real{}.Now()
			p, err := c.run(t, o)
			if err != nil {
				return nil, fmt.Errorf("%s of %d bytes: %w", t.Case.Name, size, err)
			}
			each := mono.Real{}.Now().Sub(began) / mono.Duration(o.Iters+o.Warmup) // with the barrier between two
			switch {
			case round >= 0:
				points[k] = append(points[k], p)
			case p.Lat != nil && (p.Lat.Avg > length.Seconds()*1e6 || t.Where.Crowded && each > 2*length):
				points[k] = []bench.Point{p} // that will do: ranks without processors are not waited for
			default:
				orders[k] = t.burst(size, p, length)
				if t.Where.Crowded && t.Case.Kind == bench.Collective {
					orders[k].limit(each, length)
				}
			}
		}
	}
	results := make([]bench.Result, len(columns))
	for k, c := range columns {
		o := orders[k]
		if o.Iters == 0 {
			o = t.first(size)
		}
		if m.Best {
			points[k] = lowest(points[k])
		}
		results[k] = t.result(c, o, points[k], m.Fabric)
	}
	return results, nil
}

// first returns the burst that says how long others take.
func (t Table) first(size int) Order {
	o := Order{Test: t.order(), Size: size, Iters: 10, Warmup: 2, Window: window}
	switch {
	case t.Case.Kind == bench.Computing:
		o.Size, o.Compute = t.Bytes, size
	case t.Case.Kind == bench.Trials:
		o.Size, o.Compute, o.Iters, o.Warmup = 0, size, 3, 1
	case !t.Case.Kind.Latency():
		o.Iters, o.Warmup = window, 0
	case t.Where.Crowded:
		o.Iters, o.Warmup = 3, 1
	}
	return o
}

// cold returns how many messages or calls of a size go before the first burst that counts: as many
// as in the OSU benchmarks of latency, or a window, and the first thousand frames of more than a page on a new veth pair, which
// take its kernel many times as long as later ones. Raw frames show that, too: pages are
// touched for the first time, 50 us each on a virtual machine whose page tables are shadowed.
func (t Table) cold(size int) int {
	const frames, page = 1000, 4096
	if t.Case.Kind == bench.Computing || t.Case.Kind == bench.Trials {
		return 0
	}
	n := 100
	if size > osuLarge || t.Where.Crowded { // ranks without processors are not waited for
		n = 10
	}
	if t.Where.Hosts == 2 && !t.Where.Crowded && min(t.Where.MTU, size) >= page {
		n = max(n, (frames*t.Where.MTU+size-1)/max(size, t.Where.MTU))
	}
	if !t.Case.Kind.Latency() {
		n = max(n-n%window, window)
	}
	return n
}

// osuLarge is up to how many bytes messages are short ones in the OSU benchmarks.
const osuLarge = 8 << 10

// The least and the most calls or messages of a burst.
const (
	leastCalls = 10
	mostCalls  = 20_000
	mostStream = 1 << 20
)

// burst returns the burst that takes about as long as asked for, when a short
// one came to p.
func (t Table) burst(size int, p bench.Point, length mono.Duration) Order {
	o := t.first(size)
	if p.Lat == nil {
		messages := p.Msgs * length.Seconds()
		if t.Case.Kind == bench.Duplex {
			messages /= 2 // each way
		}
		windows := int(min(messages, mostStream) / window)
		o.Iters = max(windows, 1) * window
		o.Warmup = max(windows/10, 1) * window
		return o
	}
	each := p.Lat.Avg
	if t.Case.Kind == bench.PingPong || t.Case.Kind == bench.Computing || t.Case.Kind == bench.Trials || t.Case.Kind == bench.Collective && t.Case.Name != "mpi_barrier" {
		each *= 2 // there and back; or a barrier, or what begins and ends the epoch, as well
	}
	o.Iters = min(max(int(length.Seconds()*1e6/each), leastCalls), mostCalls)
	o.Warmup = max(o.Iters/10, 2)
	return o
}

// slowBursts is how many times as long as it was meant to a burst may take: the barrier between two calls may
// take far longer than these.
const slowBursts = 10

// limit makes a burst short enough where each of its calls takes so long with all that goes with it.
func (o *Order) limit(each, length mono.Duration) {
	o.Iters = max(min(o.Iters, int(slowBursts*length/max(each, 1))), min(o.Iters, leastCalls))
	o.Warmup = min(o.Warmup, max(o.Iters/10, 2))
}

// result makes a result of the points of all rounds.
func (t Table) result(c column, o Order, points []bench.Point, fabric string) bench.Result {
	more := bench.Overlapped{Compute: o.Compute, Ghosts: c.way.Ghosts, Progress: c.way.Progress}
	if t.Case.Kind == bench.Trials {
		more.Compute, more.N = 0, o.Compute
	}
	r := bench.Result{
		Test: t.Case.Name, Transport: "none", Fabric: "tcp", MTU: t.Where.MTU, Size: o.Size, Iters: o.Iters, Op: t.Op, Overlapped: more,
		Carrier: c.carrier, Rounds: len(points), Library: c.library, Ranks: t.Where.Ranks, Hosts: t.Where.Hosts,
	}
	if c.ours {
		r.Transport, r.Fabric = "rd", fabric
	} else if c.library == RawLibrary {
		r.Fabric = "xdp"
	}
	r.Take(points)
	return r
}
