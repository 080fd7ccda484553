package bench

import (
	"slices"
	"strings"

	"github.com/xwarp/xwarp/verbs/device"
)

// Fabrics returns what Spec.Fabric may be: what carries verbs.
func Fabrics() []string { return device.Fabrics() }

// Transports returns what Spec.Transport may be for tests of verbs, and last what
// only MPI has.
func Transports() []string { return []string{"rd", "ud", "rc", "hybrid"} }

// onXDP reports whether frames go through an AF_XDP socket.
func (s *Spec) onXDP() bool { return strings.HasPrefix(s.Fabric, "xdp") }

// rc reports whether the test runs over connections.
func (s *Spec) rc() bool { return s.Transport == "rc" }

// connects reports whether the test needs streams.
func (s *Spec) connects() bool { return s.rc() || s.Transport == "hybrid" }

// inKernel reports whether the kernel makes the packets that the test is about:
// a plain socket, or a connection of kernel TCP.
func (s *Spec) inKernel() bool {
	return !s.onXDP() && (s.Transport == "none" || s.connects())
}

// checkTransport checks what the protocol has to do with.
func (s *Spec) checkTransport(c Case) error {
	switch {
	case (s.CRC || s.Markers) && c.OfMPI():
		return usagef("--crc and --markers are for tests of verbs: MPI connects without")
	case s.Transport == "hybrid" && !c.OfMPI():
		return usagef("hybrid is a transport of MPI: use rd or rc for %s", s.Test)
	case (s.CRC || s.Markers) && c.Family != Raw && s.Transport != "rc" && s.Fabric != "tcp":
		return usagef("--crc and --markers are for --transport rc; datagrams always have a CRC and never markers")
	case c.Family == Raw:
		return s.checkRaw()
	case s.Transport == "" && s.Fabric == "tcp":
		s.Transport = "rc"
	case s.Transport == "":
		s.Transport = "rd"
	case !slices.Contains(Transports(), s.Transport):
		return usagef("there is no transport %q; the transports are %s", s.Transport, strings.Join(Transports(), ", "))
	}
	if s.rc() || s.connects() && s.Fabric != "tcp" {
		return s.checkRC(c)
	}
	if s.Fabric == "tcp" {
		return usagef("tcp carries connections only: use --transport rc, or another fabric for %s", s.Transport)
	}
	if why := notOverUD[c.Family]; s.Transport == "ud" && why != "" {
		return usagef("%s does not run over ud: %s", s.Test, why)
	}
	if s.Transport == "ud" && c.Kind == Duplex && !c.OfMPI() {
		return usagef("%s does not run over ud, where both ends would have to tell what is lost from what is late; use --transport rd", s.Test)
	}
	return nil
}

func (s *Spec) checkRaw() error {
	if s.Transport != "" && s.Transport != "none" {
		return usagef("%s sends without a protocol: leave --transport away", s.Test)
	}
	s.Transport = "none"
	switch {
	case s.CRC || s.Markers:
		return usagef("%s sends without a protocol: leave --crc and --markers away", s.Test)
	case s.Fabric == "shm":
		return usagef("%s measures frames and sockets, and over shm there are neither: use send_lat and its like", s.Test)
	case s.Loss > 0 && s.Fabric == "tcp":
		return usagef("%s over tcp is the kernel's own: nothing there can be lost on purpose", s.Test)
	}
	return nil
}

func (s *Spec) checkRC(c Case) error {
	if why := notOverRC[c.Family]; why != "" {
		return usagef("%s does not run over rc: %s", s.Test, why)
	}
	switch {
	case s.Fabric == "shm":
		return usagef("%s needs TCP, and over shm there is none: use --fabric tcp for rc, and udp for hybrid", s.Transport)
	case s.Loss > 0:
		return usagef("--loss is for datagrams: what TCP loses it sends again by itself, out of our sight")
	}
	return nil
}

// notOverUD says why a family does not run over unreliable datagrams.
var notOverUD = map[Family]string{
	Write:  "its target would not notice what was lost; use --transport rd, or write_record_lat and write_record_bw, which are made for that",
	Read:   "its answer could be lost, and nobody would ask again; use --transport rd",
	Atomic: "it must happen exactly once, and datagrams may come twice or not at all; use --transport rd",
}

// notOverRC says why a family does not run over connections.
var notOverRC = map[Family]string{
	Record: "a Write-Record tells which parts of a message have arrived, and of a stream all do; use write_lat and write_bw",
}

// CheckCapture reports why what this test sends cannot be captured, after
// Check. Its errors wrap ErrUsage.
func (s *Spec) CheckCapture() error {
	if s.inKernel() {
		return usagef("%s over %s goes through the kernel and not through us: capture it with tcpdump -w FILE", s.Test, s.Fabric)
	}
	return nil
}
