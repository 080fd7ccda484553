package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

var example = []Chart{
	{
		Title: "Latency", X: "bytes", Y: "microseconds",
		Series: []Series{
			{"rd <&>", []Point{{1, 2.3}, {8, 2.4}, {4096, 5}, {1 << 20, 400}}},
			{"ud", []Point{{0, 1}, {1, 2.1}, {8, 2.2}, {4096, 4.5}, {8192, 0}}},
		},
	},
	{Title: "Bandwidth", X: "bytes", Y: "Gbit/s", Series: []Series{{"rd", []Point{{1, 0.02}, {1 << 20, 20}}}}},
}

func TestWrite_golden(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, example); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/example.svg"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the drawing differs from %s: look at it, then run the test with -update\n%s", golden, b.String())
	}
}

// elements parses a drawing and counts what it is made of.
func elements(t *testing.T, charts []Chart) map[string]int {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, charts); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Fatalf("a place that is none:\n%s", s)
	}
	n := map[string]int{}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			n[e.Name.Local]++
		}
	}
}

func TestWrite_wellFormed(t *testing.T) {
	if n := elements(t, example); n["svg"] != 1 || n["circle"] != 9 {
		t.Errorf("%v; want one drawing with 9 points", n)
	}
}

func TestWrite_nothing(t *testing.T) {
	bad := []Point{{0, 1}, {1, 0}, {-1, 1}, {1, math.Inf(1)}, {1, math.NaN()}, {math.NaN(), 1}}
	for _, s := range [][]Series{nil, {{"empty", nil}}, {{"nowhere", bad}}} {
		if n := elements(t, []Chart{{Series: s}}); n["circle"] != 0 {
			t.Errorf("%v: %v", s, n)
		}
	}
}

func TestWrite_manySeries(t *testing.T) {
	var many []Series
	for i := range 3*len(colours) + 1 {
		many = append(many, Series{"s", []Point{{8, float64(i + 1)}}})
	}
	if n := elements(t, []Chart{{Series: many}}); n["circle"] != len(many) {
		t.Errorf("%v; want %d points", n, len(many))
	}
}

// What loses is orange, what wins is blue, the more the stronger, and what is missing is left
// out.
func TestHeat(t *testing.T) {
	var b bytes.Buffer
	h := Heat{Title: "<ratios>", Rows: []string{"a", "b"}, Columns: []string{"8", "1M"}, Values: [][]float64{{0.25, 4}, {1, 0}}}
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;ratios&gt;", `fill="#338ec1"`, `fill="#dd7e33"`, ">0.25<", ">4.00<", ">1.00<", ">1M<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "<rect"); n != 4 { // and the background
		t.Errorf("%d rectangles, want 4", n)
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
