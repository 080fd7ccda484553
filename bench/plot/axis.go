package plot

import (
	"math"
	"strconv"
)

// axis maps values to positions, logarithmically.
type axis struct {
	lo, hi float64 // values at its ends
	at, to float64 // positions of those
	ticks  []float64
	label  func(float64) string
}

// position returns where v is.
func (a *axis) position(v float64) float64 {
	return a.at + (a.to-a.at)*math.Log(v/a.lo)/math.Log(a.hi/a.lo)
}

// sizeAxis returns an axis from lo to hi bytes with ticks at powers of two.
func sizeAxis(lo, hi, at, to float64) axis {
	first, last := math.Floor(math.Log2(lo)), math.Ceil(math.Log2(hi))
	if first == last {
		first, last = first-1, last+1
	}
	step := math.Ceil((last - first) / 12) // more labels would touch
	a := axis{lo: math.Exp2(first), hi: math.Exp2(last), at: at, to: to, label: Bytes}
	for e := first; e <= last; e += step {
		a.ticks = append(a.ticks, math.Exp2(e))
	}
	return a
}

// valueAxis returns an axis that holds lo to hi with ticks at 1, 2 and 5 times
// powers of ten, or only at those where there are many.
func valueAxis(lo, hi, at, to float64) axis {
	steps := []float64{1, 2, 5}
	if hi/lo > 1e4 {
		steps = []float64{1}
	}
	a := axis{at: at, to: to, label: decimal}
	for e := math.Floor(math.Log10(lo)); a.hi < hi || len(a.ticks) < 2; e++ {
		for _, s := range steps {
			v := s * math.Pow(10, e)
			if v <= lo*(1+1e-9) {
				a.ticks = a.ticks[:0] // the axis begins here, or later
			}
			if a.ticks = append(a.ticks, v); v >= hi*(1-1e-9) && len(a.ticks) > 1 {
				a.hi = v
				break
			}
		}
	}
	a.lo = a.ticks[0]
	return a
}

// Bytes writes a number of bytes: 512, 4K, 1M.
func Bytes(v float64) string {
	unit := ""
	for _, next := range []string{"K", "M", "G"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, next
	}
	return number(v) + unit
}

// decimal writes a number with a decimal prefix: 0.5, 20, 5k, 2M.
func decimal(v float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if v < 1000*(1-1e-9) {
			break
		}
		v, unit = v/1000, next
	}
	return number(v) + unit
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
