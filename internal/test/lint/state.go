package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statefulTypes cannot be used without being changed.
var statefulTypes = []string{"sync.", "atomic.", "bytes.Buffer", "strings.Builder", "rand.Rand"}

// CheckState finds mutable state at package level. N ranks, ghosts and hosts
// must fit in one process, so state belongs to an object that somebody made.
// Sentinel errors, tables and other variables that are given their value where
// they are declared and never written again are constants in all but name.
func CheckState(t *Tree) []Problem {
	var out []Problem
	for _, pkg := range t.Packages {
		out = append(out, packageState(t, pkg)...)
	}
	return append(out, foreignWrites(t)...)
}

// packageState judges the variables of one package.
func packageState(t *Tree, pkg *Package) []Problem {
	var out []Problem
	var asts []*ast.File
	for _, f := range pkg.Files {
		if !f.Test && !f.Generated {
			asts = append(asts, f.AST)
		}
	}
	info := resolve(t.Fset, pkg.Path, asts)
	written := writes(asts, info)
	for _, f := range asts {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if name.Name == "_" || embedded(g.Doc, spec.Doc) {
						continue
					}
					if why := mutable(spec, i); why != "" {
						out = append(out, t.at(name.Pos(), "package variable %s.%s %s: make it a field of the object that owns it", pkg.Path, name.Name, why))
					} else if pos, ok := written[info.Defs[name]]; ok {
						out = append(out, t.at(pos, "package variable %s.%s is changed here: make it a field of the object that owns it", pkg.Path, name.Name))
					}
				}
			}
		}
	}
	return out
}

// mutable says why the i-th variable of spec is state as it is declared.
func mutable(spec *ast.ValueSpec, i int) string {
	if typ := stateful(spec.Type); typ != "" {
		return "is a " + typ
	}
	if len(spec.Values) == 0 {
		return "has no value where it is declared, so that something must change it"
	}
	value := spec.Values[min(i, len(spec.Values)-1)]
	switch v := value.(type) {
	case *ast.CompositeLit:
		if typ := stateful(v.Type); typ != "" {
			return "is a " + typ
		}
	case *ast.UnaryExpr:
		if lit, ok := v.X.(*ast.CompositeLit); ok && v.Op == token.AND {
			return "points to a " + types.ExprString(lit.Type) + ", which whoever has the pointer may change"
		}
	case *ast.CallExpr:
		if id, ok := v.Fun.(*ast.Ident); ok && (id.Name == "make" || id.Name == "new") {
			return "starts empty, so that something must change it"
		}
		if startsWith(types.ExprString(v.Fun), "rand.New", "flag.", "bufio.New", "bytes.NewBuffer") {
			return "holds state"
		}
	}
	return ""
}

func stateful(typ ast.Expr) string {
	switch x := typ.(type) {
	case nil:
		return ""
	case *ast.ChanType:
		return "channel"
	case *ast.StarExpr:
		return stateful(x.X)
	}
	if name := types.ExprString(typ); startsWith(name, statefulTypes...) {
		return name
	}
	return ""
}

func embedded(docs ...*ast.CommentGroup) bool {
	for _, g := range docs {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// resolve finds what each identifier of a package stands for. Its imports are
// taken as empty: only the package's own names matter here.
func resolve(fset *token.FileSet, path string, files []*ast.File) *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{
		Importer: emptyImporter{},
		Error:    func(error) {}, // of course: the imports are empty
	}
	// The error is that of the empty imports; what is known is in info.
	_, _ = cfg.Check(path, fset, files, info)
	return info
}

type emptyImporter struct{}

func (emptyImporter) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, p[strings.LastIndex(p, "/")+1:])
	pkg.MarkComplete()
	return pkg, nil
}

// writes returns where package variables are assigned to, cleared, or have
// their address taken as a whole.
func writes(files []*ast.File, info *types.Info) map[types.Object]token.Pos {
	out := map[types.Object]token.Pos{}
	target := func(e ast.Expr) {
		if id := root(e); id != nil {
			if obj := info.Uses[id]; obj != nil && obj.Parent() != nil && obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() {
				out[obj] = e.Pos()
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					target(e)
				}
			case *ast.IncDecStmt:
				target(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					target(n.Key)
					target(n.Value)
				}
			case *ast.UnaryExpr:
				if _, whole := n.X.(*ast.Ident); n.Op == token.AND && whole {
					target(n.X)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
					target(n.Args[0])
				}
			}
			return true
		})
	}
	return out
}

// root returns the variable that an assignment to e changes: x of x.f[i].
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SliceExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	}
	return nil
}

// foreignWrites finds assignments to variables of other packages.
func foreignWrites(t *Tree) []Problem {
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		names := map[string]string{}
		for imp := range f.imports() {
			names[f.nameOf(imp)] = imp
		}
		shadow := resolve(t.Fset, pkg.Path, []*ast.File{f.AST})
		ast.Inspect(f.AST, func(n ast.Node) bool {
			as, ok := n.(*ast.AssignStmt)
			if !ok || as.Tok == token.DEFINE {
				return true
			}
			for _, e := range as.Lhs {
				s, ok := e.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				x, ok := s.X.(*ast.Ident)
				if !ok || names[x.Name] == "" {
					continue
				}
				if _, isPkg := shadow.Uses[x].(*types.PkgName); isPkg {
					out = append(out, t.at(as.Pos(), "%s changes %s of package %s: a variable of another package is nobody's to set; pass the value in a Config", pkg.Path, s.Sel.Name, names[x.Name]))
				}
			}
			return true
		})
	})
	return out
}

func startsWith(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
