package main

import (
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, put := range []bool{false, true} {
		for _, n := range []int{1, 2, 3, 4, 6} {
			testRun(t, n, 7, put)
			testRun(t, n, 40, put)
		}
	}
}

func testRun(t *testing.T, n, points int, put bool) {
	var out strings.Builder
	o := options{points: points, steps: 60, put: put, png: filepath.Join(t.TempDir(), "plate.png")}
	err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
	if err != nil || !strings.Contains(out.String(), "60 steps") {
		t.Fatalf("%d ranks, %d points, put %v: %v, %q", n, points, put, err, out.String())
	}
	f, err := os.Open(o.png)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != points {
		t.Errorf("%d ranks, %d points: the picture cannot be read: %v", n, points, err)
	}
}

// A plate that was not followed long enough is noticed.
func TestRun_wrongAnswer(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		b, err := newBlock(p.World(), 20)
		if err != nil {
			return err
		}
		b.start()
		if got := b.error(1); got <= tolerance {
			t.Errorf("after no step every point is within %g of what it should be after one", got)
		}
		return run(p.World(), options{points: 20}, io.Discard)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOptions_check(t *testing.T) {
	for _, o := range []options{{points: 0}, {points: 1 << 20}, {points: 5, steps: -1}} {
		if o.check() == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
