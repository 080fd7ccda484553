package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/cmd/internal/cli"
)

//go:embed help_head.txt
var helpHead string

//go:embed help_tail.txt
var helpTail string

// help writes the manual, or that of one command.
func help(w io.Writer, command string) error {
	if c, ok := bench.Find(command); ok {
		return helpTest(w, c)
	}
	text, err := manual()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// manual returns what --help prints.
func manual() (string, error) {
	tables, err := bench.Comparisons(true)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(helpHead)
	for _, c := range bench.Cases() {
		fmt.Fprintf(&b, "  %-17s %s\n", c.Name, c.Summary)
	}
	b.WriteString("\nTables of compare:\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "  %-17s %s\n", t.Name, t.Summary)
	}
	fmt.Fprintf(&b, "  %-17s %s\n", peersTable, peersSummary)
	fmt.Fprintf(&b, "  %-17s %s\n", abiTable, abiSummary)
	fmt.Fprintf(&b, "  %-17s %s\n", algorithmsTable, algorithmsSummary)
	others := slices.DeleteFunc(bench.Fabrics(), func(f string) bool { return f == "xdp" || f == "tcp" })
	b.WriteString(cli.Configured(strings.Replace(helpTail, "FABRICS", ", "+strings.Join(others, ", "), 1), 20))
	return b.String(), nil
}

// page is what xperf says about itself.
func page() (cli.Page, error) {
	text, err := manual()
	var vs, sizes, netns string
	return cli.Page{
		Name: "xperf", Summary: "measure latency, bandwidth and message rate between two ends",
		Help: text, Flags: (&options{}).flagSet(&vs, &sizes, &netns), SeeAlso: []string{"ib_send_lat(1)"},
	}, err
}

// helpTest writes the manual of one test.
func helpTest(w io.Writer, c bench.Case) error {
	_, err := fmt.Fprintf(w, `xperf %[1]s: %[2]s

  xperf %[1]s [FLAGS]             server: waits for one client
  xperf %[1]s HOST [FLAGS]        client: measures against the server on HOST
  xperf %[1]s --testbed [FLAGS]   both ends on this machine, over a veth pair

Example:
  xperf %[1]s %[3]s

`+"`xperf --help` lists the flags.\n", c.Name, c.Summary, c.Example)
	return err
}
