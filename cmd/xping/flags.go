package main

import (
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

const usage = `usage: xping -s [-vVdP] [-a ADDR] [-p PORT]
       xping -c [-vVd] [-S SIZE] [-C COUNT] [-I ADDR] -a ADDR [-p PORT]
       xping --testbed [-vVd] [-S SIZE] [-C COUNT]

An rping over standard iWARP (RFC 5040, 5041, 5044): the other end may be
another xping, or rping on a host with an RDMA card or Linux' software iWARP
(siw). For each ping the server Reads the client's text by RDMA and Writes it
back; three Sends and one more keep them in step.

As in rping:
  -s            server
  -c            client
  -a ADDR       client: the server's name or address, IPv4 or IPv6;
                server: address to listen at (default all)
  -I ADDR       client: address to connect from
  -p PORT       TCP port (default 7174)
  -S SIZE       client: bytes of a ping, 23 to 65535 (default 64); for more than
                64 rping's server has to be told, too: rping -s -S SIZE
  -C COUNT      client: pings to make (default: until interrupted)
  -P            server: serve any number of clients, also at once, until
                interrupted (default: one)
  -v            print the text of each ping
  -V            client: compare what comes back with what was sent
  -d            print every step

Ours:
  --fabric F    what carries the connection: tcp, the kernel's (default); xdp,
                xdp:generic or xdp:driver, TCP in user space on AF_XDP
  --device DEV  network device, needed for xdp
  --ipv6, -6    server without -a, testbed: IPv6; with -a the address says it
  --testbed     both ends on this machine, over a veth pair that exists only as
                long as that; without root on loopback
  --crc         ask for a CRC32C in every FPDU
  --markers     ask the peer to put markers into what it sends (RFC 5044, 4.3)
  --mpa-revision N
                client: 1 starts up as RFC 5044 has it, 2 as RFC 6581 (default)
  --p2p KINDS   client: peer-to-peer mode; what it may send first: write, read
                or send, or several with commas
  --json        JSON: an object for each connection, with -v for each ping too
  --version     say which version this is, and do nothing
  --help        say this

Statistics are of the time from a client's first Send to the server's last.

Exit status: 0 all pings were made (and nobody asked for a number of them, or
for one client only, when interrupted); 1 the connection was lost, or data were
wrong; 2 used wrongly; 3 this machine or user lacks what is needed; 4 no
connection: nobody is there, or they refuse; 130 interrupted.

Examples
  xping --testbed -C 10 -V
  xping -s -P
  xping -c -a 192.0.2.1 -C 10 -vV
  xping -c -a fd00::1 -C 1000 -S 65535 -V --crc
  sudo xping -c -a 192.0.2.1 --fabric xdp --device eth1 -C 10
  rping -c -a 192.0.2.1 -C 10 -vV     # against xping -s on 192.0.2.1
`

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
