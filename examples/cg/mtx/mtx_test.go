package mtx

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	symmetric = "%%MatrixMarket matrix coordinate real symmetric\n"
	general   = "%%MatrixMarket matrix coordinate real general\n"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		want       Matrix
	}{
		{"symmetric", symmetric + "% a comment\n%\n2 2 3\n1 1 4\n2 1 -1.5\n2 2 4e0\n",
			Matrix{2, 2, true, []Entry{{0, 0, 4}, {1, 0, -1.5}, {1, 1, 4}}}},
		{"general, not square, any order", general + "2 3 2\n2 3 1\n1 1 2\n",
			Matrix{2, 3, false, []Entry{{0, 0, 2}, {1, 2, 1}}}},
		{"integers, capitals, DOS lines, blank lines", "%%matrixmarket MATRIX Coordinate Integer General\r\n\r\n1 1 1\r\n\r\n1 1 7\r\n",
			Matrix{1, 1, false, []Entry{{0, 0, 7}}}},
		{"no entries", general + "0 0 0\n", Matrix{0, 0, false, []Entry{}}},
		{"no newline at the end", general + "1 1 1\n1 1 0.5", Matrix{1, 1, false, []Entry{{0, 0, 0.5}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
		})
	}
}

func TestRead_malformed(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
		what       string
	}{
		{"empty", "", 1, "the file is empty"},
		{"other file", "<html>\n", 1, `"<html>" is not how`},
		{"banner not first", "\n" + general, 2, "is not how"},
		{"banner cut", "%%MatrixMarket matrix coordinate\n", 1, "has 3 words, it needs 5"},
		{"array", "%%MatrixMarket matrix array real general\n", 1, `format "array" is not supported; convert the matrix to coordinate`},
		{"complex", "%%MatrixMarket matrix coordinate complex general\n", 1, `field "complex" is not supported; convert the matrix to real or integer`},
		{"hermitian", "%%MatrixMarket matrix coordinate real hermitian\n", 1, `symmetry "hermitian"`},
		{"no size", general + "% only this\n", 3, "ends before the line with rows"},
		{"size cut", general + "2 2\n", 2, "2 numbers where rows, columns and entries"},
		{"size not a number", general + "2 x 1\n", 2, `"x" is not a number of columns`},
		{"size negative", general + "2 2 -1\n", 2, `"-1" is not a number of entries`},
		{"size beyond 32 bits", general + "2147483648 2 1\n", 2, `is not a number of rows`},
		{"symmetric, not square", symmetric + "2 3 1\n1 1 1\n", 2, "2 rows and 3 columns"},
		{"entry cut", general + "2 2 1\n1 1\n", 3, "2 words where row, column and value"},
		{"entry too long", general + "2 2 1\n1 1 1 1\n", 3, "4 words"},
		{"row 0", general + "2 2 1\n0 1 1\n", 3, `"0" is not a row from 1 to 2`},
		{"row too large", general + "2 2 1\n3 1 1\n", 3, `"3" is not a row from 1 to 2`},
		{"column too large", general + "2 2 1\n1 3 1\n", 3, `"3" is not a column from 1 to 2`},
		{"value", general + "2 2 1\n1 1 one\n", 3, `"one" is not a finite number`},
		{"value not finite", general + "2 2 1\n1 1 nan\n", 3, `"nan" is not a finite number`},
		{"value too large", general + "2 2 1\n1 1 1e999\n", 3, "is not a finite number"},
		{"upper triangle", symmetric + "2 2 1\n1 2 1\n", 3, "(1, 2) is above the diagonal"},
		{"too few", general + "2 2 2\n1 1 1\n", 4, "after 1 of 2 entries"},
		{"too many", general + "2 2 1\n1 1 1\n2 2 1\n", 4, "more entries than the 1"},
		{"twice", general + "2 2 3\n1 1 1\n2 2 1\n1 1 2\n", 5, "(1, 1) is there already, on line 3"},
		{"comment among the entries", general + "2 2 1\n% here\n1 1 1\n", 3, "words where"},
		{"binary", general + strings.Repeat("x", maxLine+1), 2, "longer than 65536 bytes"},
		{"claims more than there is", general + "2000000000 2000000000 2000000000\n", 3, "after 0 of 2000000000 entries"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Line != tt.line || !strings.Contains(e.What, tt.what) {
				t.Errorf("got line %d, %q; want line %d and %q", e.Line, e.What, tt.line, tt.what)
			}
		})
	}
}

func TestRead_failingSource(t *testing.T) {
	src := io.MultiReader(strings.NewReader(general), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := Read(src); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the error of the source", err)
	}
}

func TestWrite_roundTrip(t *testing.T) {
	m := &Matrix{3, 3, true, []Entry{{0, 0, 0.1}, {1, 0, -1e-300}, {2, 2, 1 / 3.0}}}
	var b bytes.Buffer
	if err := Write(&b, m, "two\nlines"); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, want %+v", got, m)
	}
}

// Whatever Read accepts keeps its promises and survives being written.
func FuzzRead(f *testing.F) {
	f.Add(symmetric + "2 2 3\n1 1 4\n2 1 -1.5\n2 2 4e0\n")
	f.Add(general + "% c\n2 3 2\n2 3 1\n1 1 2\n")
	f.Add(general + "2000000000 2 2000000000\n1 1 1")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, e := range m.Entries {
			switch {
			case e.Row < 0 || int(e.Row) >= m.Rows || e.Col < 0 || int(e.Col) >= m.Cols:
				t.Fatalf("entry %d (%d, %d) is outside of %d x %d", i, e.Row, e.Col, m.Rows, m.Cols)
			case m.Symmetric && e.Col > e.Row:
				t.Fatalf("entry %d (%d, %d) is above the diagonal", i, e.Row, e.Col)
			}
		}
		var b bytes.Buffer
		if err := Write(&b, m, ""); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, m) {
			t.Fatalf("read back as %+v, was %+v", again, m)
		}
	})
}
