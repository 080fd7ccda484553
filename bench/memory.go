package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/xwarp/xwarp/bench/footprint"
	"github.com/xwarp/xwarp/bench/plot"
)

// Footprint is what one end keeps for its peers: it has exchanged a message
// with each, and all are idle. It is one line of JSON.
type Footprint struct {
	Transport string  `json:"transport"`      // "rd" or "rc"
	Receives  string  `json:"receives"`       // "shared" by all peers, or "own" ones for each
	Carrier   string  `json:"carrier"`        // what was under it
	Peers     int     `json:"peers"`          // connected to and spoken with
	User      int64   `json:"user_bytes"`     // heap of this end, with its queues
	Kernel    int64   `json:"kernel_bytes"`   // objects of its sockets; 0 if the kernel does not tell
	Buffers   int64   `json:"buffer_bytes"`   // that posted receives have, counted
	Total     int64   `json:"total_bytes"`    // all three
	PerPeer   float64 `json:"per_peer_bytes"` // what each peer after the first has added
}

// MemoryConfig says what to measure. Zero values mean the defaults.
type MemoryConfig struct {
	// Peers are the numbers of peers. Default: MemoryPeers(10000).
	Peers []int
	// Recvs is how many receives each connection has posted, where it has its
	// own. Default 95, as MVAPICH had in the measurements of Rashti.
	Recvs int
	// Shared is how many there are where all peers share them. Default 512.
	Shared int
	// Buffer is the bytes of each receive buffer. Default 8 KiB.
	Buffer int
	// Progress is told what comes next. Default: nil.
	Progress func(what string)
}

func (c *MemoryConfig) fill() {
	c.Recvs, c.Shared, c.Buffer = cmp.Or(c.Recvs, 95), cmp.Or(c.Shared, 512), cmp.Or(c.Buffer, 8<<10)
	if c.Peers == nil {
		c.Peers = MemoryPeers(maxMemoryPeers)
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
}

// maxMemoryPeers is the most peers: their receives must fit a completion queue.
const maxMemoryPeers = 10_000

// MemoryPeers returns the powers of two from 2 on up to most, and most.
func MemoryPeers(most int) (peers []int) {
	for n := 2; n < most; n *= 2 {
		peers = append(peers, n)
	}
	return append(peers, most)
}

// Memory measures what one end keeps for each number of peers: over reliable
// datagrams, over connections with receives of their own, and over connections
// that share theirs, in this order, and hands the three to emit. The
// connections are the kernel's TCP on loopback as far as the descriptors of this
// process go, and beyond the simulator's, for which the kernel's part is counted
// all the same. notes tell what could not be measured.
func Memory(c MemoryConfig, emit func([]Footprint) error) (notes []string, err error) {
	c.fill()
	for _, n := range c.Peers {
		if n < 1 || n > maxMemoryPeers {
			return nil, usagef("peers %d is outside of 1 to %d", n, maxMemoryPeers)
		}
	}
	most, err := footprint.MostOverTCP()
	if err != nil {
		return nil, err
	}
	m := memory{config: c, first: map[way]int64{}}
	if m.socket, err = footprint.Socket(); errors.Is(err, footprint.ErrNoSlabs) {
		notes = append(notes, fmt.Sprintf("the kernel's part is missing: %v", err))
	} else if err != nil {
		return nil, err
	}
	for _, n := range c.Peers {
		carrier := footprint.KernelTCP
		if n > most {
			carrier = footprint.SimTCP
		}
		var row []Footprint
		for _, w := range []way{{footprint.Memory, true}, {carrier, false}, {carrier, true}} {
			f, err := m.measure(w, n)
			if err != nil {
				return notes, fmt.Errorf("%d peers over %v: %w", n, w.carrier, err)
			}
			row = append(row, f)
		}
		if err := emit(row); err != nil {
			return notes, err
		}
	}
	if last := c.Peers[len(c.Peers)-1]; last > most {
		notes = append(notes, fmt.Sprintf("more than %d connections are the simulator's: with both ends of each, this process may open no more files (ulimit -n)", most))
	}
	return notes, nil
}

// way is one way to have peers.
type way struct {
	carrier footprint.Carrier
	shared  bool
}

// memory is a measurement under way.
type memory struct {
	config MemoryConfig
	socket int64         // bytes of kernel memory that one takes
	first  map[way]int64 // bytes in all with one peer
}

func (m *memory) measure(w way, peers int) (Footprint, error) {
	if _, ok := m.first[w]; !ok {
		one, err := m.total(w, 1)
		if err != nil {
			return Footprint{}, err
		}
		m.first[w] = one.Total
	}
	f, err := m.total(w, peers)
	if peers > 1 {
		f.PerPeer = float64(f.Total-m.first[w]) / float64(peers-1)
	}
	return f, err
}

func (m *memory) total(w way, peers int) (f Footprint, err error) {
	f = Footprint{Transport: "rc", Receives: "own", Carrier: w.carrier.String(), Peers: peers}
	m.config.Progress(fmt.Sprintf("%d peers over %s", peers, f.Carrier))
	recvs, posted := m.config.Recvs, m.config.Recvs*peers
	if w.shared {
		f.Receives, recvs, posted = "shared", m.config.Shared, m.config.Shared
	}
	if f.User, err = footprint.Heap(footprint.Config{Carrier: w.carrier, Peers: peers, Recvs: recvs, Shared: w.shared}); err != nil {
		return f, err
	}
	if w.carrier == footprint.Memory {
		f.Transport = "rd"
		addresses, err := footprint.Addresses(peers)
		if err != nil {
			return f, err
		}
		f.User += addresses
	} else {
		f.Kernel = m.socket * int64(peers)
	}
	f.Buffers = int64(posted) * int64(m.config.Buffer)
	f.Total = f.User + f.Kernel + f.Buffers
	return f, nil
}

// WriteJSON writes the footprint as one line of JSON.
func (f Footprint) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(f) }

// name is the footprint's column.
func (f Footprint) name() string {
	switch {
	case f.Transport == "rd":
		return "RD"
	case f.Receives == "shared":
		return "RC, SRQ"
	}
	return "RC"
}

// MemoryTable writes what Memory measures, row by row as it comes.
type MemoryTable struct {
	W        io.Writer
	Markdown bool

	last []Footprint
}

// Row writes the line of one number of peers.
func (t *MemoryTable) Row(row []Footprint) error {
	lines := Lines{t.W, t.Markdown, 14}
	if t.last == nil {
		cells := []string{"peers"}
		for _, f := range row {
			cells = append(cells, f.name()+" KiB", "per peer B")
		}
		if err := lines.Begin("Memory of one end with idle peers", append(cells, "RD/RC", "RD/RC, SRQ")); err != nil {
			return err
		}
	}
	t.last = row
	cells := []string{fmt.Sprint(row[0].Peers)}
	for _, f := range row {
		cells = append(cells, fmt.Sprint((f.Total+512)>>10), fmt.Sprintf("%.0f", f.PerPeer))
	}
	for _, f := range row[1:] {
		cells = append(cells, fmt.Sprintf("%.3f", float64(row[0].Total)/float64(f.Total)))
	}
	return lines.Line(cells)
}

// Foot writes what the last row is made of.
func (t *MemoryTable) Foot() error {
	lines := Lines{t.W, t.Markdown, 14}
	title := fmt.Sprintf("The parts of it with %d peers, in KiB", t.last[0].Peers)
	if err := lines.Begin(title, []string{"", "heap", "kernel", "buffers", "carrier"}); err != nil {
		return err
	}
	for _, f := range t.last {
		cells := []string{f.name()}
		for _, n := range []int64{f.User, f.Kernel, f.Buffers} {
			cells = append(cells, fmt.Sprint((n+512)>>10))
		}
		if err := lines.Line(append(cells, f.Carrier)); err != nil {
			return err
		}
	}
	return nil
}

// MemoryCharts draws footprints over the number of peers.
func MemoryCharts(all []Footprint) []plot.Chart {
	total := plot.Chart{Title: "Memory of one end with idle peers", X: "peers", Y: "bytes"}
	each := plot.Chart{Title: "Memory for each peer", X: "peers", Y: "bytes"}
	index := map[string]int{}
	for _, f := range all {
		k, ok := index[f.name()]
		if !ok {
			k = len(index)
			index[f.name()] = k
			total.Series = append(total.Series, plot.Series{Name: f.name()})
			each.Series = append(each.Series, plot.Series{Name: f.name()})
		}
		x := float64(f.Peers)
		total.Series[k].Points = append(total.Series[k].Points, plot.Point{X: x, Y: float64(f.Total)})
		each.Series[k].Points = append(each.Series[k].Points, plot.Point{X: x, Y: f.PerPeer})
	}
	return []plot.Chart{total, each}
}
