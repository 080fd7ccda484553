// Command xinfo tells what the network devices of this host can do for xwarp,
// and what to change where something is missing; see `xinfo --help`.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // AF_XDP cannot be used, or cleaning failed
	exitUsage  = 2
)

const usage = `usage: xinfo [--json] [DEV...]
       xinfo [--json] --check DEV
       xinfo --clean

Tells what network devices can do for AF_XDP, and what to do about each thing
that is missing. Looking changes nothing.

  xinfo              all devices but loopback: a table, then what is missing
  xinfo DEV...       everything about these
  xinfo --check DEV  the same, and exit status 1 when AF_XDP cannot be used there
  xinfo --clean      remove the namespaces of test beds whose owner is dead, and
                     end the processes in them. Nothing else can be left: XDP
                     programs, AF_XDP sockets and shared memory go with their
                     processes.
  --json             one JSON object per device and line

Columns
  QUEUES        pairs of receive and send queues; an AF_XDP socket owns one
  MODES         where the XDP program can run: driver, or generic (any device)
  ZERO-COPY     the card reads and writes our memory itself
  MULTI-BUFFER  frames larger than a page can be used
  AF_XDP        whether everything that is needed is there

Exit status: 0, 1 as said above, 2 used wrongly.

Examples
  xinfo --check eth1 && sudo xrun -n 2 --hosts a,b --device eth1 ./app
  xinfo --json | jq 'select(.usable) | .device'
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, xdp.Probe)) }

// options is what the command line says.
type options struct {
	check string
	clean bool
	json  bool
	devs  []string
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("xinfo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.check, "check", "", "")
	fs.BoolVar(&o.clean, "clean", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.devs = fs.Args()
	checking := false
	fs.Visit(func(f *flag.Flag) { checking = checking || f.Name == "check" })
	switch {
	case checking && o.check == "":
		return o, errors.New("--check needs the name of a device; xinfo lists them")
	case checking && (o.clean || len(o.devs) > 0):
		return o, errors.New("--check is about one device and nothing else")
	case o.clean && (o.json || len(o.devs) > 0):
		return o, errors.New("--clean goes alone")
	}
	return o, nil
}

// run does what args say and returns the exit code.
func run(args []string, out, errs io.Writer, probe func(string) (xdp.Report, error)) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(errs, "xinfo: %v\n`xinfo --help` shows how it is used.\n", err)
		return exitUsage
	}
	code := exitOK
	switch {
	case o.clean:
		err = clean(out)
	case o.check != "":
		code, err = check(o, out, probe)
	default:
		err = list(o, out, probe)
	}
	if err != nil {
		fmt.Fprintln(errs, "xinfo:", err)
		return exitFailed
	}
	return code
}

// clean removes what killed processes have left behind.
func clean(out io.Writer) error {
	removed, err := testbed.Clean()
	for _, name := range removed {
		fmt.Fprintln(out, "removed network namespace", name)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(out, "nothing was left behind")
	}
	return err
}

func check(o options, out io.Writer, probe func(string) (xdp.Report, error)) (int, error) {
	r, err := probe(o.check)
	if err != nil {
		return exitFailed, err
	}
	if err := show(o, out, r); err != nil {
		return exitFailed, err
	}
	if !r.Usable() {
		return exitFailed, nil
	}
	return exitOK, nil
}

func list(o options, out io.Writer, probe func(string) (xdp.Report, error)) error {
	names := o.devs
	if len(names) == 0 {
		var err error
		if names, err = devices(); err != nil {
			return err
		}
	}
	var reports []xdp.Report
	for _, name := range names {
		r, err := probe(name)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if len(o.devs) == 0 && !o.json {
		return writeTable(out, reports)
	}
	for _, r := range reports {
		if err := show(o, out, r); err != nil {
			return err
		}
	}
	return nil
}

// devices returns the names of all network devices but loopback.
func devices() ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range all {
		if d.Flags&net.FlagLoopback == 0 {
			names = append(names, d.Name)
		}
	}
	return names, nil
}

// show tells everything about one device.
func show(o options, out io.Writer, r xdp.Report) error {
	if !o.json {
		return writeReport(out, r)
	}
	line := struct {
		xdp.Report
		Usable bool `json:"usable"`
	}{r, r.Usable()}
	return json.NewEncoder(out).Encode(line)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}
