package bench

import (
	"encoding/json"
	"io"
	"slices"
)

// Result is one measurement: a test with one size. It is one line of JSON;
// quantities have the unit in their name.
type Result struct {
	Test      string   `json:"test"`
	Transport string   `json:"transport"` // "rd", "ud", "rc", or "none" for raw tests
	Fabric    string   `json:"fabric"`    // as it was asked for: "xdp", "udp", ...
	MTU       int      `json:"mtu"`       // bytes
	Size      int      `json:"size"`      // bytes per message; per Ethernet frame in raw tests on xdp
	Iters     int      `json:"iters"`     // messages (round trips) per round that count
	Lat       *Latency `json:"lat_us"`    // half round trips, whole ones of reads and atomics; null for streams
	Gbit      float64  `json:"gbit_s"`    // 10^9 bits per second, one way; in tests that send both ways (bibw) of both together
	Msgs      float64  `json:"msg_s"`     // messages per second, likewise
	Carrier   string   `json:"carrier"`   // what it came to: "xdp/generic/copy", "kernel UDP", ...
	Lost      int      `json:"lost"`      // messages (raw: frames) that did not arrive, in all rounds
	Rounds    int      `json:"rounds"`

	// What only some tests have.
	IPv6    bool    `json:"ipv6,omitempty"`    // over IPv6
	Op      string  `json:"op,omitempty"`      // atomic operation, one of mpi_overlap, or an experiment of mpi_ghosts
	Peers   int     `json:"peers,omitempty"`   // when there are several
	CRC     bool    `json:"crc,omitempty"`     // rc: a CRC32C in each FPDU
	Markers bool    `json:"markers,omitempty"` // rc: both ends asked for them
	Loss    float64 `json:"loss,omitempty"`    // share of frames dropped on purpose
	Library string  `json:"library,omitempty"` // where libraries are compared: "xwarp", "MPICH", ...
	Ranks   int     `json:"ranks,omitempty"`   // likewise
	Hosts   int     `json:"hosts,omitempty"`   // that they are on
	Detail  string  `json:"detail,omitempty"`  // how the carrier is used: device, queues, buffers per frame
	Overlapped
	Losses *Losses `json:"losses,omitempty"` // frames and datagrams that the carriers have lost
	Sent   *Sent   `json:"sent,omitempty"`   // where messages may be lost: gbit_s and msg_s are what arrived
}

// Overlapped is what only mpi_overlap and mpi_ghosts have.
type Overlapped struct {
	Compute  int    `json:"compute_us,omitempty"` // microseconds that the target computes
	Ghosts   int    `json:"ghosts,omitempty"`     // of each host
	Progress string `json:"progress,omitempty"`   // the thread that makes progress
	N        int    `json:"n,omitempty"`          // mpi_ghosts: the row
}

// Ratio compares two results that were measured in turns.
type Ratio struct {
	Metric string  `json:"metric"` // "lat_us.p50", "gbit_s" or "msg_s"
	A      float64 `json:"a"`      // medians over the rounds
	B      float64 `json:"b"`
	Ratio  float64 `json:"ratio"` // A / B
	Low    float64 `json:"low"`   // smallest and largest ratio of one round
	High   float64 `json:"high"`

	ARounds []float64 `json:"a_rounds"` // by round, to see what the medians hide
	BRounds []float64 `json:"b_rounds"`
}

// Row is what was measured for one size: a result per configuration, and with
// two configurations their ratio.
type Row struct {
	Results []Result
	Ratio   *Ratio
}

// result makes a result of the points of all rounds.
func (s *Session) result(b Burst, rounds []Point) Result {
	p := merge(rounds)
	peers := s.Spec.Peers
	if peers == 1 {
		peers = 0
	}
	return Result{
		Test: s.Spec.Test, Transport: s.Spec.Transport, Fabric: s.Spec.Fabric, MTU: s.Spec.MTU,
		Size: b.Size, Iters: b.Iters, Lat: p.Lat, Gbit: p.Gbit, Msgs: p.Msgs,
		Carrier: s.Carrier, Lost: p.Lost, Rounds: len(rounds),
		IPv6: s.Spec.IPv6, Op: s.Spec.Op, Peers: peers, CRC: s.Spec.CRC, Markers: s.Spec.Markers, Loss: s.Spec.Loss, Sent: p.Sent,
		Detail: s.Detail, Losses: s.lostSince(),
	}
}

// Take makes r what the points of all rounds come to.
func (r *Result) Take(rounds []Point) {
	p := merge(rounds)
	r.Lat, r.Gbit, r.Msgs, r.Lost, r.Rounds = p.Lat, p.Gbit, p.Msgs, p.Lost, len(rounds)
}

// Value returns the number that tests of kind k are judged by.
func (r *Result) Value(k Kind) float64 {
	return k.metric(Point{Lat: r.Lat, Gbit: r.Gbit, Msgs: r.Msgs})
}

// metric returns the number that tests of a kind are judged by.
func (k Kind) metric(p Point) float64 {
	switch {
	case k == Collective && p.Lat != nil:
		return p.Lat.Avg
	case k.Latency() && p.Lat != nil:
		return p.Lat.P50
	case k == Bandwidth || k == Duplex:
		return p.Gbit
	}
	return p.Msgs
}

// compare returns the ratio of two configurations that were measured in turns.
func compare(kind Kind, a, b []Point) *Ratio {
	var as, bs, ratios []float64
	for i := range a {
		x, y := kind.metric(a[i]), kind.metric(b[i])
		as, bs = append(as, x), append(bs, y)
		if y > 0 {
			ratios = append(ratios, x/y)
		}
	}
	r := &Ratio{Metric: kinds[kind].metric, ARounds: slices.Clone(as), BRounds: slices.Clone(bs)}
	r.A, r.B = median(as), median(bs)
	if len(ratios) > 0 && r.B > 0 {
		r.Ratio, r.Low, r.High = r.A/r.B, slices.Min(ratios), slices.Max(ratios)
	}
	return r
}

// WriteJSON writes the row as lines of JSON: one per result, and one for the
// ratio.
func (r Row) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, result := range r.Results {
		if result.Rounds == 0 {
			continue // not measured, see Tabulate
		}
		if err := enc.Encode(result); err != nil {
			return err
		}
	}
	if r.Ratio == nil {
		return nil
	}
	return enc.Encode(r.Ratio)
}
