package bench

import (
	"fmt"
	"io"
)

// Contender is a column of the comparison: one way to move messages.
type Contender struct {
	Name      string
	Latency   Spec
	Bandwidth Spec
}

// compareSizes go from the smallest message to the largest that people send in
// one piece.
const compareSizes = "8,64,512,4K,32K,256K,1M,4M"

// Contenders returns the columns of the comparison: MPI over AF_XDP when
// withXDP is set, MPI over kernel UDP, and a plain kernel TCP connection.
func Contenders(withXDP bool) ([]Contender, error) {
	sizes, err := ParseSizes(compareSizes)
	if err != nil {
		return nil, err
	}
	column := func(name, family, fabric string) Contender {
		lat := Spec{Test: family + "_lat", Fabric: fabric, Sizes: sizes, Warmup: -1}
		bw := lat
		bw.Test = family + "_bw"
		return Contender{name, lat, bw}
	}
	all := []Contender{column("MPI/AF_XDP", "mpi", "xdp"), column("MPI/UDP", "mpi", "udp"), column("plain TCP", "raw", "tcp")}
	if !withXDP {
		all = all[1:]
	}
	return all, nil
}

// WriteComparison writes the head of the table for tests of one kind.
func WriteComparison(w io.Writer, kind Kind, contenders []Contender) error {
	if _, err := fmt.Fprintf(w, "\n%s\n%10s", kind.title(), "bytes"); err != nil {
		return err
	}
	for _, c := range contenders {
		if _, err := fmt.Fprintf(w, "%14s", c.Name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (k Kind) title() string {
	return [...]string{
		PingPong:  "Latency: half round trip in microseconds (median)",
		Bandwidth: "Bandwidth in Gbit/s, windows of 64 messages",
		Rate:      "Messages per second, windows of 64",
	}[k]
}

// WriteColumns writes the row as a line of a comparison.
func (r Row) WriteColumns(w io.Writer, kind Kind) error {
	if _, err := fmt.Fprintf(w, "%10d", r.Results[0].Size); err != nil {
		return err
	}
	for _, x := range r.Results {
		v := kind.metric(Point{Lat: x.Lat, Gbit: x.Gbit, Msgs: x.Msgs})
		if _, err := fmt.Fprintf(w, "%14.2f", v); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
