package verbs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exported returns the names that a program can use: F, T and T.M.
func exported(t *testing.T) (names map[string]bool, doc string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	ok(t, err)
	names = map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		ok(t, err)
		doc += f.Doc.Text()
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					typ := d.Recv.List[0].Type
					if star, is := typ.(*ast.StarExpr); is {
						typ = star.X
					}
					name = typ.(*ast.Ident).Name + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names, doc
}

// What the package's documentation says a C function is called here exists.
func TestDoc_namesExist(t *testing.T) {
	names, doc := exported(t)
	word := regexp.MustCompile(`(\w+\.)?[A-Z]\w+`)
	rows := 0
	for line := range strings.Lines(doc) {
		c, ours, isRow := strings.Cut(strings.TrimSpace(line), "   ")
		if !isRow || !strings.HasPrefix(line, "\t") || strings.Contains(ours, "acknowledges it") {
			continue
		}
		rows++
		for _, name := range word.FindAllString(ours, -1) {
			if !names[name] && !strings.HasPrefix(name, "device.") {
				t.Errorf("%s: there is no %s", c, name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the table has %d rows only: is it read right?", rows)
	}
}
