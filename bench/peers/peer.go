package peers

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

//go:embed peer/peer.c
var peerSource []byte

// envCores pins rank i of a peer to the (i mod n)th of n processors: "2,3".
const envCores = "XPERF_CORES"

// Peer is another MPI library, as Debian packages it.
type Peer struct {
	Name        string
	compiler    string // mpicc
	launcher    string // mpiexec
	install     string // how to get it
	arguments   func(start starter, w Where) []string
	environment func(w Where) []string
}

// Peers returns the libraries that xwarp is compared with.
func Peers() []Peer {
	return []Peer{
		{
			Name: "MPICH", compiler: "mpicc.mpich", launcher: "mpiexec.mpich", install: "apt-get install mpich",
			arguments: hydra, environment: hydraEnv,
		},
		{
			Name: "Open MPI", compiler: "mpicc.openmpi", launcher: "mpirun.openmpi", install: "apt-get install openmpi-bin libopenmpi-dev",
			arguments: orte, environment: func(Where) []string { return nil },
		},
	}
}

// Missing says what is to be installed before the library can be measured, or
// "".
func (p Peer) Missing() string {
	for _, program := range []string{p.compiler, p.launcher, "ip", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s is left out: there is no %s here (%s)", p.Name, program, p.install)
		}
	}
	// Debian has the compiler of Open MPI in another package than what it compiles with.
	headers := exec.Command(p.compiler, "-xc", "-E", "-o", os.DevNull, "-")
	headers.Stdin = strings.NewReader("#include <mpi.h>\n")
	if headers.Run() != nil {
		return fmt.Sprintf("%s is left out: %s finds no mpi.h (%s)", p.Name, p.compiler, p.install)
	}
	return ""
}

// starter is the script that starts a process on a host of the testbed, as ssh
// would on another machine: `start [-OPTION...] ADDRESS COMMAND`.
type starter struct {
	path   string
	hosts  []*testbed.Host
	memory string // folder for what the library shares inside a host: it goes with the job
}

// script makes the command run in the namespace of the host, whose sysfs shows
// its devices, under a name of its own, because libraries take processes on
// hosts of one name to share memory.
func script(hosts []*testbed.Host) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nhost=$1\nshift\ncase $host in\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "%v) name=%s ;;\n", h.Addr, h.Name)
	}
	b.WriteString("esac\nexec ip netns exec \"$name\" unshare --uts sh -c \"echo $host >/proc/sys/kernel/hostname; $*\"\n")
	return b.String()
}

func (s starter) addrs() []string {
	list := make([]string, len(s.hosts))
	for i, h := range s.hosts {
		list[i] = h.Addr.String()
	}
	return list
}

// hydra returns the arguments of MPICH's mpiexec.
func hydra(s starter, w Where) []string {
	return []string{
		"-launcher", "ssh", "-launcher-exec", s.path, "-iface", testbed.Device, "-hosts", strings.Join(s.addrs(), ","),
		"-n", strconv.Itoa(w.Ranks), "-ppn", strconv.Itoa(w.Ranks / w.Hosts),
	}
}

// hydraEnv makes UCX use TCP on the device of the testbed between hosts. Inside
// a host MPICH uses memory that is shared, of its own accord.
func hydraEnv(w Where) []string {
	if w.Hosts == 1 {
		return nil
	}
	return []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=" + testbed.Device}
}

// orte returns the arguments of Open MPI's mpirun: TCP on the device of the
// testbed between hosts, shared memory inside. Its hosts do not know that they
// are one machine; so it is told when there are more ranks than processors.
func orte(s starter, w Where) []string {
	perHost := strconv.Itoa(w.Ranks / w.Hosts)
	var hosts []string
	for _, a := range s.addrs() {
		hosts = append(hosts, a+":"+perHost)
	}
	yield := "0"
	if w.Crowded {
		yield = "1"
	}
	args := []string{"--allow-run-as-root", "--host", strings.Join(hosts, ","), "-n", strconv.Itoa(w.Ranks), "--map-by", "ppr:" + perHost + ":node", "--bind-to", "none"}
	for _, option := range [][2]string{
		{"plm", "rsh"}, {"plm_rsh_agent", s.path}, {"oob_tcp_if_include", testbed.Device},
		{"pml", "ob1"}, {"btl", "tcp,vader,self"}, {"btl_tcp_if_include", testbed.Device}, {"osc", "sm,pt2pt"},
		{"mpi_yield_when_idle", yield}, {"btl_vader_backing_directory", s.memory},
	} {
		args = append(args, "--mca", option[0], option[1])
	}
	return args
}

// start compiles the tests, makes hosts and starts the library there.
func (p Peer) start(w Where, tests programs) (_ *Job, err error) {
	dir, err := os.MkdirTemp("", "xperf-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // all ranks run by then
	program, err := tests.in(dir, p.compiler)
	if err != nil {
		return nil, err
	}
	bed, err := testbed.New(testbed.Config{Hosts: w.Hosts, MTU: w.MTU})
	if err != nil {
		return nil, err
	}
	memory, err := bed.Memory()
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	start := starter{path: filepath.Join(dir, "start"), hosts: bed.Hosts, memory: memory}
	if err := os.WriteFile(start.path, []byte(script(bed.Hosts)), 0o700); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	j, err := p.launch(bed, start, w, program)
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	if err := j.begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// programs are the tests, compiled, by the command that did it.
type programs map[string][]byte

// in makes the program of a rank of a C library in a folder. A command compiles it once.
func (c programs) in(dir string, compiler ...string) (string, error) {
	source, program, key := filepath.Join(dir, "peer.c"), filepath.Join(dir, "peer"), strings.Join(compiler, " ")
	if made, ok := c[key]; ok {
		return program, os.WriteFile(program, made, 0o700)
	}
	if err := os.WriteFile(source, peerSource, 0o600); err != nil {
		return "", err
	}
	args := append(compiler[1:len(compiler):len(compiler)], "-O2", "-o", program, source, "-lm")
	if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the tests with %s: %w: %s", compiler[0], err, out)
	}
	made, err := os.ReadFile(program)
	c[key] = made
	return program, err
}

// launch starts the library's launcher on the first host.
func (p Peer) launch(bed *testbed.Testbed, start starter, w Where, program string) (*Job, error) {
	command := append([]string{p.launcher}, p.arguments(start, w)...)
	cmd := exec.Command(start.path, append([]string{start.addrs()[0]}, append(command, program)...)...)
	cmd.Env = append(os.Environ(), append(p.environment(w), envCores+"="+bench.JoinInts(w.Cores))...)
	j := &Job{Library: p.Name, Carrier: "TCP", complaints: &bench.Tail{}}
	if w.Hosts == 1 {
		j.Carrier = "shared memory"
	}
	cmd.Stderr = j.complaints
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := bed.Hosts[0].Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.launcher, err)
	}
	j.orders, j.answers, j.signal = orders, bufio.NewReader(answers), bed.Signal
	j.end = func() error {
		// MPICH 4.0 may hang in MPI_Finalize over TCP: its end is not waited for.
		// What runs on the hosts goes with them.
		err := bed.Close()
		_ = cmd.Wait() // it was killed
		return err
	}
	return j, nil
}
