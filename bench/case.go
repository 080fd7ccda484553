package bench

import (
	"fmt"
	"slices"
)

// Kind is what a test measures.
type Kind uint8

// The kinds of tests.
const (
	PingPong  Kind = iota // half round trips
	Bandwidth             // a stream of large messages
	Rate                  // a stream of small messages
)

// Family is the layer that a test measures.
type Family uint8

// The families of tests.
const (
	Raw  Family = iota // frames over a port, or kernel sockets, without a protocol
	Send               // verbs Send
	MPI                // MPI Send and Recv
)

// Case is one test.
type Case struct {
	Name    string
	Family  Family
	Kind    Kind
	Summary string // for the help
}

// Cases returns all tests.
func Cases() []Case { return slices.Clone(cases) }

// cases is the registry: a new test gets a line here, its family a Bench.
var cases = []Case{
	{"raw_lat", Raw, PingPong, "half round trip of one frame, no protocol"},
	{"raw_bw", Raw, Bandwidth, "stream of large frames, no protocol"},
	{"raw_rate", Raw, Rate, "stream of small frames, no protocol"},
	{"send_lat", Send, PingPong, "half round trip of a verbs Send"},
	{"send_bw", Send, Bandwidth, "stream of large verbs Sends"},
	{"send_rate", Send, Rate, "stream of small verbs Sends"},
	{"mpi_lat", MPI, PingPong, "half round trip of MPI Send and Recv"},
	{"mpi_bw", MPI, Bandwidth, "windows of large MPI messages, one answer per window"},
	{"mpi_rate", MPI, Rate, "windows of small MPI messages, one answer per window"},
}

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
	// burst at the same time. The client end writes to rec, which has room
	// for all samples; the server end gets nil.
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
	c, ok := Find(e.Spec.Test)
	if !ok {
		return nil, usagef("there is no test %q", e.Spec.Test)
	}
	switch {
	case c.Family == Send:
		return openSend(e)
	case c.Family == MPI:
		return openMPI(e)
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
	case c.Family == Raw && s.onXDP() && c.Kind == PingPong:
		return []int{64, frame}
	case c.Family == Raw && s.onXDP() && c.Kind == Bandwidth:
		return []int{frame}
	case c.Family == Raw && s.onXDP():
		return []int{64}
	case c.Family == Raw && s.Fabric == "udp" && c.Kind == PingPong:
		return []int{8, 64, 1024}
	case c.Family == Raw && s.Fabric == "udp" && c.Kind == Bandwidth:
		return []int{min(s.MTU, maxMTU) - udpHeaders}
	case c.Kind == PingPong:
		return []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10}
	case c.Kind == Bandwidth:
		return []int{4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
	}
	return []int{8}
}

// sizeRange returns the sizes that the test can send, and why no others.
func (c Case) sizeRange(s *Spec) (lo, hi int, why string) {
	switch {
	case c.Family != Raw:
		return 0, MaxSize, "the limit of xperf"
	case s.Fabric == "tcp":
		return 1, MaxSize, "the limit of xperf"
	case s.Fabric == "udp":
		return streamHeader, maxMTU - udpHeaders, "one datagram"
	}
	return minFrame, s.MTU + ethHeader, fmt.Sprintf("one Ethernet frame at MTU %d", s.MTU)
}

// isPingPong reports whether the test with that name measures half round trips.
func isPingPong(name string) bool {
	c, _ := Find(name)
	return c.Kind == PingPong
}
