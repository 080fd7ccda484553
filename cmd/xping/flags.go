package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/cmd/internal/cli"
	"github.com/xwarp/xwarp/cmd/internal/getopt"
	"github.com/xwarp/xwarp/cmd/xping/rping"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs/device"
)

//go:embed usage.txt
var usage string

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// options is what the command line says.
type options struct {
	help           bool
	server, client bool
	testbed        bool
	ipv6           bool // where no address says it
	addr, from     string
	port           int
	fabric, device string
	json           bool
	verbose        bool
	debug          bool
	ping           rping.Config
}

// endless reports whether only a signal can end it.
func (o *options) endless() bool {
	return o.server && o.ping.Persistent || !o.server && o.ping.Count == 0
}

// valued are the flags of one letter that take a value.
const valued = "aIpSC"

// rtrKinds are the values of --p2p.
var rtrKinds = map[string]mpa.RTR{"send": mpa.RTRSend, "write": mpa.RTRWrite, "read": mpa.RTRRead}

// page is what xping says about itself.
func page() cli.Page {
	var p2p string
	var revision int
	return cli.Page{
		Name: "xping", Summary: "try RDMA over iWARP with another host, as rping does",
		Help: usage, Flags: (&options{}).flagSet(&p2p, &revision), SeeAlso: []string{"rping(1)"},
	}
}

// flagSet defines the flags, two of which are judged later.
func (o *options) flagSet(p2p *string, revision *int) *flag.FlagSet {
	fs := flag.NewFlagSet("xping", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.server, "s", false, "")
	fs.BoolVar(&o.client, "c", false, "")
	fs.StringVar(&o.addr, "a", "", "")
	fs.StringVar(&o.from, "I", "", "")
	fs.IntVar(&o.port, "p", rping.Port, "")
	fs.IntVar(&o.ping.Size, "S", rping.DefaultSize, "")
	fs.IntVar(&o.ping.Count, "C", 0, "")
	fs.BoolVar(&o.ping.Persistent, "P", false, "")
	fs.BoolVar(&o.verbose, "v", false, "")
	fs.BoolVar(&o.ping.Validate, "V", false, "")
	fs.BoolVar(&o.debug, "d", false, "")
	fs.StringVar(&o.fabric, "fabric", "tcp", "")
	fs.StringVar(&o.device, "device", "", "")
	fs.BoolVar(&o.testbed, "testbed", false, "")
	fs.BoolVar(&o.ipv6, "ipv6", false, "")
	fs.BoolVar(&o.ipv6, "6", false, "")
	fs.BoolVar(&o.ping.Param.CRC, "crc", false, "")
	fs.BoolVar(&o.ping.Param.Markers, "markers", false, "")
	fs.IntVar(revision, "mpa-revision", 2, "")
	fs.StringVar(p2p, "p2p", "", "")
	fs.BoolVar(&o.json, "json", false, "")
	return fs
}

// parse reads the command line. Its errors wrap errUsage.
func parse(args []string) (*options, error) {
	o := &options{}
	var p2p string
	var revision int
	fs := o.flagSet(&p2p, &revision)
	if err := fs.Parse(getopt.Split(args, valued)); errors.Is(err, flag.ErrHelp) {
		o.help = true
		return o, nil
	} else if err != nil {
		return o, usagef("%v", err)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if fs.NArg() > 0 {
		return o, usagef("%q is too much: the server's address goes behind -a", fs.Args())
	}
	if given["p2p"] {
		for kind := range strings.SplitSeq(p2p, ",") {
			if rtrKinds[kind] == 0 {
				return o, usagef("--p2p %q: it is one of send, write and read, or several with commas", p2p)
			}
			o.ping.Param.RTR |= rtrKinds[kind]
		}
	}
	if revision != 1 && revision != 2 {
		return o, usagef("--mpa-revision %d: there are 1 and 2", revision)
	}
	o.ping.Param.Revision = uint8(revision)
	return o, o.judge(given)
}

// judge says what is wrong with flags that were given.
func (o *options) judge(given map[string]bool) error {
	roles := 0
	for _, role := range []bool{o.server, o.client, o.testbed} {
		if role {
			roles++
		}
	}
	switch {
	case roles != 1:
		return usagef("give one of -s (server), -c (client) and --testbed (both)")
	case o.client && o.addr == "":
		return usagef("-c needs the address of the server: -a ADDR")
	case o.testbed && (given["a"] || given["I"] || given["device"]):
		return usagef("--testbed makes its own devices and addresses: leave -a, -I and --device away")
	case o.ping.Size < rping.MinSize || o.ping.Size > rping.MaxSize:
		return usagef("-S %d: %d to %d are possible", o.ping.Size, rping.MinSize, rping.MaxSize)
	case o.ping.Count < 0:
		return usagef("-C %d is negative", o.ping.Count)
	case o.port < 0 || o.port > 65535 || o.port == 0 && o.client:
		return usagef("-p %d is no port", o.port)
	case !slices.Contains(device.Fabrics(), o.fabric):
		return usagef("--fabric %q: it is tcp, xdp, xdp:generic or xdp:driver", o.fabric)
	case o.fabric == "shm", o.fabric == "xdp:asavie":
		return usagef("--fabric %s carries no connections: take tcp or xdp", o.fabric)
	case strings.HasPrefix(o.fabric, "xdp") && o.device == "" && !o.testbed:
		return usagef("--fabric %s needs --device; xinfo lists devices", o.fabric)
	case o.ping.Param.Revision == 1 && o.ping.Param.RTR != 0:
		return usagef("--p2p needs --mpa-revision 2: revision 1 has no peer-to-peer mode")
	}
	for flag, role := range map[string]bool{"P": o.server, "I": o.client, "C": !o.server, "p2p": !o.server, "mpa-revision": !o.server} {
		if given[flag] && !role {
			return usagef("-%s is not for this end; see --help", flag)
		}
	}
	return nil
}

// spec says what device to open for a connection at or to an address.
func (o *options) spec(addr netip.Addr) device.Spec {
	s := device.Spec{Fabric: o.fabric, RC: o.fabric != "tcp", Device: o.device, IPv6: addr.Is6()}
	if o.server && o.port != 0 { // all that a server needs; the others stay the kernel's
		s.TCPBase, s.TCPPorts = uint16(o.port), 1
	}
	return s
}

// anyAddr is where a server listens by default: all IPv4 addresses, as rping.
func (o *options) anyAddr() netip.Addr {
	if o.ipv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}
