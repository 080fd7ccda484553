package main

import (
	"errors"
	"flag"
	"io"

	"github.com/xwarp/xwarp/cmd/internal/cli"
	"github.com/xwarp/xwarp/cmd/internal/getopt"
)

const usage = `usage: xinfo [-v] [-d DEV] [-i PORT] [--json]
       xinfo -l
       xinfo DEV...
       xinfo --table
       xinfo [--json] --check DEV [--try]
       xinfo --clean

Tells what network devices can do, as ibv_devinfo does, and what to do about
each thing that is missing. Looking changes nothing and sends nothing (but for
--try).

  xinfo               the devices that have an IP address, then what AF_XDP
                      misses on them
  -d, --ib-dev DEV    this one only, which may be any, lo too
  -i, --ib-port PORT  this port only; a device has one, number 1
  -l, --list          only the names
  -v, --verbose       all attributes: how many queue pairs, requests, regions...
  xinfo DEV...        these, and all that was found out about AF_XDP there
  --table             AF_XDP on all devices but loopback: a table
  --check DEV         all that was found out about AF_XDP there, and exit status
                      1 when it cannot be used
  --try               with --check: try also what the driver only claims, which
                      else is "not tried": run a program in driver mode and
                      bind with zero-copy to a queue that nobody holds, for a
                      moment. The card may reset itself and lose its link for
                      some seconds
  --clean             remove the namespaces of test beds whose owner is dead, what
                      was shared as memory in them (folders in /dev/shm), and end
                      the processes in them; remove the n-tuple filters that
                      agents of xrun --queues steered have left in network cards,
                      and set back the settings that those of --busy-poll have
                      changed, which were killed together with their janitors
                      (they are noted in /run/xwarp). Nothing else can be left:
                      XDP programs, AF_XDP sockets and shared memory go with
                      their processes.
  --json              one JSON object with everything per device and line; all
                      devices but loopback where none is named
  --version           say which version this is, and do nothing
  --help              say this

Fields of a device
  fw_ver              the version of this program: it is what drives the device
  node_guid           made of the MAC address, as Linux' own iWARP drivers do
  vendor_id ...       of the card, from PCI; 0 where it is none
  max_mtu active_mtu  IP packets in bytes: possible, and now
  GID[n]              IP addresses
  fabric F            what --fabric F of xrun, xperf and xping carries there:
                      RC   connections, standard iWARP over TCP
                      RD   reliable datagrams
                      UD   unreliable datagrams

Columns of the table
  QUEUES        pairs of receive and send queues; an AF_XDP socket owns one
  MODES         where the XDP program can run: driver, or generic (any device)
  ZERO-COPY     the card reads and writes our memory itself: no, not tried (the
                driver says that it can; --check DEV --try finds out), unknown
                (no kernel before Linux 6.3 tells)
  MULTI-BUFFER  frames larger than a page can be used
  AF_XDP        whether everything that is needed is there

Exit status: 0 done; 1 there is no such device or port, or AF_XDP cannot be used
there (--check), or something could not be removed (--clean); 2 used wrongly.

Examples
  xinfo
  xinfo -vd eth1
  sudo xinfo --check eth1 --try
  xinfo --check eth1 && sudo xrun -n 2 --hosts a,b --device eth1 ./app
  xinfo --json | jq 'select(.usable) | .device'
  xinfo --json -d eth1 | jq '.attr.max_qp_rd_atom, .ports[0].gids'
`

// options is what the command line says.
type options struct {
	help    bool
	check   string
	try     bool
	clean   bool
	json    bool
	list    bool
	table   bool
	verbose bool
	dev     string
	port    int // 0: all
	devs    []string
}

// page is what xinfo says about itself.
func page() cli.Page {
	return cli.Page{
		Name: "xinfo", Summary: "tell what network devices can do for xwarp, as ibv_devinfo does",
		Help: usage, Flags: flagSet(&options{}), SeeAlso: []string{"ibv_devinfo(1)", "ethtool(8)", "ip(8)"},
	}
}

func flagSet(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("xinfo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.check, "check", "", "")
	fs.BoolVar(&o.try, "try", false, "")
	fs.BoolVar(&o.clean, "clean", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.BoolVar(&o.table, "table", false, "")
	for _, name := range []string{"l", "list"} {
		fs.BoolVar(&o.list, name, false, "")
	}
	for _, name := range []string{"v", "verbose"} {
		fs.BoolVar(&o.verbose, name, false, "")
	}
	for _, name := range []string{"d", "ib-dev"} {
		fs.StringVar(&o.dev, name, "", "")
	}
	for _, name := range []string{"i", "ib-port"} {
		fs.IntVar(&o.port, name, 0, "")
	}
	return fs
}

func parse(args []string) (options, error) {
	var o options
	fs := flagSet(&o)
	if err := fs.Parse(getopt.Split(args, "di")); err != nil {
		o.help = errors.Is(err, flag.ErrHelp)
		return o, err
	}
	o.devs = fs.Args()
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.judge(given)
}

// judge says what is wrong with flags that were given.
func (o *options) judge(given map[string]bool) error {
	what := 0 // how many things are to be done
	for _, name := range []string{"check", "clean", "l", "list", "table"} {
		if given[name] {
			what++
		}
	}
	choice := given["d"] || given["ib-dev"] || given["i"] || given["ib-port"] || o.verbose
	switch {
	case given["check"] && o.check == "":
		return errors.New("--check needs the name of a device; xinfo lists them")
	case given["check"] && (what > 1 || choice || len(o.devs) > 0):
		return errors.New("--check is about one device and nothing else")
	case o.try && !given["check"]:
		return errors.New("--try goes with --check DEV: a card may reset itself when it is tried")
	case o.clean && (what > 1 || choice || o.json || len(o.devs) > 0):
		return errors.New("--clean goes alone")
	case (o.list || o.table) && (what > 1 || choice || o.json || len(o.devs) > 0):
		return errors.New("--list and --table go alone: for more, leave them away")
	case (given["d"] || given["ib-dev"]) && o.dev == "":
		return errors.New("-d needs the name of a device; xinfo -l lists them")
	case o.dev != "" && len(o.devs) > 0:
		return errors.New("-d names the only device to tell about: leave the others away, or -d")
	case (given["i"] || given["ib-port"]) && o.port <= 0:
		return errors.New("-i needs the number of a port, which is 1")
	}
	return nil
}
