package bench

import (
	"fmt"
	"slices"
)

// Kind is what a test measures.
type Kind uint8

// The kinds of tests.
const (
	PingPong   Kind = iota // half round trips
	RoundTrip              // whole round trips: operations that bring something back
	Bandwidth              // a stream of large messages
	Rate                   // a stream of small messages
	Collective             // calls of all ranks
	Duplex                 // streams of large messages both ways at once, counted together
	Computing              // epochs of an origin while its target computes
	Trials                 // experiments of a publication
)

// kinds is what there is to say about each.
var kinds = [...]struct {
	latency bool   // times are measured, not rates
	metric  string // the number that counts, as in JSON
	unit    string
	title   string // of a table
	chart   string // that such tests are in
}{
	PingPong: {
		true, "lat_us.p50", "half round trip in microseconds",
		"Latency: half round trip in microseconds (median)", "Latency",
	},
	RoundTrip: {
		true, "lat_us.p50", "whole round trip in microseconds",
		"Latency: whole round trip in microseconds (median)", "Latency",
	},
	Bandwidth:  {false, "gbit_s", "Gbit/s", "Bandwidth in Gbit/s, windows of 64 messages", "Bandwidth"},
	Rate:       {false, "msg_s", "messages/s", "Messages per second, windows of 64", "Message rate"},
	Collective: {true, "lat_us.avg", "microseconds per call", "Microseconds per call (mean)", "Collectives"},
	Duplex: {
		false, "gbit_s", "Gbit/s, both ways together",
		"Bandwidth in Gbit/s, both ways together, windows of 64 messages", "Bandwidth both ways",
	},
	Computing: {
		true, "lat_us.p50", "microseconds of the origin (median) over those that the target computes",
		"Epochs while the target computes: microseconds (median)", "Overlap",
	},
	Trials: {
		true, "lat_us.p50", "microseconds (median)",
		"Experiments: microseconds (median)", "Experiments",
	},
}

// Latency reports whether tests of this kind measure times, not rates.
func (k Kind) Latency() bool { return kinds[k].latency }

// Unit says what the numbers of tests of this kind are.
func (k Kind) Unit() string { return kinds[k].unit }

// Family is the operation that a test measures.
type Family uint8

// The families of tests.
const (
	Raw    Family = iota // frames over a port, or kernel sockets, without a protocol
	Send                 // verbs Send
	Write                // verbs RDMA Write
	Read                 // verbs RDMA Read
	Atomic               // verbs atomic operations
	Record               // verbs RDMA Write-Record
	MPI                  // MPI Send and Recv
	Coll                 // collectives of MPI
	RMA                  // one-sided MPI
)

// Case is one test.
type Case struct {
	Name    string
	Family  Family
	Kind    Kind
	Summary string // for the help
	Example string // flags that show what the test is for
}

// Cases returns all tests.
func Cases() []Case { return slices.Clone(cases) }

// cases is the registry: a new test gets a line here, its family a Bench.
var cases = []Case{
	{"raw_lat", Raw, PingPong, "half round trip of one frame, no protocol",
		`--size 64 --mtu 1500 --testbed --vs "--fabric xdp:asavie"`},
	{"raw_bw", Raw, Bandwidth, "stream of large frames, no protocol",
		`--testbed --vs "--fabric xdp:driver"`},
	{"raw_rate", Raw, Rate, "stream of small frames, no protocol",
		`--fabric xdp:driver --testbed --json`},
	{"send_lat", Send, PingPong, "half round trip of a Send",
		`--size 8 --testbed --vs "raw_lat --size 64"`},
	{"send_bw", Send, Bandwidth, "stream of large Sends",
		`--transport ud --size 8000 --testbed --loss 1%`},
	{"send_bibw", Send, Duplex, "streams of large Sends, both ways at once",
		`--size 64K --testbed --vs "send_bw --size 64K"`},
	{"send_rate", Send, Rate, "stream of small Sends, to one peer or many",
		`--testbed --switch xdp --vs "--peers 8"`},
	{"write_lat", Write, PingPong, "half round trip of RDMA Writes: each end polls its last byte",
		`--size 8 --testbed --vs "send_lat --size 8"`},
	{"write_bw", Write, Bandwidth, "stream of RDMA Writes",
		`--size 1M --testbed --vs "--loss 1%"`},
	{"write_bibw", Write, Duplex, "streams of RDMA Writes, both ways at once",
		`--size 1M --testbed --transport rc --fabric tcp`},
	{"read_lat", Read, RoundTrip, "RDMA Read, whole round trip",
		`-a --testbed --plot read.svg`},
	{"read_bw", Read, Bandwidth, "stream of RDMA Reads",
		`--size 1M --testbed --vs "write_bw --size 1M"`},
	{"read_bibw", Read, Duplex, "streams of RDMA Reads, both ways at once",
		`--size 1M --testbed`},
	{"atomic_lat", Atomic, RoundTrip, "atomic operation on 8 bytes, whole round trip",
		`--op cmp_swap --testbed`},
	{"write_record_lat", Record, PingPong, "half round trip of RDMA Write-Records",
		`--size 64K --transport ud --loss 1% --testbed`},
	{"write_record_bw", Record, Bandwidth, "stream of RDMA Write-Records: whole ones and valid bytes",
		`--size 64K --transport ud --loss 1% --testbed --vs "--transport rd"`},
	{"mpi_lat", MPI, PingPong, "half round trip of MPI Send and Recv",
		`--size 8 --testbed --vs "raw_lat --fabric tcp --size 8"`},
	{"mpi_bw", MPI, Bandwidth, "windows of large MPI messages, one answer per window",
		`--size 4K:4M --testbed --vs "--fabric udp"`},
	{"mpi_bibw", MPI, Duplex, "windows of large MPI messages, both ways at once",
		`--size 4K:4M --testbed --vs "mpi_bw --size 4K:4M"`},
	{"mpi_rate", MPI, Rate, "windows of small MPI messages, one answer per window",
		`--testbed --duration 10`},
	{"mpi_put_lat", RMA, RoundTrip, "MPI Put and Flush under lock_all", `--size 8 --testbed --vs "write_lat --size 8"`},
	{"mpi_get_lat", RMA, RoundTrip, "MPI Get and Flush under lock_all", `--size 8 --testbed --vs "read_lat --size 8"`},
	{"mpi_acc_lat", RMA, RoundTrip, "MPI Accumulate and Flush under lock_all", `--size 8 --testbed`},
	{"mpi_fop_lat", RMA, RoundTrip, "MPI Fetch_and_op of 8 bytes and Flush", `--testbed --vs "atomic_lat"`},
	{"mpi_cas_lat", RMA, RoundTrip, "MPI Compare_and_swap of 8 bytes and Flush", `--testbed`},
	{"mpi_put_bw", RMA, Bandwidth, "windows of large MPI Puts, one Flush per window", `--size 4K:4M --testbed --vs "mpi_bw --size 4K:4M"`},
	{"mpi_get_bw", RMA, Bandwidth, "windows of large MPI Gets, one Flush per window", `--size 4K:4M --testbed`},
	{"mpi_put_rate", RMA, Rate, "windows of small MPI Puts, one Flush per window", `--testbed --vs "mpi_rate"`},
	{"mpi_ghosts", RMA, Trials, "experiments with ghosts, beside what was published of them",
		`--testbed --op fence,self,phases --json`},
	{"mpi_overlap", RMA, Computing, "epochs of one-sided MPI while the target computes, with ghosts and without",
		`--testbed --op acc,fence --ghosts 0,1 --compute 0,100,1000 --plot overlap.svg`},
	{MPIPrefix + "allreduce", Coll, Collective, "MPI Allreduce of floats, on -n ranks of two hosts",
		`--testbed -n 2,4,8 --size 8:1M`},
	{MPIPrefix + "reduce", Coll, Collective, "MPI Reduce of floats to rank 0", `--testbed -n 4`},
	{MPIPrefix + "bcast", Coll, Collective, "MPI Bcast from rank 0", `--testbed -n 4`},
	{MPIPrefix + "alltoall", Coll, Collective, "MPI Alltoall, bytes per block", `--testbed -n 4`},
	{MPIPrefix + "allgather", Coll, Collective, "MPI Allgather, bytes per block", `--testbed -n 4`},
	{MPIPrefix + "gather", Coll, Collective, "MPI Gather at rank 0, bytes per block", `--testbed -n 4`},
	{MPIPrefix + "scatter", Coll, Collective, "MPI Scatter from rank 0, bytes per block", `--testbed -n 4`},
	{MPIPrefix + "allgatherv", Coll, Collective, "MPI Allgatherv of equal blocks", `--testbed -n 4`},
	{MPIPrefix + "alltoallv", Coll, Collective, "MPI Alltoallv of equal blocks", `--testbed -n 4`},
	{MPIPrefix + "alltoallw", Coll, Collective, "MPI Alltoallw of equal blocks", `--testbed -n 4`},
	{MPIPrefix + "gatherv", Coll, Collective, "MPI Gatherv of equal blocks at rank 0", `--testbed -n 4`},
	{MPIPrefix + "scatterv", Coll, Collective, "MPI Scatterv of equal blocks from rank 0", `--testbed -n 4`},
	{MPIPrefix + "reduce_scatter", Coll, Collective, "MPI Reduce_scatter, bytes per block", `--testbed -n 4`},
	{MPIPrefix + "reduce_scatter_block", Coll, Collective, "MPI Reduce_scatter_block", `--testbed -n 4`},
	{MPIPrefix + "scan", Coll, Collective, "MPI Scan of floats", `--testbed -n 4`},
	{MPIPrefix + "exscan", Coll, Collective, "MPI Exscan of floats", `--testbed -n 4`},
	{MPIPrefix + "barrier", Coll, Collective, "MPI Barrier", `--testbed -n 2,4,8`},
}

// MPIPrefix is what the names of tests of MPI begin with.
const MPIPrefix = "mpi_"

// Find returns the test with that name.
func Find(name string) (Case, bool) {
	i := slices.IndexFunc(cases, func(c Case) bool { return c.Name == name })
	if i < 0 {
		return Case{}, false
	}
	return cases[i], true
}

// Names returns the names of all tests.
func Names() []string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.Name
	}
	return names
}

// Bench is a test that was opened on one end.
type Bench interface {
	// Carrier says what carries the messages, for people.
	Carrier() string
	// Run does this end's part of one burst; the other end runs the same
	// burst at the same time. Both write to rec: the client end what it
	// measured, and the server end what arrived, where that may be less.
	Run(b Burst, rec *Recorder) error
	// Progress does what is left to do after Run, as to acknowledge. It is
	// called until the other end is done as well, and does not wait.
	Progress()
	// Close gives everything back. The peer may still be at work when a test
	// has failed.
	Close() error
}

// open opens the test that e asks for.
func open(e *End) (Bench, error) {
	end := e.busyPoll()
	bench, err := openCase(e)
	if err != nil {
		end()
		return nil, err
	}
	if !e.Spec.BusyPoll {
		return bench, nil
	}
	return polling{bench, end}, nil
}

func openCase(e *End) (Bench, error) {
	c, ok := Find(e.Spec.Test)
	if !ok {
		return nil, usagef("there is no test %q", e.Spec.Test)
	}
	switch {
	case c.Family == MPI:
		return openMPI(e)
	case c.Family == RMA:
		return openRMA(e)
	case c.Family != Raw:
		return openVerbs(e, c)
	case e.Spec.Fabric == "tcp":
		return openTCP(e)
	case e.Spec.Fabric == "udp":
		return openUDP(e)
	}
	return openFrames(e)
}

// defaultSizes returns what is measured when no sizes are given.
func (c Case) defaultSizes(s *Spec) []int {
	frame := s.MTU + ethHeader
	switch {
	case c.OneWord():
		return []int{atomicSize}
	case c.Family == Raw && s.onXDP() && c.Kind == PingPong:
		return []int{64, frame}
	case c.Family == Raw && s.onXDP() && c.Kind == Bandwidth:
		return []int{frame}
	case c.Family == Raw && s.onXDP():
		return []int{64}
	case c.Family == Raw && s.Fabric == "udp" && c.Kind == PingPong:
		return []int{8, 64, 1024}
	case c.Family == Raw && s.Fabric == "udp" && c.Kind == Bandwidth:
		return []int{min(s.MTU, maxMTU) - s.udpHeaders()}
	case c.Kind.Latency():
		return []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10}
	case c.Kind == Bandwidth || c.Kind == Duplex:
		return []int{1 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
	}
	return []int{8}
}

// OneWord reports whether the operation is on 64 bits, and no others.
func (c Case) OneWord() bool {
	return c.Family == Atomic || c.Name == "mpi_fop_lat" || c.Name == "mpi_cas_lat"
}

// Job reports whether the ranks of the test start together, as a job, so that there are no
// two ends.
func (c Case) Job() bool { return c.Family == Coll || c.Kind == Computing || c.Kind == Trials }

// OfMPI reports whether MPI carries what the test moves.
func (c Case) OfMPI() bool { return c.Family == MPI || c.Family == RMA || c.Family == Coll }

// allMax is the largest of all sizes (-a), as perftest has it.
const allMax = 8 << 20

// allSizes returns the powers of two from 1 to allMax.
func allSizes() (sizes []int) {
	for n := 1; n <= allMax; n *= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

// sizeRange returns the sizes that the test can send, and why no others. What
// fits a datagram of UD is known when the device is open: see endpoint.limit.
func (c Case) sizeRange(s *Spec) (lo, hi int, why string) {
	switch {
	case c.OneWord():
		return atomicSize, atomicSize, "atomic operations are on 64 bits"
	case c.Family == Write && c.Kind == PingPong:
		return 1, MaxSize, "the last byte is what each end waits for"
	case c.Family != Raw:
		return 0, MaxSize, "the limit of xperf"
	case s.Fabric == "tcp":
		return 1, MaxSize, "the limit of xperf"
	case s.Fabric == "udp":
		return streamHeader, maxMTU - s.udpHeaders(), "one datagram"
	}
	return minFrame, s.MTU + ethHeader, fmt.Sprintf("one Ethernet frame at MTU %d", s.MTU)
}

// kind returns what the test measures.
func (s *Spec) kind() Kind { return s.testCase().Kind }

// testCase returns the test that is asked for, whose name Check has found.
func (s *Spec) testCase() Case {
	c, _ := Find(s.Test)
	return c
}

// duplex reports whether both ends send at once, so that both measure.
func (s *Spec) duplex() bool { return s.kind() == Duplex }
