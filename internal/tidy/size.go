package tidy

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
	var out []Problem
	seen := map[string]bool{}
	judge := func(key string, lines, limit int, advice string) {
		allowed, excepted := exceptions[key]
		seen[key] = true
		switch {
		case !excepted && lines > limit:
			out = append(out, Problem{key, fmt.Sprintf("%d lines, the limit is %d: %s", lines, limit, advice)})
		case excepted && lines <= limit:
			out = append(out, Problem{key, "it is short enough now: remove it from the exceptions in internal/tidy/exceptions.go"})
		case excepted && lines > allowed:
			out = append(out, Problem{key, fmt.Sprintf("it grew from %d to %d lines, though it is an exception already: %s", allowed, lines, advice)})
		case excepted && lines < allowed:
			out = append(out, Problem{key, fmt.Sprintf("it shrank from %d to %d lines: lower its number in internal/tidy/exceptions.go, so that it cannot grow back", allowed, lines)})
		}
	}
	for _, text := range t.Texts {
		if slices.Contains(handWritten, path.Ext(text.Path)) && !t.generated(text.Path) {
			judge(text.Path, strings.Count(text.Data, "\n"), MaxFile, "split it by idea, one to a file")
		}
	}
	t.functions(func(f *File, fn *ast.FuncDecl) {
		lines := t.Fset.Position(fn.End()).Line - t.Fset.Position(fn.Pos()).Line + 1
		limit := MaxFunc
		if f.Test {
			limit = MaxTestFunc
		}
		judge(f.Path+":"+funcName(fn), lines, limit, "give its parts names: cold paths, steps and cases into functions of their own")
	})
	for key := range exceptions {
		if !seen[key] {
			out = append(out, Problem{key, "it is in the exceptions of internal/tidy/exceptions.go but not in the tree: remove it there"})
		}
	}
	return out
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
