package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// CheckUsed finds exported names of internal packages that no code but tests uses: nobody
// else can. A method counts as used where any code selects one of its name, or an interface
// of this module has it; constants are sets, of which all count. Excepted are packages and
// names that serve tests.
func CheckUsed(t *Tree, testOnly []string) []Problem {
	u := uses{}
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			if !f.Test {
				u.file(pkg, f)
			}
		}
	}
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		if pkg.Name == "main" || !slices.Contains(strings.Split(pkg.Path, "/"), "internal") || slices.Contains(testOnly, pkg.Path) {
			return
		}
		for _, d := range f.AST.Decls {
			for _, name := range exportedNames(d) {
				key := pkg.Path + "." + name.Name
				if !slices.Contains(testOnly, key) && !u[key] && (!isMethod(d) || !wellKnown[name.Name] && !u["."+name.Name]) {
					out = append(out, t.at(name.Pos(), "%s is exported and no code but tests uses it: take it out, move it into the tests, or write it small", name.Name))
				}
			}
		}
	})
	return out
}

// uses are names that code uses: "internal/base/mem.Arena" of a package, ".Len" of anything.
type uses map[string]bool

func (u uses) file(pkg *Package, f *File) {
	declared := map[*ast.Ident]bool{}
	for _, d := range f.AST.Decls {
		for _, name := range exportedNames(d) {
			declared[name] = true
		}
	}
	packages := map[string]string{} // what f calls the packages of this module
	for path := range f.imports() {
		if below, own := strings.CutPrefix(path, Module+"/"); own {
			packages[f.nameOf(path)] = below
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && packages[x.Name] != "" {
				u[packages[x.Name]+"."+n.Sel.Name] = true
			}
			u["."+n.Sel.Name] = true
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					u["."+name.Name] = true
				}
			}
		case *ast.Ident:
			if !declared[n] {
				u[pkg.Path+"."+n.Name] = true
			}
		}
		return true
	})
}

func isMethod(d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	return ok && fn.Recv != nil
}

// exportedNames returns what a declaration exports.
func exportedNames(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if typ := receiver(d); typ == "" || ast.IsExported(typ) { // else an interface wants it
			names = []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.CONST {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			}
		}
	}
	return slices.DeleteFunc(names, func(n *ast.Ident) bool { return !n.IsExported() })
}
