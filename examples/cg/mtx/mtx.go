// Package mtx reads sparse matrices in the Matrix Market coordinate format
// (R. F. Boisvert, R. Pozo, K. A. Remington: The Matrix Market Exchange
// Formats, NISTIR 5935, 1996): real or integer values, general or symmetric.
package mtx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
)

// Matrix is a sparse matrix as its file has it.
type Matrix struct {
	Rows, Cols int
	// Symmetric says that only the lower triangle is stored: each entry
	// outside of the diagonal stands for its mirror image too.
	Symmetric bool
	Entries   []Entry // sorted by row, then by column; no two of one place
}

// Entry is one value. Row and Col count from 0, though files count from 1.
type Entry struct {
	Row, Col int32
	Value    float64
}

// Error says what is wrong with a file and on which line, which counts from 1.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("Matrix Market, line %d: %s", e.Line, e.What) }

// maxLine is the longest line in bytes. The format itself allows 1024.
const maxLine = 1 << 16

// reader goes through a file line by line.
type reader struct {
	scan  *bufio.Scanner
	line  int
	m     Matrix
	count int     // entries that the size line promises
	lines []int32 // the line of each entry
}

// Read reads one matrix. Its error is an *[Error] when the text is malformed,
// and wraps that of src when reading fails. It does not trust the sizes that
// the file claims: memory grows with what is really there.
func Read(src io.Reader) (*Matrix, error) {
	r := &reader{scan: bufio.NewScanner(src)}
	r.scan.Buffer(nil, maxLine)
	for _, part := range []func() error{r.banner, r.size, r.entries, r.sort} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return &r.m, nil
}

func (r *reader) fail(format string, args ...any) error {
	return &Error{r.line, fmt.Sprintf(format, args...)}
}

// next returns the words of the next line that has any. Comments are only
// skipped when asked for: they end where the entries begin.
func (r *reader) next(skipComments bool) ([]string, error) {
	for r.scan.Scan() {
		r.line++
		text := r.scan.Text()
		if skipComments && strings.HasPrefix(text, "%") {
			continue
		}
		if words := strings.Fields(text); len(words) > 0 {
			return words, nil
		}
	}
	r.line++
	switch err := r.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, r.fail("the line is longer than %d bytes: this is not a Matrix Market file", maxLine)
	case err != nil:
		return nil, fmt.Errorf("Matrix Market, line %d: %w", r.line, err)
	}
	return nil, io.EOF
}

// banner reads the first line, which names the format.
func (r *reader) banner() error {
	words, err := r.next(false)
	if err == io.EOF {
		return r.fail(`the file is empty; it must begin with "%%%%MatrixMarket matrix coordinate real symmetric"`)
	}
	if err != nil {
		return err
	}
	if r.line != 1 || !strings.EqualFold(words[0], "%%MatrixMarket") {
		return r.fail(`%.40q is not how a Matrix Market file begins: "%%%%MatrixMarket matrix coordinate real symmetric"`, strings.Join(words, " "))
	}
	want := [...]struct {
		what    string
		allowed []string
	}{
		{"object", []string{"matrix"}},
		{"format", []string{"coordinate"}},
		{"field", []string{"real", "integer"}},
		{"symmetry", []string{"general", "symmetric"}},
	}
	if len(words) != len(want)+1 {
		return r.fail("the banner has %d words, it needs %d: %%%%MatrixMarket matrix coordinate real symmetric", len(words), len(want)+1)
	}
	for i, w := range want {
		word := strings.ToLower(words[i+1])
		if word != w.allowed[0] && word != w.allowed[len(w.allowed)-1] {
			return r.fail("%s %.40q is not supported; convert the matrix to %s", w.what, words[i+1], strings.Join(w.allowed, " or "))
		}
	}
	r.m.Symmetric = strings.EqualFold(words[4], "symmetric")
	return nil
}

// size reads the line "rows columns entries" behind the comments.
func (r *reader) size() error {
	words, err := r.next(true)
	if err == io.EOF {
		return r.fail("the file ends before the line with rows, columns and entries")
	}
	if err != nil {
		return err
	}
	if len(words) != 3 {
		return r.fail("%d numbers where rows, columns and entries are expected", len(words))
	}
	for i, to := range []*int{&r.m.Rows, &r.m.Cols, &r.count} {
		n, err := strconv.ParseInt(words[i], 10, 32)
		if err != nil || n < 0 {
			return r.fail("%.40q is not a number of %s from 0 to %d", words[i], [...]string{"rows", "columns", "entries"}[i], math.MaxInt32)
		}
		*to = int(n)
	}
	if r.m.Symmetric && r.m.Rows != r.m.Cols {
		return r.fail("the matrix is called symmetric but has %d rows and %d columns", r.m.Rows, r.m.Cols)
	}
	return nil
}

// entries reads the lines "row column value".
func (r *reader) entries() error {
	const trust = 1 << 16 // entries to make room for on the file's word alone
	r.m.Entries = make([]Entry, 0, min(r.count, trust))
	r.lines = make([]int32, 0, min(r.count, trust))
	for {
		words, err := r.next(false)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(r.m.Entries) == r.count {
			return r.fail("there are more entries than the %d that the size line promises", r.count)
		}
		e, err := r.entry(words)
		if err != nil {
			return err
		}
		r.m.Entries = append(r.m.Entries, e)
		r.lines = append(r.lines, int32(r.line))
	}
	if len(r.m.Entries) < r.count {
		return r.fail("the file ends after %d of %d entries: it was cut off", len(r.m.Entries), r.count)
	}
	return nil
}

func (r *reader) entry(words []string) (Entry, error) {
	if len(words) != 3 {
		return Entry{}, r.fail("%d words where row, column and value are expected", len(words))
	}
	row, err := r.index("row", words[0], r.m.Rows)
	if err != nil {
		return Entry{}, err
	}
	col, err := r.index("column", words[1], r.m.Cols)
	if err != nil {
		return Entry{}, err
	}
	v, err := strconv.ParseFloat(words[2], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return Entry{}, r.fail("%.40q is not a finite number", words[2])
	}
	if r.m.Symmetric && col > row {
		return Entry{}, r.fail("entry (%d, %d) is above the diagonal: a symmetric file stores the lower triangle only", row+1, col+1)
	}
	return Entry{row, col, v}, nil
}

func (r *reader) index(what, word string, limit int) (int32, error) {
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil || n < 1 || n > int64(limit) {
		return 0, r.fail("%.40q is not a %s from 1 to %d", word, what, limit)
	}
	return int32(n - 1), nil
}

// sort puts the entries in order and finds those that are there twice.
func (r *reader) sort() error {
	sort.Stable((*byPlace)(r))
	e := r.m.Entries
	for i := 1; i < len(e); i++ {
		if e[i].Row == e[i-1].Row && e[i].Col == e[i-1].Col {
			r.line = int(r.lines[i])
			return r.fail("entry (%d, %d) is there already, on line %d", e[i].Row+1, e[i].Col+1, r.lines[i-1])
		}
	}
	return nil
}

// byPlace sorts entries and their lines together.
type byPlace reader

func (s *byPlace) Len() int { return len(s.lines) }
func (s *byPlace) Less(i, j int) bool {
	a, b := s.m.Entries[i], s.m.Entries[j]
	return a.Row < b.Row || a.Row == b.Row && a.Col < b.Col
}
func (s *byPlace) Swap(i, j int) {
	s.m.Entries[i], s.m.Entries[j] = s.m.Entries[j], s.m.Entries[i]
	s.lines[i], s.lines[j] = s.lines[j], s.lines[i]
}

// Write writes m so that Read gets back the same, with comment in front, one
// % per line.
func Write(dst io.Writer, m *Matrix, comment string) error {
	w := bufio.NewWriter(dst)
	symmetry := "general"
	if m.Symmetric {
		symmetry = "symmetric"
	}
	fmt.Fprintf(w, "%%%%MatrixMarket matrix coordinate real %s\n", symmetry)
	if comment != "" {
		for line := range strings.Lines(comment) {
			fmt.Fprintf(w, "%% %s\n", strings.TrimRight(line, "\n"))
		}
	}
	fmt.Fprintf(w, "%d %d %d\n", m.Rows, m.Cols, len(m.Entries))
	for _, e := range m.Entries {
		fmt.Fprintf(w, "%d %d %s\n", e.Row+1, e.Col+1, strconv.FormatFloat(e.Value, 'g', -1, 64))
	}
	return w.Flush()
}
