package plot

import (
	"fmt"
	"io"
	"math"
)

// Heat is a table of ratios: the further a cell is from 1, the stronger is its colour, blue
// below and orange above.
type Heat struct {
	Title         string
	Rows, Columns []string
	Values        [][]float64 // by row and column; what is not positive is left out
}

// Measures of a heat map in pixels.
const (
	heatName, heatCell, heatLine = 380, 58, 20
	heatTop                      = 64
	heatFull                     = 4 // the ratio, or its inverse, of the strongest colour
)

// Write draws the heat map.
func (h Heat) Write(w io.Writer) error {
	var d drawing
	width, height := heatName+heatCell*len(h.Columns)+16, heatTop+heatLine*len(h.Rows)+16
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`, width, height)
	d.f(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	d.text(16, 26, ` font-size="16" font-weight="bold"`, h.Title)
	for i, name := range h.Columns {
		d.text(float64(heatName+i*heatCell+heatCell/2), heatTop-6, ` text-anchor="middle"`, name)
	}
	for r, name := range h.Rows {
		y := heatTop + r*heatLine
		d.text(heatName-8, float64(y+14), ` text-anchor="end"`, name)
		for c, v := range h.Values[r] {
			if v <= 0 {
				continue
			}
			x := heatName + c*heatCell
			d.f(`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, x, y, heatCell-1, heatLine-1, heatColour(v))
			d.text(float64(x+heatCell/2), float64(y+14), ` text-anchor="middle"`, fmt.Sprintf("%.2f", v))
		}
	}
	d.f(`</svg>`)
	_, err := io.WriteString(w, d.String())
	return err
}

// heatColour mixes white with a colour of the palette.
func heatColour(v float64) string {
	strength := math.Log(v) / math.Log(heatFull)
	full := [3]float64{0xd5, 0x5e, 0x00}
	if strength < 0 {
		full, strength = [3]float64{0x00, 0x72, 0xb2}, -strength
	}
	strength = 0.8 * min(strength, 1) // the number stays legible
	colour := "#"
	for _, c := range full {
		colour += fmt.Sprintf("%02x", int(math.Round(255+(c-255)*strength)))
	}
	return colour
}
