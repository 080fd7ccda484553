package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Summary is what the ranks of a job have counted, for people and programs.
type Summary struct {
	Ranks   []RankSummary `json:"ranks"`
	Comms   []CommCount   `json:"communicators"`     // of all ranks together, in the order of their first use
	Calls   []CallSummary `json:"calls"`             // of all ranks together, those that took longest first
	Windows []WindowCount `json:"windows,omitempty"` // likewise
	Missing []int         `json:"missing,omitempty"` // ranks that have left nothing: no programs of MPI, or lost with their host
}

// RankSummary is the counters of one rank.
type RankSummary struct {
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"`
	Totals
	Limits   Limits         `json:"limits"`
	Carrier  string         `json:"carrier,omitempty"`  // what carries messages to other hosts
	Losses   Losses         `json:"losses"`             // of frames and datagrams
	Queues   Arrivals       `json:"rx_queues,omitzero"` // frames that came in on each queue of the network card, if it has several
	Networks []NetworkCount `json:"networks,omitempty"` // sent on each, where there are several
	Comms    []CommCount    `json:"communicators"`
	Windows  []WindowCount  `json:"windows,omitempty"`
	Calls    []CallSummary  `json:"calls"`
}

// CallSummary is the counters of an operation.
type CallSummary struct {
	Name        string `json:"name"`
	Calls       uint64 `json:"calls"`
	Bytes       uint64 `json:"bytes"`
	Nanoseconds uint64 `json:"ns"`
}

// Summarize sums up the reports of a job with size ranks.
func Summarize(reports []*Report, size int) Summary {
	s := Summary{Ranks: []RankSummary{}, Comms: []CommCount{}, Calls: []CallSummary{}} // JSON has lists, too, where there is nothing
	all, there, comms, windows := map[string]*CallSummary{}, map[int]bool{}, map[comm]int{}, map[comm]int{}
	for _, r := range reports {
		there[r.Rank] = true
		rank := RankSummary{Rank: r.Rank, Host: r.Host, Totals: r.Totals, Limits: r.Limits, Carrier: r.Carrier, Losses: r.Losses, Queues: r.Queues, Networks: r.Networks, Comms: r.Comms, Windows: r.Windows}
		s.addComms(r.Comms, comms)
		s.addWindows(r.Windows, windows)
		for _, op := range r.Ops {
			c := CallSummary{op.Name, op.Calls, op.Bytes, op.Time}
			rank.Calls = append(rank.Calls, c)
			sum := all[op.Name]
			if sum == nil {
				sum = &CallSummary{Name: op.Name}
				all[op.Name] = sum
			}
			sum.Calls += c.Calls
			sum.Bytes += c.Bytes
			sum.Nanoseconds += c.Nanoseconds
		}
		slices.SortFunc(rank.Calls, longest)
		s.Ranks = append(s.Ranks, rank)
	}
	for _, c := range all {
		s.Calls = append(s.Calls, *c)
	}
	slices.SortFunc(s.Calls, longest)
	for rank := range size {
		if !there[rank] {
			s.Missing = append(s.Missing, rank)
		}
	}
	return s
}

// comm is what communicators are told apart by: those that one Split has made of
// disjoint groups count as one.
type comm struct {
	name    string
	context uint32
	ranks   int
}

// addComms adds the counters of a rank. at is where each communicator is in the summary.
func (s *Summary) addComms(comms []CommCount, at map[comm]int) {
	for _, c := range comms {
		key := comm{c.Name, c.Context, c.Ranks}
		i, found := at[key]
		if !found {
			at[key] = len(s.Comms)
			s.Comms = append(s.Comms, c)
			continue
		}
		from := c.words()
		for k, w := range s.Comms[i].words() {
			*w += *from[k]
		}
	}
}

func longest(a, b CallSummary) int {
	return cmp.Or(cmp.Compare(b.Nanoseconds, a.Nanoseconds), cmp.Compare(a.Name, b.Name))
}

// WriteJSON writes the summary as one JSON object. The error is w's.
func (s Summary) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// legend says what is in the first table.
const legend = "sent, received: all messages, those of collectives too; eager, rendezvous, near (eager in shared memory): how those to others went\n"

// WriteTable writes the summary as two tables: ranks, and calls. The error is w's.
func (s Summary) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tsent\tbytes\treceived\tbytes\teager\trendezvous\tnear\tunexpected\tin calls\t")
	var sum Totals
	for _, r := range s.Ranks {
		row(t, fmt.Sprint(r.Rank), r.Totals)
		for i, w := range sum.words() {
			*w += *r.Totals.words()[i]
		}
	}
	row(t, "all", sum)
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := io.WriteString(w, legend); err != nil {
		return err
	}
	if err := s.writeLimits(w); err != nil {
		return err
	}
	if err := s.writeCarriers(w); err != nil {
		return err
	}
	if err := s.writeComms(t); err != nil {
		return err
	}
	if err := s.writeWindows(w, t); err != nil {
		return err
	}
	fmt.Fprintln(t, "\ncall\tcalls\tbytes\ttime\teach\t")
	for _, c := range s.Calls {
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%v\t\n", c.Name, c.Calls, c.Bytes, short(c.Nanoseconds), short(c.Nanoseconds/max(1, c.Calls)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, rank := range s.Missing {
		if _, err := fmt.Fprintf(w, "rank %d has left no counters\n", rank); err != nil {
			return err
		}
	}
	return nil
}

// writeLimits writes up to which lengths ranks send messages whole.
func (s Summary) writeLimits(w io.Writer) error {
	var least, most [4]uint64
	for i, r := range s.Ranks {
		for k, n := range r.Limits.words() {
			if i == 0 || *n < least[k] {
				least[k] = *n
			}
			most[k] = max(most[k], *n)
		}
	}
	if most == [4]uint64{} {
		return nil
	}
	_, err := fmt.Fprintf(w, "\neager up to %s bytes, to idle ranks %s, through shared memory %s\n",
		span(least[0], most[0]), span(least[1], most[1]), span(least[2], most[3]))
	return err
}

// writeCarriers writes what carries the messages of ranks, and what it has lost, in a
// line for all ranks of a host that have the same, and on which queues of the network
// card the frames of each came in.
func (s Summary) writeCarriers(w io.Writer) error {
	type line struct {
		carrier, host string
		ranks         []string
		losses        Losses
		networks      [MaxNetworks]NetworkCount
		came          string // the queues of each rank
	}
	var lines []*line
	for _, r := range s.Ranks {
		if r.Carrier == "" {
			continue
		}
		i := slices.IndexFunc(lines, func(l *line) bool { return l.carrier == r.Carrier && l.host == r.Host })
		if i < 0 {
			i = len(lines)
			lines = append(lines, &line{carrier: r.Carrier, host: r.Host})
		}
		lines[i].ranks = append(lines[i].ranks, fmt.Sprint(r.Rank))
		lines[i].losses = lines[i].losses.Plus(r.Losses)
		for k, n := range r.Networks {
			lines[i].networks[k].Datagrams += n.Datagrams
			lines[i].networks[k].Bytes += n.Bytes
		}
		if on := r.Queues.String(); on != "" {
			lines[i].came += fmt.Sprintf("  frames to rank %d: %s\n", r.Rank, on)
		}
	}
	for i, l := range lines {
		text := fmt.Sprintf("%s: %s: %s\n", l.host, "rank "+strings.Join(l.ranks, ", "), l.carrier) + l.came
		if i == 0 {
			text = "\n" + text
		}
		for k, n := range l.networks {
			if n != (NetworkCount{}) {
				text += fmt.Sprintf("  sent on network %d: %d datagrams, %d bytes\n", k+1, n.Datagrams, n.Bytes)
			}
		}
		if lost := l.losses.String(); lost != "" {
			text += "  " + strings.ReplaceAll(lost, "; ", "\n  ") + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func span(from, to uint64) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

func (s Summary) writeComms(t *tabwriter.Writer) error {
	if len(s.Comms) == 0 {
		return nil
	}
	fmt.Fprintln(t, "\ncommunicator\tranks\tsent\tbytes\treceived\tbytes\teager\trendezvous\tnear\t")
	for _, c := range s.Comms {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("context %d", c.Context)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, c.Ranks, c.SentMessages, c.SentBytes,
			c.ReceivedMessages, c.ReceivedBytes, c.Eager, c.Rendezvous, c.Near)
	}
	return t.Flush()
}

func row(t io.Writer, name string, n Totals) {
	fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t\n", name, n.SentMessages, n.SentBytes,
		n.ReceivedMessages, n.ReceivedBytes, n.Eager, n.Rendezvous, n.Near, n.Unexpected, short(n.CallNanoseconds))
}

// short is a time with three digits or so.
func short(ns uint64) time.Duration {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
