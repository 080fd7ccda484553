package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// publicPackages returns the types of the public packages, as the compiler has
// written them down.
func publicPackages(t *testing.T, fset *token.FileSet) (all []*types.Package) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range Public {
		args = append(args, Module+"/"+p)
	}
	cmd := exec.Command("go", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, p := range Public {
		pkg, err := imp.Import(Module + "/" + p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg)
	}
	return all
}

func TestRepository_api(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range CheckAPI(fset, publicPackages(t, fset)) {
		t.Error(p)
	}
}

// known imports packages that were made of source.
type known map[string]*types.Package

func (k known) Import(path string) (*types.Package, error) {
	if p := k[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

func TestCheckAPI(t *testing.T) {
	fset := token.NewFileSet()
	deps := known{}
	load := func(t *testing.T, path, code string) *types.Package {
		t.Helper()
		f, err := parser.ParseFile(fset, path+"/a.go", code, 0)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := (&types.Config{Importer: deps}).Check(path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pkg
	}
	deps["m/internal/x"] = load(t, "m/internal/x", `package x
		type T struct{ U U }
		type U int
		type Std = int
		type E struct{}
		type I interface{ M(U) }
		type C interface{ ~int }
		type G[E any] struct{ e E }
		const K U = 1
		func (T) Get() U { return 0 }`)
	deps["m/pub"] = load(t, "m/pub", `package pub
		import "m/internal/x"
		type T = x.T`)
	for _, tt := range []struct {
		code string
		want string // that the problem is about; "": there is none
	}{
		{`type A = x.T; func F(a *A) []A { return nil }`, ""},
		{`func F() pub.T { return pub.T{} }`, ""},
		{`func F(x.Std) {}`, ""},
		{`func f() x.T { return x.T{} }; type t struct{ X x.T }`, ""},
		{`type S struct{ x x.T }`, ""},
		{`type U = x.U; const K = x.K; var V = x.K`, ""},
		{`func F() x.T { return x.T{} }`, "F of"},
		{`func F(int, ...*x.T) {}`, "F of"},
		{`func F(map[string][]chan x.T) {}`, "F of"},
		{`func F(func(x.U) error) {}`, "F of"},
		{`func F[E x.C](E) {}`, "F of"},
		{`func F(pub.T, x.G[int]) {}`, "F of"},
		{`type A = x.T; func F() x.T { return x.T{} }`, "F of"},
		{`type S struct{ X *x.T }`, "S of"},
		{`type S struct{ x.E }`, "S of"},
		{`type S struct{}; func (*S) M(x.U) {}`, "S.M of"},
		{`type s struct{}; func (*s) M(x.U) {}; type S struct{ s }`, "S.M of"},
		{`type S struct{ x struct{ x.T } }`, ""},
		{`type I interface{ M() x.T }`, "I of"},
		{`type I interface{ x.I }`, "I of"},
		{`type C interface{ ~string | x.U }`, "C of"},
		{`type G[E x.C] struct{ e E }`, "G of"},
		{`type G[E any] struct{ e E }; func F(G[x.T]) {}`, "F of"},
		{`type L = []x.T`, ""},
		{`const K = x.K`, "K of"},
		{`var V *x.T`, "V of"},
	} {
		pkg := load(t, "m/some", "package some\nimport (\"m/internal/x\"; \"m/pub\")\nvar _ x.T\nvar _ pub.T\n"+tt.code)
		got := CheckAPI(fset, []*types.Package{pkg})
		if tt.want == "" {
			expect(t, got)
		} else {
			expect(t, got, tt.want+" package m/some has a type that only this module can name")
		}
	}
}
