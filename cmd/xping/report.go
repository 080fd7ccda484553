package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/xwarp/xwarp/cmd/xping/rping"
)

// config is what an end is to do, and tell.
func (p *program) config(o *options, role string) rping.Config {
	c := o.ping
	if o.verbose {
		c.Ping = func(x rping.Ping) { p.ping(o, role, x) }
	}
	if role == "server" {
		c.Ended = func(r rping.Result, err error) { p.ended(o, role, r, err) }
	}
	if o.debug {
		c.Logf = func(format string, args ...any) { p.notice(role+": "+format, args...) }
	}
	return c
}

// print writes to the output; both ends of a testbed do.
func (p *program) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format, args...)
}

// pingLine is what --json tells of a ping.
type pingLine struct {
	Role string  `json:"role"`
	Peer string  `json:"peer"`
	Ping int     `json:"ping"` // from 0
	Data string  `json:"data"`
	RTT  float64 `json:"rtt_us,omitempty"` // at a client
}

// ping tells of one ping, as rping does.
func (p *program) ping(o *options, role string, x rping.Ping) {
	switch {
	case o.json:
		p.printJSON(pingLine{role, x.Peer.String(), x.Seq, string(x.Data), micros(x.RTT)})
	case role == "server":
		p.print("server ping data: %s\n", x.Data)
	default:
		p.print("ping data: %s\n", x.Data)
	}
}

// resultLine is what --json tells of a connection.
type resultLine struct {
	Role      string   `json:"role"`
	Peer      string   `json:"peer"`
	Pings     int      `json:"pings"`
	Size      int      `json:"size,omitempty"` // at a client, like all that follows but the error
	Validated bool     `json:"validated,omitempty"`
	RTT       *rttLine `json:"rtt_us,omitempty"`
	Error     string   `json:"error,omitempty"`
}

type rttLine struct {
	Min  float64 `json:"min"`
	Avg  float64 `json:"avg"`
	Max  float64 `json:"max"`
	Mdev float64 `json:"mdev"`
}

// ended tells of a connection that is over. Errors of a client are told at the
// end of the program.
func (p *program) ended(o *options, role string, r rping.Result, err error) {
	rtt := &r.RTT
	if o.json {
		line := resultLine{Role: role, Peer: r.Peer.String(), Pings: r.Pings}
		if role == "client" {
			line.Size, line.Validated = o.ping.Size, o.ping.Validate && r.Pings > 0
		}
		if role == "client" && r.Pings > 0 {
			line.RTT = &rttLine{micros(rtt.Min), micros(rtt.Avg()), micros(rtt.Max), micros(rtt.Dev())}
		}
		if err != nil {
			line.Error = err.Error()
		}
		p.printJSON(line)
		return
	}
	if role == "server" {
		p.print("%v: %d pings\n", r.Peer, r.Pings)
		if err != nil && o.ping.Persistent { // else the program ends with it
			p.notice("%v: %v", r.Peer, err)
		}
		return
	}
	if r.Pings == 0 {
		return
	}
	validated := ""
	if o.ping.Validate {
		validated = ", data validated"
	}
	p.print("--- %v: xping statistics ---\n%d pings of %d bytes%s\nrtt min/avg/max/mdev = %.1f/%.1f/%.1f/%.1f us\n",
		r.Peer, r.Pings, o.ping.Size, validated, micros(rtt.Min), micros(rtt.Avg()), micros(rtt.Max), micros(rtt.Dev()))
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func (p *program) printJSON(line any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := json.NewEncoder(p.out).Encode(line); err != nil {
		fmt.Fprintln(p.errs, "xping:", err)
	}
}
