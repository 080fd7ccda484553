package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// Random traffic: messages in every way there is to send and to receive one, at
// the same time, on several communicators, to receives with and without wildcards,
// some of which are too short, are taken back, or wait for nothing. What arrives is
// compared with a sequential model of matching.
//
// It cannot hang. Whatever no receive takes is found by an Improbe of everything,
// which every rank does now and then. A rank waits for nobody but ranks with a higher
// number, so the highest one never waits, and so on down.

// plannedSend is one message.
type plannedSend struct {
	from, to  int // in World
	comm, tag int
	length    int // bytes
	mode      sendMode
	seed      int
	taken     bool // a receive has it
}

// sendMode is how a message is sent.
type sendMode int

const (
	sendIsend sendMode = iota
	sendIssend
	sendBsend
	sendIrsend
	sendSend
	sendSsend
	sendSendInit
	sendSsendInit
	allSendModes
)

// randomTraffic is one run.
type randomTraffic struct {
	seed     uint64
	ranks    int
	messages int  // in all
	eagerMax int  // about which lengths are chosen
	burst    int  // how many sends are started in a row, at most
	most     int  // operations under way, of a rank
	watched  bool // all ranks run in one thread: they may look at one another
	wholes   bool // receives have room for all: see bothPaths
	plan     []*plannedSend
	all      []*trafficRank
}

const trafficTags = 4

func newRandomTraffic(seed uint64, ranks, eagerMax int) *randomTraffic {
	if eagerMax == 0 {
		eagerMax = 16 << 10
	}
	m := &randomTraffic{seed: seed, ranks: ranks, eagerMax: max(eagerMax, 0), messages: 100 * ranks, burst: 1, most: 40, all: make([]*trafficRank, ranks)}
	if seed%5 == 3 { // so many at a time that queues are full
		m.messages, m.burst, m.most = 800*ranks, 1000, 2000
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	for i := range m.messages {
		t := &plannedSend{
			from: rnd.IntN(ranks), to: rnd.IntN(ranks), comm: rnd.IntN(trafficComms), tag: rnd.IntN(trafficTags),
			length: m.length(rnd), mode: sendMode(rnd.IntN(int(allSendModes))), seed: i,
		}
		if rnd.IntN(4) == 0 && i > 0 { // once more the same, for persistent operations
			last := *m.plan[i-1]
			last.seed = i
			*t = last
		}
		m.plan = append(m.plan, t)
	}
	return m
}

// length prefers those about which something changes.
func (m *randomTraffic) length(rnd *rand.Rand) int {
	edges := []int{0, 16, 240, 512, m.eagerMax, m.eagerMax + 16, 2 * m.eagerMax, 8900, 17_000}
	switch u := rnd.Float64(); {
	case m.burst > 1 && m.eagerMax == 200: // nothing that needs a buffer
		return rnd.IntN(400)
	case u < 0.8 && m.burst > 1:
		return rnd.IntN(300)
	case u < 0.4:
		return max(0, edges[rnd.IntN(len(edges))]+rnd.IntN(5)-2)
	case u < 0.8:
		return rnd.IntN(700)
	case u < 0.99:
		return rnd.IntN(60_000)
	}
	return rnd.IntN(1_500_000)
}

const trafficComms = 3

// trafficData is memory for a message: in one piece, or in blocks with gaps.
type trafficData struct {
	memory []byte
	room   int // bytes of the message
	block  int // 0: in one piece
}

const (
	gap      = 3
	unspoilt = 0xa5
	finished = 0x5a
)

// newData makes memory for a message of n bytes.
func newData(rnd *rand.Rand, n int) trafficData {
	d := trafficData{room: n}
	size := n + gap
	if block := []int{1, 2, 7, 64, 1000}[rnd.IntN(5)]; rnd.IntN(2) == 0 && n > 0 && n%block == 0 {
		d.block = block
		size = n / block * (block + gap)
	}
	d.memory = slices.Repeat([]byte{unspoilt}, size)
	return d
}

// data is the memory as MPI sees it.
func (d *trafficData) data() (mpi.Data, error) {
	if d.block == 0 {
		return mpi.Slice(d.memory[:d.room]), nil
	}
	t, err := mpi.TypeVector(d.room/d.block, d.block, d.block+gap, mpi.TypeByte)
	if err != nil {
		return mpi.Data{}, err
	}
	return mpi.Typed(d.memory, 1, t), t.Commit()
}

// at returns where byte i of the message lies.
func (d *trafficData) at(i int) *byte {
	if d.block == 0 {
		return &d.memory[i]
	}
	return &d.memory[i/d.block*(d.block+gap)+i%d.block]
}

func (d *trafficData) write(b []byte) {
	for i := range b {
		*d.at(i) = b[i]
	}
}

// read takes out the first n bytes, and fails when more was written.
func (d *trafficData) read(n int) ([]byte, error) {
	b := make([]byte, n)
	for i := range b {
		b[i] = *d.at(i)
		*d.at(i) = unspoilt
	}
	for i, x := range d.memory {
		if x != unspoilt {
			return nil, fmt.Errorf("%w: byte %d of the buffer was written, the message has %d bytes in blocks of %d", errData, i, n, d.block)
		}
	}
	return b, nil
}

// overMost is how many bytes are kept of what MPI has given back: of some runs all would be gigabytes.
const overMost = 16 << 20

// stays fails when memory that is finished was written.
func stays(b []byte) error {
	if i := slices.IndexFunc(b, func(x byte) bool { return x != finished }); i >= 0 {
		return fmt.Errorf("%w: byte %d of a buffer was written after its operation had ended", errData, i)
	}
	return nil
}

// bothPaths makes a run over Hybrid one of messages whose data is in datagrams and over
// connections at the same time: frames are short, eager messages long, and some connections
// break in the middle, at one end or at both. In half of the runs envelopes go over connections, too: long
// messages, and such that are as long as where another way begins, follow one another among short ones.
func (m *randomTraffic) bothPaths(rnd *rand.Rand, w *simWorld) {
	w.mpi.EagerMax, w.mpi.EagerIdle = []int{0, 5000, 20_000}[rnd.IntN(3)], []int{0, 60_000}[rnd.IntN(2)]
	w.mpi.PromoteMessages, w.mpi.NoCalibrate = 1+rnd.IntN(5), rnd.IntN(2) == 0
	for range rnd.IntN(4) {
		w.tcp.Faults = append(w.tcp.Faults, sim.StreamFault{
			Conn: rnd.IntN(3), Offset: rnd.Int64N(800_000), Kind: sim.StreamReset + sim.StreamFaultKind(rnd.IntN(5)), Heal: mono.Millisecond,
		})
	}
	m.longer(rnd, rnd.IntN(2) == 0)
}

// longer has more messages of such lengths that their data goes over a connection, and with wholes their envelopes, too.
func (m *randomTraffic) longer(rnd *rand.Rand, wholes bool) {
	m.wholes = wholes
	for _, t := range m.plan {
		switch n := t.length; {
		case m.wholes && n > 300 && n < 60_000:
			t.length = []int{3 << 10, 16 << 10, 64 << 10}[rnd.IntN(3)] + rnd.IntN(5) - 2
			if rnd.IntN(2) == 0 {
				t.length = 17_000 + rnd.IntN(48_000)
			}
		case n > 300 && n < 60_000 && rnd.IntN(3) > 0:
			t.length = 1400 + rnd.IntN(66_000)
		}
	}
}

// trafficConfig chooses everything else by the seed.
func trafficConfig(rnd *rand.Rand) mpi.Config {
	return mpi.Config{
		EagerMax:        []int{0, -1, 200, 1000, 5000, 20_000}[rnd.IntN(6)],
		EagerIdle:       []int{0, 8000, 60_000}[rnd.IntN(3)],
		Receives:        []int{0, 4, 20}[rnd.IntN(3)],
		Sends:           []int{0, 1, 3}[rnd.IntN(3)],
		UnexpectedMax:   []int{0, 2000, 100_000}[rnd.IntN(3)],
		PromoteMessages: 1 + rnd.IntN(100),
		Connections:     1 + rnd.IntN(4),
		Rendezvous:      mpi.Rendezvous(rnd.IntN(3)),
	}
}

// TestRandomTraffic_simulated runs over all transports, on networks that lose, double,
// reorder, spoil and for a while carry nothing.
func TestRandomTraffic_simulated(t *testing.T) {
	for seed := range seeds(t, 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 3))
			ranks := 1 + rnd.IntN(5)
			link := sim.LinkConfig{}
			if rnd.IntN(3) > 0 {
				link.Faults = sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.005}
			}
			w := newSimWorld(sim.Config{Seed: uint64(seed), Up: link, MTU: []int{0, 1500}[seed/4%2]}, ranks)
			transport := w.mpi.Transport
			if w.mpi = trafficConfig(rnd); transport == 0 {
				transport = mpi.Transport(seed % 4)
			}
			w.mpi.Transport = transport
			if seed%10 == 3 {
				w.mpi.EagerMax, w.mpi.Sends = 200, 1 // what goes in one datagram, fills queues
			}
			m := newRandomTraffic(uint64(seed), ranks, w.mpi.EagerMax)
			m.watched = true
			if transport == mpi.Hybrid && seed%8 > 3 {
				m.bothPaths(rnd, w)
			}
			w.fallApart(rnd, rnd.IntN(4), 20*mono.Millisecond)
			w.launch(func(_ *sim.Task, p *mpi.Proc) error { return m.run(p) })
			if err := w.Run(); err != nil {
				t.Fatalf("%v, %+v: %v", w.mpi.Transport, w.mpi, err)
			}
		})
	}
}

// TestRandomTraffic_oneHost runs over shared memory and over the kernel's sockets, of which none is left.
func TestRandomTraffic_oneHost(t *testing.T) {
	before := testenv.OpenFiles(t)
	for seed := range seeds(t, 5) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 4))
		ranks := 1 + rnd.IntN(5)
		cfg := trafficConfig(rnd)
		if os.Getenv(mpi.EnvTransport) == "" {
			cfg.Transport = mpi.Transport(rnd.IntN(4))
		}
		cfg.NoShared = seed%4 == 0
		m := newRandomTraffic(uint64(seed), ranks, cfg.EagerMax)
		if err := mpi.RunWith(ranks, cfg, m.run); err != nil {
			t.Fatalf("seed %d, %d ranks, %+v: %v", seed, ranks, cfg, err)
		}
		for look := 1; testenv.OpenFiles(t) > before; look++ { // what a goroutine still reads is closed when that has ended
			if look == 1000 {
				t.Fatalf("seed %d, %d ranks, %+v: %d descriptors are left, and were %d", seed, ranks, cfg, testenv.OpenFiles(t), before)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
