package check

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Scenario is what a seed means: how many hosts there are, how bad the network
// is, what befalls them when, and what they do.
type Scenario struct {
	Seed  uint64
	Hosts int
	Sim   sim.Config
	Dgram dgram.Config

	Ops        int           // work requests per host
	Gap        mono.Duration // mean time between two actions of a host
	MaxMsg     int           // bytes
	Pause      mono.Duration // how long a host may compute without a step; 0: it never does
	NoReceives bool          // hosts post no receives for a while, again and again
	Wrong      bool          // some requests ask for what is not granted
	SRQ        bool          // receives come from a shared queue
	UD         bool          // an unreliable queue pair beside the reliable one
	Record     bool          // Write-Records
	Window     bool          // memory windows, and what ends them
	Chunks     bool          // with Record: a completion for each chunk of a Write-Record
	Notify     bool          // receive completions are announced on a channel
	NoCRC      bool          // the LLP's checksum is left out
	Secure     bool          // datagrams are encrypted
	SendWR     int           // size of send queues

	Partitions []Partition
	Restarts   []Restart
}

// Partition cuts some hosts off the others for a while.
type Partition struct {
	At    mono.Time
	For   mono.Duration
	Hosts []int
}

// Restart ends a life of a host and begins the next.
type Restart struct {
	At    mono.Time
	Host  int
	Down  mono.Duration // between the two
	Crash bool          // the program does not see how its requests end
}

// NewScenario draws the scenario of a seed.
func NewScenario(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 0x636865636b))
	oneIn := func(n int) bool { return rng.IntN(n) == 0 }
	s := Scenario{
		Seed: seed, Hosts: pick(rng, 2, 2, 2, 3, 3, 4, 5),
		Ops: 20 + rng.IntN(60), Gap: pick[mono.Duration](rng, 2, 10, 50, 200) * mono.Microsecond,
		NoReceives: oneIn(3), Wrong: oneIn(4), SRQ: oneIn(3), UD: oneIn(3), Record: oneIn(3), Window: oneIn(3),
		SendWR: pick(rng, 4, 16, 64),
	}
	s.network(rng)
	if oneIn(3) {
		s.Pause = pick[mono.Duration](rng, 100, 2000, 10000) * mono.Microsecond
	}
	span := int64(s.Ops) * int64(s.Gap) * 3 / 2
	if oneIn(3) { // hosts give up on one another
		s.Dgram.PeerLost = pick[mono.Duration](rng, 60, 120, 250) * mono.Millisecond
	}
	if oneIn(3) {
		for range 1 + rng.IntN(2) {
			p := Partition{At: mono.Time(rng.Int64N(span)), For: 1 + mono.Duration(rng.Int64N(int64(200*mono.Millisecond)))}
			if s.Dgram.PeerLost != 0 {
				p.For = 1 + mono.Duration(rng.Int64N(int64(2*s.Dgram.PeerLost)))
			}
			p.Hosts = rng.Perm(s.Hosts)[:1+rng.IntN(s.Hosts-1)]
			s.Partitions = append(s.Partitions, p)
		}
	}
	if oneIn(4) {
		for range 1 + rng.IntN(2) {
			s.Restarts = append(s.Restarts, Restart{
				At: mono.Time(rng.Int64N(span)), Host: rng.IntN(s.Hosts), Crash: oneIn(2),
				Down: pick[mono.Duration](rng, 0, 1, 20, 300) * mono.Millisecond / 2,
			})
		}
	}
	s.Chunks = s.Record && oneIn(3)
	s.Notify = oneIn(3)
	s.NoCRC = s.Sim.Up.Corrupt == 0 && oneIn(3)
	s.Secure = seed%3 == 1 // these are not drawn: the others stay what they were
	s.Sim.Queues = 1 + int(seed/3%4)
	return s
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// network draws how bad the links are.
func (s *Scenario) network(rng *rand.Rand) {
	s.Sim = sim.Config{
		Seed: s.Seed, MTU: pick(rng, 1500, 1500, 1500, 4000, 9000),
		ArenaSize: 8 << 20, Frames: pick(rng, 128, 256),
	}
	s.MaxMsg = pick(rng, 300, 4000, 4000, 3*s.Sim.MTU)
	var f sim.Faults
	upTo := func(most float64) float64 { return most * rng.Float64() }
	switch rng.IntN(6) {
	case 0: // nothing happens
	case 1:
		f.Loss = upTo(0.05)
	case 2, 3:
		f = sim.Faults{Loss: upTo(0.1), Dup: upTo(0.05), Reorder: upTo(0.2), Corrupt: upTo(0.03)}
	default:
		f = sim.Faults{Loss: upTo(0.2), Dup: upTo(0.2), Reorder: upTo(0.5), Corrupt: upTo(0.1)}
	}
	f.ReorderBy = pick[mono.Duration](rng, 10, 100, 2000) * mono.Microsecond
	s.Sim.Up.Faults = f
	if rng.IntN(2) == 0 {
		s.Sim.Down.Faults = f
	}
	s.Sim.Up.Delay = pick[mono.Duration](rng, 500, 500, 20_000, 200_000)
	s.Sim.Up.BitsPerSecond = pick[int64](rng, 10e9, 10e9, 1e9, 200e6)
	s.Sim.Down.BitsPerSecond = s.Sim.Up.BitsPerSecond
	s.Sim.Down.Queue = pick(rng, 32<<10, 256<<10)
	if rng.IntN(3) == 0 {
		s.Dgram.Window = pick(rng, 8, 32, 64)
	}
}

// Rules returns what the model has to know of the scenario.
func (s *Scenario) Rules() Rules {
	wire := mono.Duration(int64(s.Sim.Down.Queue+s.Sim.Frames*4096) * 8e9 / s.Sim.Up.BitsPerSecond)
	lossless := len(s.Restarts) == 0 && s.Dgram.PeerLost == 0
	copies := 1
	if s.Sim.Up.Dup > 0 {
		copies *= 2
	}
	if s.Sim.Down.Dup > 0 {
		copies *= 2
	}
	return Rules{
		Linger:   2*(wire+s.Sim.Up.Delay+s.Sim.Up.ReorderBy+s.Pause) + 5*mono.Millisecond,
		Lossless: lossless, Copies: copies, Chunks: s.Chunks, Corrupt: s.Sim.Up.Corrupt > 0,
	}
}

// String says in one line what is special about the scenario.
func (s *Scenario) String() string {
	up := s.Sim.Up
	b := &strings.Builder{}
	fmt.Fprintf(b, "%d hosts, %d requests each, up to %d bytes, MTU %d, %d Mbit/s, loss %.0f %%, doubled %.0f %%, late %.0f %% by %v, corrupted %.0f %%",
		s.Hosts, s.Ops, s.MaxMsg, s.Sim.MTU, up.BitsPerSecond/1e6, 100*up.Loss, 100*up.Dup, 100*up.Reorder, up.ReorderBy, 100*up.Corrupt)
	for _, x := range []struct {
		on   bool
		name string
	}{
		{s.Sim.Down.Loss > 0, "both ways"}, {s.NoReceives, "no receives"}, {s.Wrong, "wrong requests"}, {s.SRQ, "SRQ"}, {s.UD, "UD"},
		{s.Record, "records"}, {s.Chunks, "by chunk"}, {s.Notify, "events"}, {s.NoCRC, "no CRC"}, {s.Secure, "encrypted"}, {s.Window, "windows"}, {s.Pause > 0, "pauses"}, {s.Dgram.PeerLost > 0, "peers get lost"},
	} {
		if x.on {
			b.WriteString(", " + x.name)
		}
	}
	if s.Sim.Queues > 1 {
		fmt.Fprintf(b, ", %d queues", s.Sim.Queues)
	}
	for _, p := range s.Partitions {
		fmt.Fprintf(b, ", %v cut off at %v for %v", p.Hosts, mono.Duration(p.At), p.For)
	}
	for _, r := range s.Restarts {
		fmt.Fprintf(b, ", host %d restarts at %v for %v (crash %v)", r.Host, mono.Duration(r.At), r.Down, r.Crash)
	}
	return b.String()
}
