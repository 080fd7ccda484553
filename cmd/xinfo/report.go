package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/xwarp/xwarp/xdp"
)

// writeTable tells about all devices in one line each, and then what they
// miss. What several miss alike is told once.
func writeTable(out io.Writer, reports []xdp.Report) error {
	if len(reports) == 0 {
		_, err := fmt.Fprintln(out, "there is no network device besides loopback")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tDRIVER\tLINK\tMTU\tQUEUES\tMODES\tZERO-COPY\tMULTI-BUFFER\tAF_XDP")
	for _, r := range reports {
		link := "down"
		if r.Up {
			link = "up"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.Device, orDash(r.Driver), link, r.MTU, r.Queues,
			orDash(strings.Join(r.Modes, ",")), r.ZeroCopy, yesNo(r.MultiBuffer), yesNo(r.Usable()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(missing(reports, true))+len(missing(reports, false)) > 0 {
		fmt.Fprintln(out)
	}
	return writeMissing(out, reports)
}

// writeMissing tells what devices miss for AF_XDP, what is needed first.
func writeMissing(out io.Writer, reports []xdp.Report) error {
	var sections []string
	for _, needed := range []bool{true, false} {
		section := map[bool]string{true: "Missing:\n", false: "Would be better:\n"}[needed]
		found := missing(reports, needed)
		for _, m := range found {
			section += fmt.Sprintf("  %s: %s: %s\n    -> %s\n", strings.Join(m.devices, ", "), m.Name, orDash(m.Detail), orDash(m.Remedy))
		}
		if len(found) > 0 {
			sections = append(sections, section)
		}
	}
	_, err := io.WriteString(out, strings.Join(sections, "\n"))
	return err
}

// miss is a finding that some devices have in common.
type miss struct {
	xdp.Finding
	devices []string
}

func missing(reports []xdp.Report, needed bool) []miss {
	var all []miss
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.OK || f.Unsure || f.Needed != needed {
				continue
			}
			i := slices.IndexFunc(all, func(m miss) bool { return m.Finding == f })
			if i < 0 {
				i = len(all)
				all = append(all, miss{Finding: f})
			}
			all[i].devices = append(all[i].devices, r.Device)
		}
	}
	return all
}

// writeReport tells everything about one device, with the verdict last.
func writeReport(out io.Writer, r xdp.Report) error {
	fmt.Fprintf(out, "%s (driver %s, MTU %d)\n", r.Device, orDash(r.Driver), r.MTU)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		state := "ok"
		switch {
		case !f.OK && f.Needed:
			state = "MISSING"
		case f.Unsure:
			state = "?"
		case !f.OK:
			state = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", state, f.Name, f.Detail)
		if !f.OK && f.Remedy != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", f.Remedy)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, verdict(r))
	return err
}

func verdict(r xdp.Report) string {
	var why []string
	for _, f := range r.Findings {
		if f.Needed && !f.OK {
			why = append(why, f.Name+": "+f.Detail)
		}
	}
	if len(why) == 0 {
		return r.Device + ": AF_XDP can be used"
	}
	return r.Device + ": AF_XDP cannot be used (" + strings.Join(why, "; ") + ")"
}
