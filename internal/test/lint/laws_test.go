package lint

import (
	"strings"
	"testing"
	"testing/fstest"
)

// source makes a tree of files given as path, content, path, content.
func source(t *testing.T, files ...string) *Tree {
	t.Helper()
	root := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// expect wants exactly one problem for each want, which it contains.
func expect(t *testing.T, got []Problem, want ...string) {
	t.Helper()
	for _, w := range want {
		found := false
		for i, p := range got {
			if strings.Contains(p.String(), w) {
				got = append(got[:i:i], got[i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("no problem contains %q", w)
		}
	}
	for _, p := range got {
		t.Errorf("unexpected: %v", p)
	}
}

// small is a table of three layers.
var small = []Row{
	{Package: "leaf", Leaf: true},
	{Package: "low", Modules: "example.org/x"},
	{Package: "proto", May: "low", Pure: true},
	{Package: "cmd/*", May: "..."},
}

func TestCheckImports(t *testing.T) {
	const pre = `import _ "` + Module + "/"
	tests := []struct {
		name, file, code string
		want             []string
	}{
		{"allowed edge", "proto/a.go", pre + `low"`, nil},
		{"leaf needs no edge", "proto/a.go", pre + `leaf"`, nil},
		{"upwards", "low/a.go", pre + `proto"`, []string{"low/a.go:2: low imports " + Module + "/proto: that is upwards"}},
		{"edge not in table", "proto2/a.go", pre + `low"`, []string{"no row"}},
		{"program to program", "cmd/a/a.go", pre + `cmd/b"`, []string{"programs do not import each other"}},
		{"program may all", "cmd/a/a.go", pre + `low"`, nil},
		{"foreign module", "proto/a.go", `import _ "example.org/x/y"`, []string{"foreign module"}},
		{"foreign module of the row", "low/a.go", `import _ "example.org/x/y"`, nil},
		{"foreign module with that prefix", "low/a.go", `import _ "example.org/xylophone"`, []string{"foreign module"}},
		{"test may", "low/a_test.go", pre + `proto"`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := source(t, tt.file, "package x\n"+tt.code+"\n")
			expect(t, CheckImports(tree, small), tt.want...)
		})
	}
}

func TestCheckTable(t *testing.T) {
	tree := source(t, "low/a.go", "package low", "high/a.go", "package high")
	expect(t, CheckTable(tree, []Row{
		{Package: "low", May: "high"},
		{Package: "high", May: "low"},
		{Package: "high"},
		{Package: "gone"},
	}), "row low: may import high, which has no row further down", "row high: is there twice", "row gone: there is no such package")
}

func TestCheckUnsafe(t *testing.T) {
	const code = "package low\nimport _ \"unsafe\"\n"
	allowed := []string{"low"}
	expect(t, CheckUnsafe(source(t, "low/a_unsafe.go", code), allowed))
	expect(t, CheckUnsafe(source(t, "low/a.go", code), allowed), "low/a.go:2: unsafe code in a.go: move it")
	expect(t, CheckUnsafe(source(t, "proto/a_unsafe.go", code), allowed), "unsafe code in proto")
	expect(t, CheckUnsafe(source(t, "proto/a.go", "package proto\n\n//go:linkname f runtime.f\nfunc f()\n"), allowed), "proto/a.go:3: unsafe code")
}

func TestCheckPure(t *testing.T) {
	tests := []struct {
		name, code string
		want       []string
	}{
		{"bytes only", `import "encoding/binary"; func F(b []byte) uint16 { return binary.BigEndian.Uint16(b) }`, nil},
		{"addresses", `import _ "net/netip"`, nil},
		{"clock", `import _ "time"`, []string{"mono.Time"}},
		{"lock", `import _ "sync"`, []string{"one engine"}},
		{"goroutine", `func F() { go F() }`, []string{"starts a goroutine"}},
		{"channel", `var C chan int`, []string{"uses a channel"}},
		{"fmt in an error", `import "fmt"; func F() error { return fmt.Errorf("x") }`, nil},
		{"fmt in String", `import "fmt"; type T int; func (t T) String() string { return fmt.Sprint(int(t)) }`, nil},
		{"fmt in a panic", `import "fmt"; func F() { panic(fmt.Sprint(1)) }`, nil},
		{"fmt elsewhere", `import "fmt"; func F() string { return fmt.Sprint(1) }`, []string{"formats text in F"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, CheckPure(source(t, "proto/a.go", "package proto\n"+tt.code+"\n"), small), tt.want...)
			expect(t, CheckPure(source(t, "low/a.go", "package low\n"+tt.code+"\n"), small))
			expect(t, CheckPure(source(t, "proto/a_test.go", "package proto\n"+tt.code+"\n"), small))
		})
	}
}

func TestCheckClock(t *testing.T) {
	const code = "package low\nimport \"time\"\nvar T = time.Now()\n"
	tree := source(t, "low/a.go", code)
	expect(t, CheckClock(tree, nil), "low/a.go:3: low reads the clock")
	expect(t, CheckClock(tree, map[string]string{"low": "it may"}))
	expect(t, CheckClock(tree, map[string]string{"low": "it may", "proto": "it did"}), "ClockPackages names proto")
}

func TestCheckTests(t *testing.T) {
	tree := source(t, "low/a_test.go", "package low\nfunc TestA_some(t *testing.T) {}\nfunc FuzzRead(f *testing.F) {}\n")
	tree.Texts = append(tree.Texts, Text{Path: "docs/a.md", Data: "`TestA_*`, `FuzzRead`\nand `TestA_none`, FuzzWrite, a Test and Tests\n"})
	expect(t, CheckTests(tree), "docs/a.md:2: TestA_none", "docs/a.md:2: FuzzWrite")
}

func TestCheckQuiet(t *testing.T) {
	const body = "import (\"fmt\"; \"os\"; \"log\")\nfunc F() { fmt.Println(); os.Exit(1); log.Print() }\n"
	low := source(t, "low/a.go", "package low\n"+body)
	expect(t, CheckQuiet(low, nil), "imports log", "prints to the standard output", "exits")
	expect(t, CheckQuiet(low, map[string]string{"low": "it may"}), "imports log", "prints to the standard output")
	expect(t, CheckQuiet(source(t, "cmd/a/main.go", "package main\n"+body), nil))
	formats := source(t, "low/a.go", "package low\nimport \"fmt\"\nvar F = fmt.Sprint()\n")
	expect(t, CheckQuiet(formats, nil))
	expect(t, CheckQuiet(formats, map[string]string{"low": "it did"}), "ExitPackages names low")
}

func TestCheckState(t *testing.T) {
	tests := []struct {
		name, code string
		want       []string
	}{
		{"sentinel error", `import "errors"; var ErrX = errors.New("x")`, nil},
		{"table", `var names = [...]string{"a", "b"}; func F(i int) string { return names[i] }`, nil},
		{"map as a table", `var m = map[string]int{"a": 1}`, nil},
		{"interface check", `var _ interface{ F() } = T{}; type T struct{}; func (T) F() {}`, nil},
		{"embedded file", "//go:embed x\nvar data []byte", nil},
		{"counter", `var n = 0; func F() { n++ }`, []string{"low.n is changed here"}},
		{"assigned", `var n = 0; func F() { n = 1 }`, []string{"low.n is changed here"}},
		{"element assigned", `var m = map[string]int{}; func F() { m["a"] = 1 }`, []string{"low.m is changed here"}},
		{"deleted from", `var m = map[string]int{}; func F() { delete(m, "a") }`, []string{"low.m is changed here"}},
		{"address taken", `var n = 0; func F() *int { return &n }`, []string{"low.n is changed here"}},
		{"local of that name", `var n = 0; func F() { n := 1; n++; _ = n }`, nil},
		{"no value", `var n int`, []string{"low.n has no value"}},
		{"made", `var m = make(map[string]int)`, []string{"starts empty"}},
		{"pointer", `type T struct{}; var p = &T{}`, []string{"points to a T"}},
		{"lock", `import "sync"; var mu sync.Mutex`, []string{"is a sync.Mutex"}},
		{"lock by literal", `import "sync"; var once = sync.Once{}`, []string{"is a sync.Once"}},
		{"channel", `var c chan int = nil`, []string{"is a channel"}},
		{"random numbers", `import "math/rand"; var r = rand.New(nil)`, []string{"holds state"}},
		{"of another package", `import "os"; func F() { os.Args = nil }`, []string{"low changes Args of package os"}},
		{"field of a local", `import "os"; func F(os struct{ Args int }) { os.Args = 1 }`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, CheckState(source(t, "low/a.go", "package low\n"+tt.code+"\n")), tt.want...)
		})
	}
	t.Run("written in another file", func(t *testing.T) {
		expect(t, CheckState(source(t, "low/a.go", "package low\nvar n = 0\n", "low/b.go", "package low\nfunc F() { n++ }\n")), "low/b.go:2: package variable low.n")
	})
}

func TestCheckSize(t *testing.T) {
	long := "package low\nfunc F() {\n" + strings.Repeat("\n", MaxFunc-1) + "}\n"
	tree := source(t, "low/a.go", long)
	lines := MaxFunc + 1
	expect(t, CheckSize(tree, nil), "low/a.go:F: 71 lines, the limit is 70")
	expect(t, CheckSize(tree, map[string]int{"low/a.go:F": lines}))
	expect(t, CheckSize(tree, map[string]int{"low/a.go:F": lines - 1}), "it grew from 70 to 71")
	expect(t, CheckSize(tree, map[string]int{"low/a.go:F": lines + 1}), "it shrank from 72 to 71")
	expect(t, CheckSize(tree, map[string]int{"low/a.go:F": lines, "low/b.go": 700}), "low/b.go: it is in the exceptions")

	short := source(t, "low/a.go", "package low\ntype T int\nfunc (t *T) F() {}\n")
	expect(t, CheckSize(short, nil))
	expect(t, CheckSize(short, map[string]int{"low/a.go:T.F": 80}), "it is short enough now")

	expect(t, CheckSize(source(t, "low/a_test.go", long), nil)) // a table of cases is data

	expect(t, CheckSize(source(t, "bpf/a.c", strings.Repeat("\n", MaxFile+1)), nil), "bpf/a.c: 601 lines")
	expect(t, CheckSize(source(t, "low/g.go", "// Code generated by x. DO NOT EDIT.\npackage low\n"+strings.Repeat("\n", MaxFile)), nil))
}

func TestCheckTypes(t *testing.T) {
	code := "package low\ntype T struct {\n" + strings.Repeat("\ta, b int\n", MaxFields/2) + "\tE\n}\n" + strings.Repeat("func (*T) F() {}\n", MaxMethods)
	expect(t, CheckFields(source(t, "low/a.go", code), nil))
	expect(t, CheckMethods(source(t, "low/a.go", code), nil))
	more := source(t, "low/a.go", strings.Replace(code, "E\n", "E\n\tc int\n", 1)+"func (T) G() {}\n")
	expect(t, CheckFields(more, nil), "low.T: 26 fields, the limit is 25")
	expect(t, CheckMethods(more, nil), "low.T: 41 methods, the limit is 40")
	expect(t, CheckMethods(more, map[string]int{"low.T": 0}))
	expect(t, CheckMethods(more, map[string]int{"low.T": 40, "low.U": 50}), "it grew from 40 to 41", "low.U: it is in the exceptions")
}

func TestCheckErrors(t *testing.T) {
	const code = `package low

// F wakes it.
func F() error { return nil }

// G wakes it. It fails when it sleeps.
func G() (int, error) { return 0, nil }

// H wakes it.
func H() int { return 0 }

type t int

// M is hidden.
func (t) M() error { return nil }

// T is one.
type T int

// Close is well known.
func (T) Close() error { return nil }

// M wakes it.
func (*T) M() error { return nil }
`
	expect(t, CheckErrors(source(t, "low/a.go", code), []string{"low"}), "a.go:4: F returns an error", "a.go:24: M returns an error")
	expect(t, CheckErrors(source(t, "low/a.go", code), []string{"high"}))
}

func TestCheckOwners(t *testing.T) {
	const code = `package low

// T is one.
type T int

// Close ends it.
func (T) Close() error { return nil }

// NewT makes one.
func NewT() *T { return nil }

// OpenT makes one, which the caller closes.
func OpenT() (*T, error) { return nil, nil }

// U is another one.
type U int

// NewU makes one.
func NewU() U { return 0 }
`
	expect(t, CheckOwners(source(t, "low/a.go", code)), "a.go:10: NewT makes what is to be closed")
}

func TestCheckDoc(t *testing.T) {
	tests := []struct {
		name, code string
		want       []string
	}{
		{"all said", "// Package low is.\npackage low\n// F does.\nfunc F() {}\n// A T is.\ntype T int\n// Kinds of x.\nconst (\nA = 1\nB = 2\n)\n", nil},
		{"no package comment", "package low\n", []string{"the package has no comment"}},
		{"function", "// Package low is.\npackage low\nfunc F() {}\n", []string{"F is exported and has no comment"}},
		{"comment on something else", "// Package low is.\npackage low\n// does it.\nfunc F() {}\n", []string{"F is exported and has no comment that starts"}},
		{"method", "// Package low is.\npackage low\ntype t int\nfunc (t) M() {}\n// T is.\ntype T int\nfunc (*T) M() {}\nfunc (T) String() string { return \"\" }\n", []string{"a.go:7: M is"}},
		{"constant", "// Package low is.\npackage low\nconst A = 1\nconst B = 2 // is two\n", []string{"A is exported"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, CheckDoc(source(t, "low/a.go", tt.code)), tt.want...)
		})
	}
}

func TestCheckText(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"see docs/PROTOCOL.md and /sys/fs/bpf and " + "$HOME/x and ./work/x and rank/" + "work/x", nil},
		{"cd /" + "work/main", []string{"a path of one machine"}},
		{"in /" + "home/jane/src", []string{"a path of one machine"}},
		{"ls >/" + "tmp/log", []string{"a fixed path in a shared folder"}},
		{"curl https://" + "proxy." + "golang.org/x", []string{"the host of a package registry"}},
	}
	for _, tt := range tests {
		expect(t, CheckText(source(t, "README.md", tt.text+"\n")), tt.want...)
	}
	expect(t, CheckText(source(t, "data.bin", "\x00/"+"work/main")))
}

func TestLoad_malformed(t *testing.T) {
	_, err := Load(fstest.MapFS{"low/a.go": {Data: []byte("package")}})
	if err == nil || !strings.Contains(err.Error(), "low/a.go:1") {
		t.Errorf("got %v, want an error that names the place", err)
	}
}
