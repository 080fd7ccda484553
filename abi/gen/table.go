package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// An abi is a binary interface.
type abi struct {
	name   string
	column int // of constants.txt
	tag    string
}

// abis are those that there are libraries for.
var abis = []abi{{"mpi", 0, "!mpich"}, {"mpich", 1, "mpich"}}

// A function is one of functions.txt.
type function struct {
	result string
	name   string // MPI_Send
	large  bool   // there is a form with large counts
	params []param
}

// A param is a parameter of a function. In the form with large counts its type is wide.
type param struct {
	base, wide string // without const and stars: MPI_Comm, int
	constant   bool
	stars      string
	name       string
	suffix     string // [] and the like
}

// pointer reports whether the parameter is an address.
func (p param) pointer() bool { return p.stars != "" || p.suffix != "" }

// varies reports whether the form with large counts has another type there.
func (p param) varies() bool { return p.wide != p.base }

// A constant is one of constants.txt.
type constant struct {
	kind, name string
	values     [2]string // of each ABI
}

// input is all that the generator reads.
type input struct {
	functions   []function
	constants   []constant
	implemented map[string]bool // exported functions of package capi
	parts       map[string]string
}

func readInput(root string) (*input, error) {
	in := &input{implemented: map[string]bool{}, parts: map[string]string{}}
	err := eachLine(filepath.Join(root, "abi/functions.txt"), in.addFunction)
	if err == nil {
		err = eachLine(filepath.Join(root, "abi/constants.txt"), in.addConstant)
	}
	if err == nil {
		err = in.readCapi(filepath.Join(root, "abi/capi"))
	}
	for _, name := range []string{"library.go", "library.h", "library.c", "legacy.c", "types_mpi.h", "types_mpich.h", "types.h", "ABI.md"} {
		text, readErr := os.ReadFile(filepath.Join(root, "abi/parts", name+".txt"))
		if err == nil {
			err = readErr
		}
		in.parts[name] = string(text)
	}
	return in, err
}

// eachLine calls f with each line of a table.
func eachLine(path string, f func(line string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return s.Err()
}

var (
	functionLine = regexp.MustCompile(`^(\w+) (MPI_\w+)(\|_c)?\((.*)\)$`)
	paramText    = regexp.MustCompile(`^(const )?(\w+)(?:\|(\w+))? (\**)(\w+)((?:\[\d*\])*)$`)
)

func (in *input) addFunction(line string) error {
	m := functionLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("not a function: %s", line)
	}
	f := function{result: m[1], name: m[2], large: m[3] != ""}
	for text := range strings.SplitSeq(m[4], ", ") {
		if text == "void" || text == "..." {
			continue
		}
		m := paramText.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("not a parameter: %s", text)
		}
		p := param{base: m[2], wide: m[3], constant: m[1] != "", stars: m[4], name: m[5], suffix: m[6]}
		if p.wide == "" {
			p.wide = p.base
		}
		f.params = append(f.params, p)
	}
	in.functions = append(in.functions, f)
	return nil
}

func (in *input) addConstant(line string) error {
	w := strings.Fields(line)
	if len(w) != 4 {
		return fmt.Errorf("want a type, a name and two values: %s", line)
	}
	in.constants = append(in.constants, constant{w[0], w[1], [2]string{w[2], w[3]}})
	return nil
}

// readCapi finds out which functions are implemented: by exported functions of package capi.
func (in *input) readCapi(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
				in.implemented[fn.Name.Name] = true
			}
		}
	}
	return nil
}

// goName is the function of package capi that does what f does: CommRank for MPI_Comm_rank.
func (f function) goName() string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(f.name, "MPI_"), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// cast reports whether f only converts a handle from or to an int.
func (f function) cast() bool {
	return strings.HasSuffix(f.name, "_toint") || strings.HasSuffix(f.name, "_fromint")
}

// clock is the function that reads the clock, which takes less time than to call Go: programs measure with it.
const clock = "MPI_Wtime"

// inC reports whether C does all of f.
func (f function) inC() bool { return f.cast() || f.name == clock }

// there reports whether f is implemented.
func (in *input) there(f function) bool { return f.inC() || in.implemented[f.goName()] }
