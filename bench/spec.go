package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// Limits of what may be asked for.
const (
	MaxIters  = 10_000_000 // samples are kept, 4 bytes each
	MaxWindow = 512        // the default depth of a queue pair
	MaxSize   = 64 << 20   // bytes; both ends keep two buffers of this size
	MaxPeers  = 128        // endpoints at the server's end
	minMTU    = 1280
	maxMTU    = 65535 // the largest IPv4 packet
	shmMTU    = 9000
	ethHeader = 14
	minFrame  = 60 // smallest Ethernet frame without its checksum
)

// ErrUsage is wrapped by every error that says the test was asked for wrongly.
var ErrUsage = errors.New("bad usage")

// ErrNoSize is wrapped too when none of the sizes can be sent.
var ErrNoSize = fmt.Errorf("%w: no size can be sent", ErrUsage)

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUsage, fmt.Sprintf(format, args...))
}

// Spec says what to measure. Both ends of a test use the same one, except for
// the fields that Complete fills in.
type Spec struct {
	Test      string  `json:"test"`
	Transport string  `json:"transport"`  // see Transports; "none" for raw tests; default "rd", over tcp "rc"
	Fabric    string  `json:"fabric"`     // see Fabrics; default "xdp"
	MTU       int     `json:"mtu"`        // largest IP packet in bytes; 0: as the device has it
	Sizes     []int   `json:"sizes"`      // bytes; default depends on the test
	Iters     int     `json:"iters"`      // messages per burst and size; 0: by size
	Warmup    int     `json:"warmup"`     // messages before the clock starts; -1: a tenth of Iters
	Window    int     `json:"window"`     // messages under way to each peer in bw and rate tests; default 64
	Loss      float64 `json:"loss"`       // share of frames that are dropped on purpose, 0 to 0.5
	Op        string  `json:"op"`         // atomic_lat: see AtomicOps; default "fetch_add"
	Peers     int     `json:"peers"`      // endpoints (rc: connections) that the client sends to in turns; default 1
	Eager     int     `json:"eager"`      // MPI: largest message in bytes that goes without asking; 0: as MPI has it
	EagerIdle int     `json:"eager_idle"` // MPI: the same to an idle peer
	EagerNear int     `json:"eager_near"` // MPI: the same through shared memory
	Bulk      string  `json:"bulk"`       // how large data leaves an endpoint on xdp: see device.ParseBulk; default "auto"
	BusyPoll  bool    `json:"busy_poll"`  // both ends poll their devices while they wait; only over our driver for xdp
	Secure    bool    `json:"secure"`     // what verbs and MPI send is encrypted
	CRC       bool    `json:"crc"`        // rc: a CRC32C in each FPDU
	Markers   bool    `json:"markers"`    // rc: both ends ask for markers
	IPv6      bool    `json:"ipv6"`       // over IPv6; Connect sets it when the server's address is one
	All       bool    `json:"all"`        // all powers of two up to 8 MiB that can be sent, instead of Sizes

	// Rendezvous is how long messages of MPI cross the network: see
	// mpi.ParseRendezvous. Default "auto".
	Rendezvous string `json:"rendezvous"`

	// Clip leaves out sizes that cannot be sent. Complete sets it when the
	// sizes are not the user's own; else such sizes are errors.
	Clip bool `json:"clip"`
}

// Check fills in the defaults that need no device and reports what is wrong
// with the rest. Its errors wrap ErrUsage.
func (s *Spec) Check() error {
	c, ok := Find(s.Test)
	if !ok {
		return usagef("there is no test %q; the tests are %s", s.Test, strings.Join(Names(), ", "))
	}
	if c.Job() {
		return usagef("%s has no two ends: all its ranks start together, with --testbed", s.Test)
	}
	s.Fabric, s.Rendezvous, s.Bulk = cmp.Or(s.Fabric, "xdp"), cmp.Or(s.Rendezvous, "auto"), cmp.Or(s.Bulk, "auto")
	s.Peers, s.Window = cmp.Or(s.Peers, 1), cmp.Or(s.Window, 64)
	if all := Fabrics(); !slices.Contains(all, s.Fabric) {
		return usagef("there is no fabric %q; the fabrics are %s", s.Fabric, strings.Join(all, ", "))
	}
	if err := s.checkTransport(c); err != nil {
		return err
	}
	if err := s.checkOp(c); err != nil {
		return err
	}
	if _, err := mpi.ParseRendezvous(s.Rendezvous); err != nil {
		return usagef("%v", err)
	}
	if _, err := device.ParseBulk(s.Bulk); err != nil {
		return usagef("--bulk: %v", err)
	}
	if s.BusyPoll && (!s.onXDP() || s.Fabric == "xdp:asavie") {
		return usagef("--busy-poll is for network cards: it needs --fabric xdp, xdp:generic or xdp:driver")
	}
	if s.Secure && (s.Transport == "none" || s.Fabric == "shm") {
		return usagef("--secure encrypts what verbs and MPI send over a network: use another test than %s, and another fabric than shm", s.Test)
	}
	if s.MTU != 0 && (s.MTU < minMTU || s.MTU > maxMTU) {
		return usagef("MTU %d is outside of %d to %d", s.MTU, minMTU, maxMTU)
	}
	if s.IPv6 && c.Family == Raw && s.onXDP() {
		return usagef("%s over %s moves frames without a checksum, which IPv6 does not have: leave --ipv6 away", s.Test, s.Fabric)
	}
	return s.checkNumbers()
}

// udpHeaders returns the size of the IP and UDP headers.
func (s *Spec) udpHeaders() int {
	if s.IPv6 {
		return inet.IPv6Len + inet.UDPLen
	}
	return inet.IPv4Len + inet.UDPLen
}

// AtomicOps returns what Spec.Op may be.
func AtomicOps() []string { return []string{"fetch_add", "cmp_swap", "swap"} }

// checkOp checks what only single tests know.
func (s *Spec) checkOp(c Case) error {
	switch {
	case c.Family == Atomic && s.Op == "":
		s.Op = "fetch_add"
	case c.Family == Atomic && !slices.Contains(AtomicOps(), s.Op):
		return usagef("there is no atomic operation %q; the operations are %s", s.Op, strings.Join(AtomicOps(), ", "))
	case c.Family != Atomic && s.Op != "":
		return usagef("--op is for atomic_lat; %s has one operation only", s.Test)
	}
	switch {
	case s.Peers < 1 || s.Peers > MaxPeers:
		return usagef("peers %d is outside of 1 to %d", s.Peers, MaxPeers)
	case s.Peers > 1 && (c.Family != Send || c.Kind != Rate):
		return usagef("--peers is for send_rate; %s has one peer", s.Test)
	}
	return nil
}

func (s *Spec) checkNumbers() error {
	if s.Window < 1 || s.Window > MaxWindow {
		return usagef("window %d is outside of 1 to %d", s.Window, MaxWindow)
	}
	if s.Iters < 0 || s.Iters > MaxIters {
		return usagef("iters %d is outside of 1 to %d", s.Iters, MaxIters)
	}
	if s.Warmup < -1 || s.Warmup > MaxIters {
		return usagef("warmup %d is outside of 0 to %d", s.Warmup, MaxIters)
	}
	if !(s.Loss >= 0 && s.Loss <= 0.5) { // written so that NaN is refused
		return usagef("loss %g is outside of 0 to 0.5", s.Loss)
	}
	if s.All && !s.Clip && len(s.Sizes) > 0 {
		return usagef("all sizes (-a) and single ones (--size) at once: give one of them")
	}
	for _, n := range s.Sizes {
		if n < 0 || n > MaxSize {
			return usagef("size %d is outside of 0 to %d", n, MaxSize)
		}
	}
	return nil
}

// Complete fills in what depends on the device, whose MTU is mtu, and checks
// that the sizes can be sent. Its errors wrap ErrUsage.
func (s *Spec) Complete(mtu int) error {
	if s.MTU == 0 {
		s.MTU = min(mtu, maxMTU)
		if s.Fabric == "shm" { // it has no device: as a testbed does
			s.MTU = min(s.MTU, shmMTU)
		}
	}
	if s.Fabric == "xdp:asavie" {
		s.MTU = min(s.MTU, xdp.MTUSingle) // its frames are one buffer
	}
	c, ok := Find(s.Test)
	if !ok {
		return usagef("there is no test %q", s.Test)
	}
	if len(s.Sizes) == 0 {
		s.Clip = true
		s.Sizes = c.defaultSizes(s)
		if s.All {
			s.Sizes = allSizes()
		}
	}
	lo, hi, why := c.sizeRange(s)
	if s.Clip {
		s.Sizes = slices.DeleteFunc(slices.Clone(s.Sizes), func(n int) bool { return n < lo || n > hi })
	}
	if len(s.Sizes) == 0 {
		return fmt.Errorf("%w: %s over %s can send %d to %d bytes (%s): name some with --size", ErrNoSize, s.Test, s.Fabric, lo, hi, why)
	}
	for _, n := range s.Sizes {
		if n < lo || n > hi {
			return usagef("%s over %s cannot send size %d: %d to %d bytes are possible (%s)", s.Test, s.Fabric, n, lo, hi, why)
		}
	}
	return nil
}

// countsArrivals reports whether messages may get lost without an error, so
// that the server end counts what arrives.
func (s *Spec) countsArrivals() bool {
	c := s.testCase()
	return s.Transport == "ud" && !c.OfMPI() || c.Family == Record
}

// tallies reports whether the server end tells the client what it has counted.
func (s *Spec) tallies() bool {
	c := s.testCase()
	return s.countsArrivals() || c.Kind == Duplex && !c.OfMPI()
}

// Burst is one run of the timed loop.
type Burst struct {
	Size   int `json:"size"`   // bytes per message
	Iters  int `json:"iters"`  // messages that count
	Warmup int `json:"warmup"` // messages before those
	Window int `json:"window"` // messages under way
}

func (b Burst) check() error {
	switch {
	case b.Size < 0 || b.Size > MaxSize:
		return fmt.Errorf("burst of size %d", b.Size)
	case b.Iters < 1 || b.Iters > MaxIters+MaxWindow*MaxPeers:
		return fmt.Errorf("burst of %d iterations", b.Iters)
	case b.Warmup < 0 || b.Warmup > MaxIters+MaxWindow*MaxPeers:
		return fmt.Errorf("burst with %d iterations of warm-up", b.Warmup)
	case b.Window < 1 || b.Window > MaxWindow:
		return fmt.Errorf("burst with a window of %d", b.Window)
	}
	return nil
}

// burst returns the burst for one size. Streams count in whole windows to all
// peers.
func (s *Spec) burst(kind Kind, size int, quick bool) Burst {
	b := Burst{Size: size, Iters: s.Iters, Warmup: s.Warmup, Window: s.Window}
	if b.Iters == 0 {
		b.Iters = defaultIters(kind, size)
		if quick {
			b.Iters /= 8
		}
	}
	if b.Warmup < 0 {
		b.Warmup = max(b.Iters/10, 1)
	}
	if !kind.Latency() {
		unit := b.Window * max(s.Peers, 1)
		b.Iters = (b.Iters + unit - 1) / unit * unit
		b.Warmup = (b.Warmup + unit - 1) / unit * unit
	}
	return b
}

// defaultIters makes a burst take a tenth to half a second on a veth pair.
func defaultIters(kind Kind, size int) int {
	if kind.Latency() {
		return min(max(256<<20/max(size, 1), 100), 20_000)
	}
	return min(max(1<<30/max(size, 1), 256), 200_000)
}

// ParseInts reads a list of numbers that are good, of which an error says that want is what
// is wanted.
func ParseInts(list string, good func(int) bool, want string) (all []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || !good(n) {
			return nil, fmt.Errorf("%q is no list of %s", list, want)
		}
		all = append(all, n)
	}
	return all, nil
}

// ParseSizes reads a list of sizes in bytes: "8", "8,64,4K,1MB", or "8:4M" for
// all powers of two times 8 up to 4 MiB. K, KB and KiB are 1024 bytes, M, MB and
// MiB 1024 times that. Its errors wrap ErrUsage.
func ParseSizes(list string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, ":")
		lo, err := parseSize(from)
		if err != nil {
			return nil, err
		}
		if !isRange {
			sizes = append(sizes, lo)
			continue
		}
		hi, err := parseSize(to)
		if err != nil {
			return nil, err
		}
		if lo < 1 || hi < lo {
			return nil, usagef("size range %q does not go up from 1 or more", part)
		}
		for n := lo; n <= hi; n *= 2 {
			sizes = append(sizes, n)
		}
	}
	return sizes, nil
}

// units are what a size may end in, in capitals: powers of two, with or without
// the i.
var units = []struct {
	name  string
	bytes int
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"K", 1 << 10}, {"M", 1 << 20}, {"B", 1}}

func parseSize(text string) (int, error) {
	digits, unit := strings.ToUpper(strings.TrimSpace(text)), 1
	for _, u := range units {
		if number, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = strings.TrimSpace(number), u.bytes
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > MaxSize/unit {
		return 0, usagef("%q is no size: write a number of bytes up to 64M, as in 8,64,4K,1MB or 8:4M, where K is 1024 and M 1024 times that", text)
	}
	return n * unit, nil
}
