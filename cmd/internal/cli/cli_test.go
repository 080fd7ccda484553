package cli

import (
	"bytes"
	"flag"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const sample = `usage: xsample [-n N] TEST [HOST]
       xsample draw FILE...

Does something with a back\slash, "quotes" and ` + "`code`" + `.
.Second line, which roff would take for a command.

What to do (the client decides):
  -n, --number N  how many, as --fast has it,
                  or more
  --fast          do not wait
  --fabric F      what carries it: xdp:driver (the default), udp or tcp; udp
                  needs nothing
  --device DEV    network device:
                  RC  connections
                  RD  datagrams

Latency is half of a round trip.

Tests:
  send_lat   half a round trip
  send_bw    a stream
Exit status: 0 all went well; 1 it did not, or 2 did;
130 interrupted.

Examples
  xsample send_lat --device 'my dev'   as said
  xsample draw a.json
`

func samplePage() Page {
	fs := flag.NewFlagSet("xsample", flag.ContinueOnError)
	fs.Int("n", 0, "")
	fs.Int("number", 0, "")
	fs.Bool("fast", false, "")
	fs.String("fabric", "", "")
	fs.String("device", "", "")
	fs.String("old", "", "") // the help does not have it
	return Page{Name: "xsample", Summary: "do something", Help: sample, Flags: fs, SeeAlso: []string{"true(1)"}}
}

func TestRoff(t *testing.T) {
	page := samplePage().Roff(Build{Version: "v1.2.3", Date: "2026-11-22"})
	want := `.\" Made of the text of xsample --help.
.TH XSAMPLE 1 "2026-11-22" "xwarp v1.2.3" "User Commands"
.SH NAME
xsample \- do something
.SH SYNOPSIS
.nh
\fBxsample\fP [\fB\-n\fP \fIN\fP] \fITEST\fP [\fIHOST\fP]
.br
\fBxsample\fP draw \fIFILE\fP...
.hy
.SH DESCRIPTION
Does something with a back\eslash, "quotes" and \fBcode\fP. .Second line,
which roff would take for a command.
.SH OPTIONS
.SS What to do
The client decides.
.TP
\fB\-n\fP, \fB\-\-number\fP \fIN\fP
how many, as \fB\-\-fast\fP has it, or more
.TP
\fB\-\-fast\fP
do not wait
.TP
\fB\-\-fabric\fP \fIF\fP
what carries it: xdp:driver (the default), udp or tcp; udp needs nothing
.TP
\fB\-\-device\fP \fIDEV\fP
network device:
.br
RC connections
.br
RD datagrams
.SH TESTS
.TP
\fBsend_lat\fP
half a round trip
.TP
\fBsend_bw\fP
a stream
.SH EXIT STATUS
.TP
\fB0\fP
all went well
.TP
\fB1\fP
it did not, or 2 did
.TP
\fB130\fP
interrupted
.SH NOTES
Latency is half of a round trip.
.SH EXAMPLES
.TP
\fBxsample send_lat \-\-device \(aqmy dev\(aq\fP
as said
.PP
\fBxsample draw a.json\fP
.SH SEE ALSO
.BR xcheck (1),
.BR xinfo (1),
.BR xperf (1),
.BR xping (1),
.BR xrun (1),
.BR true (1)
`
	if page != want {
		t.Errorf("got\n%s", page)
	}
}

func TestFill_noCommands(t *testing.T) {
	var w strings.Builder
	fill(&w, ".so x "+strings.Repeat("long ", 14)+"'so .so")
	for line := range strings.Lines(w.String()) {
		if line[0] == '.' || line[0] == '\'' || len(line) > 80 {
			t.Errorf("roff would see a command, or a long line: %s", line)
		}
	}
}

// Bash completes as it would at a prompt, where it divides words at colons too.
func TestCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	script := samplePage().Completion()
	for _, c := range []struct{ line, want string }{
		{"xsample --f", "--fabric --fast"},
		{"xsample -", "--device --fabric --fast -n --number -old --help --version"},
		{"xsample se", "send_lat send_bw"},
		{"xsample ", "send_lat send_bw draw"},
		{"xsample -n 4 --fast ", "send_lat send_bw draw"},
		{"xsample -n ", ""},
		{"xsample --fabric ", "xdp:driver udp tcp"},
		{"xsample -fabric t", "tcp"},
		{"xsample --fabric=u", "udp"},
		{"xsample --fabric xdp:", "driver"},
		{"xsample --fabric xdp:d", "driver"},
		{"xsample --fabric udp d", "draw"},
		{"xsample draw ", ""},
		{"xsample draw --fabric=udp --n", "--number"},
		{"xsample --device l", "lo"},
		{"xsample --old ", ""},
	} {
		cmd := exec.Command(bash, "--norc", "-c", script+`
			cd /; COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
			_xsample && echo "${COMPREPLY[@]}"`, "bash", c.line)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s|: got %q (%v), want %q", c.line, got, err, c.want)
		}
	}
}

func TestAlternatives(t *testing.T) {
	for text, want := range map[string][]string{
		"xdp, udp or tcp": {"xdp", "udp", "tcp"},
		"which first: slot (fill, or not; the default), node, numa or socket, hwthread (as core); ppr:N:node is": {"slot", "node", "numa", "socket", "hwthread"},
		"client: what it sends: write, read or send, or several with commas":                                     {"write", "read", "send"},
		"messages or round trips per burst":                                                                      nil,
		"the number of ranks":                                                                                    nil,
		"how large: in frames (frames), by a socket (kernel)":                                                    nil,
		"which rank reads the standard input, or all, or none":                                                   nil,
	} {
		if got := alternatives(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestBuild(t *testing.T) {
	module := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26.3", Main: debug.Module{Version: version}}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return info
	}
	checkout := []string{"GOOS=linux", "GOARCH=amd64", "GOAMD64=v3", "vcs.revision=e31e21cf194fe0d210603c76ddaff272096e25e2", "vcs.time=2026-11-22T05:49:14Z", "vcs.modified=true"}
	for _, c := range []struct {
		what    string
		info    *debug.BuildInfo
		release string
		want    string
		date    string
	}{
		{"checkout", module("v1.2.4-0.20261122054914-e31e21cf194f+dirty", checkout...), "",
			"version v1.2.4-0.20261122054914-e31e21cf194f+dirty, commit e31e21cf194f with changes, go1.26.3 linux/amd64 v3", "2026-11-22"},
		{"module proxy, tag", module("v1.2.3", "GOOS=linux", "GOARCH=arm64"), "", "version v1.2.3, go1.26.3 linux/arm64", ""},
		{"module proxy, commit", module("v0.0.0-20261122054914-e31e21cf194f"), "",
			"version v0.0.0-20261122054914-e31e21cf194f, commit e31e21cf194f, go1.26.3", "2026-11-22"},
		{"archive", module("(devel)"), "", "version (devel), go1.26.3", ""},
		{"archive with a version", module("(devel)"), "v1.2.3", "version v1.2.3, go1.26.3", ""},
		{"nothing known", &debug.BuildInfo{}, "", "version (devel)", ""},
	} {
		if b := build(c.info, c.release); b.String() != c.want || b.Date != c.date {
			t.Errorf("%s: got %q of %q, want %q", c.what, b, b.Date, c.want)
		}
	}
}

func TestAnswer(t *testing.T) {
	for arg, want := range map[string]string{"--version": "xsample of xwarp, version ", "-version": "xsample of xwarp, version ", "--man": ".\\\"", "--completion": "# Completion of xsample"} {
		var out bytes.Buffer
		if !samplePage().Answer([]string{arg}, &out) || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %q", arg, out.String())
		}
	}
	for _, args := range [][]string{nil, {"-n"}, {"./a", "--version"}} {
		var out bytes.Buffer
		if samplePage().Answer(args, &out) || out.Len() > 0 {
			t.Errorf("%q: answered, with %q", args, out.String())
		}
	}
}
