// Package vectors reads the test vectors of docs/vectors for the tests of the
// packages whose formats they show. docs/vectors/README.md describes the files.
package vectors

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Vector is one example: bytes, and what they mean.
type Vector struct {
	Name    string
	Note    string            // why it is here, or where it comes from
	Kind    string            // which of the file's formats
	Bytes   Hex               // on the wire
	Fields  map[string]string // names of RFC or Go fields: numbers in any base, or true and false
	Segment Hex               // Terminate: the segment that it answers
	Refused string            // why the bytes are refused: mostly the cause that a Terminate names
	Body    map[string]string // dgram: fields of what follows the header of a Hello
	ULPDUs  []Hex             // dgram, mpa: what the datagram, or the stream of FPDUs, carries
	Private Hex               // mpa: private data of a start-up frame
	Sack    []Hex             // dgram: its SACK words
}

// Hex is bytes, in JSON as hexadecimal digits with any white space.
type Hex []byte

// UnmarshalJSON reads the digits.
func (h *Hex) UnmarshalJSON(b []byte) (err error) {
	var text string
	if err = json.Unmarshal(b, &text); err != nil {
		return err
	}
	*h, err = hex.DecodeString(strings.Join(strings.Fields(text), ""))
	return err
}

// Load reads a file of docs/vectors, however deep below the root of the module
// the test runs. Names are unique within a file.
func Load(t testing.TB, file string) []Vector {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, gone := os.Stat(filepath.Join(dir, "go.mod")); gone == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	b, err := os.ReadFile(filepath.Join(dir, "docs", "vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []Vector
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if v.Name == "" || seen[v.Name] || len(v.Bytes) == 0 {
			t.Fatalf("%s: %q has no name of its own, or no bytes", file, v.Name)
		}
		seen[v.Name] = true
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return all
}

// Fill sets the exported fields of the struct that dst points to. A field that
// the vector does not name is zero; one that the struct does not have fails the
// test.
func (v *Vector) Fill(t testing.TB, dst any) {
	t.Helper()
	v.fill(t, v.Fields, dst)
}

// FillBody is Fill for the fields of the body.
func (v *Vector) FillBody(t testing.TB, dst any) {
	t.Helper()
	v.fill(t, v.Body, dst)
}

func (v *Vector) fill(t testing.TB, fields map[string]string, dst any) {
	t.Helper()
	s := reflect.ValueOf(dst).Elem()
	s.SetZero()
	for name, text := range fields {
		f := s.FieldByName(name)
		switch {
		case !f.IsValid():
			t.Fatalf("%s: %v has no field %s", v.Name, s.Type(), name)
		case f.Kind() == reflect.Bool:
			b, err := strconv.ParseBool(text)
			if err != nil {
				t.Fatalf("%s: %s: %v", v.Name, name, err)
			}
			f.SetBool(b)
		case f.CanUint():
			n := parse(t, v, name, text)
			if f.OverflowUint(n) {
				t.Fatalf("%s: %s = %#x does not fit", v.Name, name, n)
			}
			f.SetUint(n)
		default:
			t.Fatalf("%s: %s is a %v", v.Name, name, f.Type())
		}
	}
}

// Uint returns a field, 0 when the vector does not name it.
func (v *Vector) Uint(t testing.TB, field string) uint64 {
	t.Helper()
	text, ok := v.Fields[field]
	if !ok {
		return 0
	}
	return parse(t, v, field, text)
}

// Cause returns the cause of a refusal; ok is false when there is none.
func (v *Vector) Cause(t testing.TB) (cause uint16, ok bool) {
	t.Helper()
	if v.Refused == "" {
		return 0, false
	}
	return uint16(parse(t, v, "refused", v.Refused)), true
}

func parse(t testing.TB, v *Vector, field, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("%s: %s: %v", v.Name, field, err)
	}
	return n
}
