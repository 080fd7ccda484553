package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// The lengths in lines that nothing grows beyond without an exception. A
// function that does not fit on a screen, or a file that cannot be read in one
// sitting, holds more than one idea.
const (
	MaxFunc     = 70
	MaxTestFunc = 120 // a table of cases is data
	MaxFile     = 600
)

// handWritten are the endings of files whose length counts.
var handWritten = []string{".go", ".c", ".h", ".lua", ".sh", ".py"}

// CheckSize finds functions and files that are too long, and exceptions that
// are no longer needed: a list of exceptions only shrinks. The key of an
// exception is the path of a file, or path:function; its value is the length
// in lines today.
func CheckSize(t *Tree, exceptions map[string]int) []Problem {
	r := newRatchet("lines", exceptions)
	for _, text := range t.Texts {
		if slices.Contains(handWritten, path.Ext(text.Path)) && !t.generated(text.Path) {
			r.judge(text.Path, strings.Count(text.Data, "\n"), MaxFile, "split it by idea, one to a file")
		}
	}
	t.functions(func(f *File, fn *ast.FuncDecl) {
		lines := t.Fset.Position(fn.End()).Line - t.Fset.Position(fn.Pos()).Line + 1
		limit := MaxFunc
		if f.Test {
			limit = MaxTestFunc
		}
		r.judge(f.Path+":"+funcName(fn), lines, limit, "give its parts names: cold paths, steps and cases into functions of their own")
	})
	return r.end()
}

// ratchet holds sizes against a limit, and those of exceptions against what they were:
// they only shrink.
type ratchet struct {
	unit       string
	exceptions map[string]int
	seen       map[string]bool
	out        []Problem
}

func newRatchet(unit string, exceptions map[string]int) *ratchet {
	return &ratchet{unit: unit, exceptions: exceptions, seen: map[string]bool{}}
}

func (r *ratchet) judge(key string, size, limit int, advice string) {
	allowed, excepted := r.exceptions[key]
	r.seen[key] = true
	text := ""
	switch {
	case excepted && allowed == 0: // any
		return
	case !excepted && size > limit:
		text = fmt.Sprintf("%d %s, the limit is %d: %s", size, r.unit, limit, advice)
	case excepted && size <= limit:
		text = "it is short enough now: remove it from the exceptions in internal/test/lint/exceptions.go"
	case excepted && size > allowed:
		text = fmt.Sprintf("it grew from %d to %d %s, though it is an exception already: %s", allowed, size, r.unit, advice)
	case excepted && size < allowed:
		text = fmt.Sprintf("it shrank from %d to %d %s: lower its number in internal/test/lint/exceptions.go, so that it cannot grow back", allowed, size, r.unit)
	default:
		return
	}
	r.out = append(r.out, Problem{key, text})
}

// end returns what was found, with exceptions for what is not there.
func (r *ratchet) end() []Problem {
	for key := range r.exceptions {
		if !r.seen[key] {
			r.out = append(r.out, Problem{key, "it is in the exceptions of internal/test/lint/exceptions.go but not in the tree: remove it there"})
		}
	}
	return r.out
}

// functions calls visit for each hand-written function, tests included.
func (t *Tree) functions(visit func(*File, *ast.FuncDecl)) {
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			if f.Generated {
				continue
			}
			for _, d := range f.AST.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					visit(f, fn)
				}
			}
		}
	}
}

// generated reports whether the Go file at p was made by a program.
func (t *Tree) generated(p string) bool {
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			if f.Path == p {
				return f.Generated
			}
		}
	}
	return false
}

// funcName returns F, or T.M for a method of T or *T.
func funcName(fn *ast.FuncDecl) string {
	if typ := receiver(fn); typ != "" {
		return typ + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// receiver returns the name of the type that fn is a method of, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
