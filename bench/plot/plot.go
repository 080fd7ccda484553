package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Chart is one diagram. X counts bytes, or what else comes in powers of two.
type Chart struct {
	Title  string
	X, Y   string // what the axes show
	Series []Series
}

// Series is one line of a chart, and of its legend.
type Series struct {
	Name   string
	Points []Point
}

// Point is one measurement. A logarithmic axis has no place for values that
// are not positive; such points are left out.
type Point struct{ X, Y float64 }

// Measures of a drawing in pixels.
const (
	width        = 960
	height       = 440 // of a chart
	left, right  = 80, 260
	top, bottom  = 48, 56
	legendAt     = width - right + 24
	legendStep   = 22
	markerRadius = 3
)

// colours are the palette of Okabe and Ito, which colour-blind people can tell
// apart. Series beyond it are dashed.
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// Write draws the charts below one another.
func Write(w io.Writer, charts []Chart) error {
	var d drawing
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="13">`, width, height*len(charts))
	d.f(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	for i, c := range charts {
		d.f(`<g transform="translate(0 %d)">`, i*height)
		d.chart(c)
		d.f(`</g>`)
	}
	d.f(`</svg>`)
	_, err := io.WriteString(w, d.String())
	return err
}

// drawing is SVG being written, an element to a line.
type drawing struct{ strings.Builder }

func (d *drawing) f(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

func (d *drawing) text(x, y float64, attributes, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f"%s>`, x, y, attributes)
	_ = xml.EscapeText(d, []byte(text)) // a Builder takes everything
	d.WriteString("</text>\n")
}

func (d *drawing) chart(c Chart) {
	d.text(left, 26, ` font-size="16" font-weight="bold"`, c.Title)
	lo, hi, ok := bounds(c.Series)
	if !ok {
		d.text(left, height/2, "", "nothing was measured")
		return
	}
	x := sizeAxis(lo.X, hi.X, left, width-right)
	y := valueAxis(lo.Y, hi.Y, height-bottom, top)
	d.grid(&x, &y)
	d.text((x.at+x.to)/2, height-14, ` text-anchor="middle"`, c.X)
	d.f(`<g transform="translate(22 %.1f) rotate(-90)">`, (y.at+y.to)/2)
	d.text(0, 0, ` text-anchor="middle"`, c.Y)
	d.f(`</g>`)
	for i, s := range c.Series {
		d.series(i, s, &x, &y)
	}
}

// bounds returns the corners of what is drawn, and whether that is anything.
func bounds(series []Series) (lo, hi Point, ok bool) {
	lo, hi = Point{math.Inf(1), math.Inf(1)}, Point{}
	for _, s := range series {
		for _, p := range s.Points {
			if p.drawn() {
				lo = Point{min(lo.X, p.X), min(lo.Y, p.Y)}
				hi = Point{max(hi.X, p.X), max(hi.Y, p.Y)}
			}
		}
	}
	return lo, hi, hi.X > 0
}

func (p Point) drawn() bool {
	return p.X > 0 && p.Y > 0 && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0)
}

func (d *drawing) grid(x, y *axis) {
	for _, v := range x.ticks {
		at := x.position(v)
		d.f(`<path d="M%.1f %.1fV%.1f" stroke="#ddd"/>`, at, y.at, y.to)
		d.text(at, y.at+18, ` text-anchor="middle"`, x.label(v))
	}
	for _, v := range y.ticks {
		at := y.position(v)
		d.f(`<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`, x.at, at, x.to)
		d.text(x.at-8, at+4, ` text-anchor="end"`, y.label(v))
	}
	d.f(`<path d="M%.1f %.1fV%.1fH%.1f" fill="none" stroke="#333"/>`, x.at, y.to, y.at, x.to)
}

func (d *drawing) series(i int, s Series, x, y *axis) {
	style := fmt.Sprintf(`stroke="%s" stroke-width="2"`, colours[i%len(colours)])
	if round := i / len(colours); round > 0 {
		style += fmt.Sprintf(` stroke-dasharray="%d 4"`, 2+6/round)
	}
	var line, markers strings.Builder
	for _, p := range s.Points {
		if !p.drawn() {
			continue
		}
		command := "L"
		if line.Len() == 0 {
			command = "M"
		}
		at, height := x.position(p.X), y.position(p.Y)
		fmt.Fprintf(&line, "%s%.1f %.1f", command, at, height)
		fmt.Fprintf(&markers, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", at, height, markerRadius, colours[i%len(colours)])
	}
	if line.Len() == 0 {
		return
	}
	d.f(`<path d="%s" fill="none" %s/>`, line.String(), style)
	d.WriteString(markers.String())
	at := float64(top + 8 + i*legendStep)
	d.f(`<path d="M%d %.1fh26" %s/>`, legendAt, at, style)
	d.text(legendAt+34, at+4, "", s.Name)
}
