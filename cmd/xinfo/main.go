// Command xinfo tells what the network devices of this host can do for xwarp,
// and what to change where something is missing; see `xinfo --help`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // AF_XDP cannot be used, there is no such device or port, or cleaning failed
	exitUsage  = 2
)

func main() {
	m := machine{devices: devices, probe: xdp.Probe, try: xdp.Try, nic: lookupNIC, query: queryDevice}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, m))
}

// run does what args say and returns the exit code.
func run(args []string, out, errs io.Writer, m machine) int {
	if page().Answer(args, out) {
		return exitOK
	}
	o, err := parse(args)
	switch {
	case o.help:
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
		code, err = m.check(o, out)
	case o.list:
		err = m.listNames(out)
	case o.table:
		err = m.table(out)
	default:
		err = m.show(o, out)
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
	undone, devicesErr := launch.CleanDevices()
	for _, what := range undone {
		fmt.Fprintln(out, what)
	}
	err = errors.Join(err, devicesErr)
	if err == nil && len(removed)+len(undone) == 0 {
		fmt.Fprintln(out, "nothing was left behind")
	}
	return err
}

// check is for scripts: its exit code says whether AF_XDP can be used.
func (m machine) check(o options, out io.Writer) (int, error) {
	if o.try {
		m.probe = m.try
	}
	r, err := m.probe(o.check)
	switch {
	case err != nil:
	case o.json:
		m.probe = func(string) (xdp.Report, error) { return r, nil } // once is enough
		err = m.writeJSON(out, o.check)
	default:
		err = writeReport(out, r)
	}
	if err != nil || !r.Usable() {
		return exitFailed, err
	}
	return exitOK, nil
}

// errNoDevice is said where there is nothing to tell about.
var errNoDevice = errors.New("no network device besides loopback has an IP address; `xinfo --table` lists all there are, and `xinfo -d lo` tells about loopback")

// listNames prints the names of what can be used.
func (m machine) listNames(out io.Writer) error {
	names, err := m.usable()
	if err != nil {
		return err
	}
	plural := "s"
	if len(names) == 1 {
		plural = ""
	}
	fmt.Fprintf(out, "%d HCA%s found:\n", len(names), plural)
	for _, name := range names {
		fmt.Fprintf(out, "\t%s\n", name)
	}
	_, err = fmt.Fprintln(out)
	return err
}

// usable returns the names of the devices that something can be sent on.
func (m machine) usable() ([]string, error) {
	all, err := m.devices()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		n, err := m.nic(name)
		if err != nil {
			return nil, err
		}
		if len(n.addrs) > 0 {
			names = append(names, name)
		}
	}
	return names, nil
}

// table prints what AF_XDP can do on every device.
func (m machine) table(out io.Writer) error {
	names, err := m.devices()
	if err != nil {
		return err
	}
	var reports []xdp.Report
	for _, name := range names {
		r, err := m.probe(name)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	return writeTable(out, reports)
}

// show tells about one device, some, or all that can be used.
func (m machine) show(o options, out io.Writer) error {
	names, err := o.devs, error(nil)
	switch {
	case o.dev != "":
		names = []string{o.dev}
	case len(names) > 0:
	case o.json:
		names, err = m.devices()
	default:
		if names, err = m.usable(); err == nil && len(names) == 0 {
			err = errNoDevice
		}
	}
	if err != nil {
		return err
	}
	var reports []xdp.Report
	for _, name := range names {
		if o.json {
			if err := m.writeJSON(out, name); err != nil {
				return err
			}
			continue
		}
		h, err := m.hca(name, o.verbose)
		if err != nil {
			return err
		}
		if o.port > len(h.Ports) {
			return fmt.Errorf("%s has one port, number 1: there is no port %d", name, o.port)
		}
		if err := writeBlock(out, h); err != nil {
			return err
		}
		if len(o.devs) > 0 {
			if err := writeReport(out, h.Report); err != nil {
				return err
			}
		}
		reports = append(reports, h.Report)
	}
	if o.dev != "" || len(o.devs) > 0 {
		return nil
	}
	return writeMissing(out, reports)
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

// writeJSON tells everything about one device in one line.
func (m machine) writeJSON(out io.Writer, name string) error {
	h, err := m.hca(name, true)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(h)
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
