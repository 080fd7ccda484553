// Package lint holds the laws of this repository as tests: which package may
// import which, where unsafe code and clocks may be, how long functions and
// files may grow. A rule that had to be argued twice becomes a law here, and
// its message says what to do instead.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

// Module is the path that all packages of this repository start with.
const Module = "github.com/xwarp/xwarp"

// Tree is the source of the repository.
type Tree struct {
	Fset     *token.FileSet
	Packages []*Package // sorted by path
	Texts    []Text     // every text file, Go included
}

// Package is one folder of Go files.
type Package struct {
	Path  string // below the module, "." for its root
	Name  string
	Files []*File
}

// File is one parsed Go file.
type File struct {
	Path      string // below the root of the repository
	Test      bool
	Generated bool // by a program: the laws of style do not apply
	Lines     int
	AST       *ast.File
}

// Text is the content of one file.
type Text struct {
	Path string
	Data string
}

// Problem is one broken law: where, what, and what to do instead.
type Problem struct {
	Where string // path:line
	What  string
}

func (p Problem) String() string { return p.Where + ": " + p.What }

// skippedDirs hold nothing that was written by hand.
var skippedDirs = map[string]bool{".git": true, "bin": true, ".cache": true, ".vagrant": true, "node_modules": true, "lib": true, "include": true}

// Load parses the repository whose root is root.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet()}
	byDir := map[string]*Package{}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedDirs[d.Name()] || d.Name() == "testdata" && strings.HasPrefix(p, "internal/test/lint") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // in a worktree of git it is a file
			return nil
		}
		data, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		if isText(data) {
			t.Texts = append(t.Texts, Text{p, string(data)})
		}
		if path.Ext(p) != ".go" || strings.Contains(p, "testdata/") {
			return nil
		}
		return t.addGo(byDir, p, data)
	})
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	sort.Slice(t.Packages, func(i, j int) bool { return t.Packages[i].Path < t.Packages[j].Path })
	return t, nil
}

func (t *Tree) addGo(byDir map[string]*Package, p string, data []byte) error {
	f, err := parser.ParseFile(t.Fset, p, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(p)
	pkg := byDir[dir]
	if pkg == nil {
		pkg = &Package{Path: dir}
		byDir[dir] = pkg
		t.Packages = append(t.Packages, pkg)
	}
	test := strings.HasSuffix(p, "_test.go")
	if !test || pkg.Name == "" {
		pkg.Name = strings.TrimSuffix(f.Name.Name, "_test")
	}
	pkg.Files = append(pkg.Files, &File{
		Path: p, Test: test, Generated: ast.IsGenerated(f),
		Lines: strings.Count(string(data), "\n"), AST: f,
	})
	return nil
}

// isText guesses as git does: a file with a zero byte near its start is not.
func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !strings.ContainsRune(string(head), 0)
}

// at makes a problem at a position of the tree.
func (t *Tree) at(pos token.Pos, format string, args ...any) Problem {
	p := t.Fset.Position(pos)
	return Problem{p.Filename + ":" + strconv.Itoa(p.Line), fmt.Sprintf(format, args...)}
}

// imports returns the import paths of f with their positions.
func (f *File) imports() map[string]token.Pos {
	m := map[string]token.Pos{}
	for _, spec := range f.AST.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			m[p] = spec.Pos()
		}
	}
	return m
}

// nameOf returns the name that f calls the package imported from importPath
// by, or "".
func (f *File) nameOf(importPath string) string {
	for _, spec := range f.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// code calls visit for every hand-written file that is not a test.
func (t *Tree) code(visit func(*Package, *File)) {
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			if !f.Test && !f.Generated {
				visit(pkg, f)
			}
		}
	}
}

// selector reports whether e is pkg.name for one of the names.
func selector(e ast.Expr, pkg string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || pkg == "" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || x.Name != pkg {
		return false
	}
	for _, n := range names {
		if s.Sel.Name == n {
			return true
		}
	}
	return false
}
