package main

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

// writePicture writes the plate as a PNG, from cold (blue) over 0 (white) to hot
// (red), and closes w.
func writePicture(w io.WriteCloser, plate []float64, points int) error {
	most := 0.0
	for _, v := range plate {
		most = max(most, math.Abs(v))
	}
	img := image.NewRGBA(image.Rect(0, 0, points, points))
	for i, v := range plate {
		img.SetRGBA(i%points, i/points, shade(v/max(most, math.SmallestNonzeroFloat64)))
	}
	return errors.Join(png.Encode(w, img), w.Close())
}

// shade returns the colour of a temperature from -1 to 1.
func shade(v float64) color.RGBA {
	pale := uint8(255 * (1 - math.Sqrt(math.Abs(v))))
	if v < 0 {
		return color.RGBA{R: pale, G: pale, B: 255, A: 255}
	}
	return color.RGBA{R: 255, G: pale, B: pale, A: 255}
}
