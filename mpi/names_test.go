package mpi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exported returns what the package exports, as X, or X.Y for methods and fields,
// what its comments say, and the functions of slices on a communicator.
func exported(t *testing.T) (names map[string]bool, comments string, ofSlices []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	var text strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			text.WriteString(c.Text())
		}
		for _, d := range f.Decls {
			declared(d, names)
			if f, ok := d.(*ast.FuncDecl); ok && f.Type.TypeParams != nil && onComm(f) {
				ofSlices = append(ofSlices, f.Name.Name)
			}
		}
	}
	return names, text.String(), ofSlices
}

// onComm reports whether a function has a communicator as its first argument.
func onComm(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	if len(params) == 0 {
		return false
	}
	star, ok := params[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	id, ok := star.X.(*ast.Ident)
	return ok && id.Name == "Comm" && f.Name.IsExported()
}

func declared(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
			return
		}
		on := d.Recv.List[0].Type
		if star, ok := on.(*ast.StarExpr); ok {
			on = star.X
		}
		if generic, ok := on.(*ast.IndexExpr); ok {
			on = generic.X
		}
		names[on.(*ast.Ident).Name+"."+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						for _, n := range field.Names {
							names[s.Name.Name+"."+n.Name] = true
						}
					}
				}
			}
		}
	}
}

// Everything that docs/MPI.md names is there, and the procedures that the package says it is are in docs/MPI.md.
func TestNames_docs(t *testing.T) {
	page, err := os.ReadFile("../docs/MPI.md")
	if err != nil {
		t.Fatal(err)
	}
	names, comments, _ := exported(t)
	said := regexp.MustCompile(`\bmpi\.([A-Z]\w*(?:\.[A-Z]\w*)?)`).FindAllStringSubmatch(string(page), -1)
	if len(said) < 200 {
		t.Fatalf("the page names %d things", len(said))
	}
	for _, m := range said {
		if !names[m[1]] {
			t.Errorf("docs/MPI.md names mpi.%s, which does not exist", m[1])
		}
	}
	procedure := regexp.MustCompile(`\bMPIX?_[A-Z]\w*[a-z]\w*`)
	for _, name := range procedure.FindAllString(comments, -1) {
		switch name {
		case "MPI_Request", "MPI_Status", "MPI_Group", "MPI_Message", "MPI_Datatype", "MPI_Op", "MPI_Info", "MPI_Errhandler", "MPI_Win", "MPI_User_function": // types
			continue
		}
		if !regexp.MustCompile("`" + name + "`").Match(page) {
			t.Errorf("a comment names %s, which docs/MPI.md does not", name)
		}
	}
}

// Every function of slices that communicates has a method of Comm beside it.
func TestNames_slicesAndData(t *testing.T) {
	names, _, beside := exported(t)
	for _, f := range beside {
		if !names["Comm."+f] {
			t.Errorf("mpi.%s has no method of Comm beside it", f)
		}
	}
	if len(beside) < 80 {
		t.Errorf("found %d functions of slices only", len(beside))
	}
}
