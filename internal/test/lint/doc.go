package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// wellKnown methods mean what the standard library says that they mean.
var wellKnown = map[string]bool{
	"String": true, "Error": true, "Unwrap": true, "Is": true, "As": true, "Format": true, "GoString": true,
	"Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
	"Read": true, "Write": true, "Close": true, "Set": true, "ServeHTTP": true,
}

// CheckDoc finds packages and exported names without a comment.
func CheckDoc(t *Tree) []Problem {
	var out []Problem
	for _, pkg := range t.Packages {
		described, code := false, false
		for _, f := range pkg.Files {
			if f.Test || f.Generated {
				continue
			}
			code = true
			described = described || f.AST.Doc != nil
			if pkg.Name != "main" {
				for _, d := range f.AST.Decls {
					out = append(out, undocumented(t, d)...)
				}
			}
		}
		if code && !described {
			out = append(out, Problem{pkg.Path, "the package has no comment: say in one sentence what it is for, in front of its package clause"})
		}
	}
	return out
}

func undocumented(t *Tree, d ast.Decl) []Problem {
	switch d := d.(type) {
	case *ast.FuncDecl:
		typ := receiver(d)
		if !d.Name.IsExported() || typ != "" && (!ast.IsExported(typ) || wellKnown[d.Name.Name]) {
			return nil
		}
		return commented(t, d.Name, d.Doc)
	case *ast.GenDecl:
		var out []Problem
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					doc := s.Doc
					if doc == nil {
						doc = d.Doc
					}
					out = append(out, commented(t, s.Name, doc)...)
				}
			case *ast.ValueSpec: // one comment may describe a whole group
				if exported(s.Names) && d.Doc == nil && s.Doc == nil && s.Comment == nil && (d.Tok == token.VAR || d.Tok == token.CONST) {
					out = append(out, t.at(s.Pos(), "%s is exported and has no comment: say what it is, with its unit", s.Names[0].Name))
				}
			}
		}
		return out
	}
	return nil
}

// commented wants a comment that starts with the name, as go doc shows it.
func commented(t *Tree, name *ast.Ident, doc *ast.CommentGroup) []Problem {
	text := strings.TrimSpace(doc.Text())
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	if !strings.HasPrefix(text, name.Name) && !strings.HasPrefix(text, "Deprecated:") {
		return []Problem{t.at(name.Pos(), "%s is exported and has no comment that starts with its name: say what it does, its units, its errors and who owns the buffers", name.Name)}
	}
	return nil
}

func exported(names []*ast.Ident) bool {
	for _, n := range names {
		if n.IsExported() {
			return true
		}
	}
	return false
}

// CheckErrors finds control calls, exported functions of some packages that return an error,
// whose comments do not say which errors there are: no word of them is about errors.
func CheckErrors(t *Tree, packages []string) []Problem {
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		if !slices.Contains(packages, pkg.Path) {
			return
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !shown(fn) || !returnsError(fn) {
				continue
			}
			if !mentions(fn.Doc, "err", "fail", "refus", "wrong", "cannot", "implements", "unless", "only") {
				out = append(out, t.at(fn.Name.Pos(), "%s returns an error, and its comment does not say which: name what it wraps, or what it fails for", fn.Name.Name))
			}
		}
	})
	return out
}

// CheckOwners finds constructors of what has a method Close whose comments say neither who
// closes it nor who owns what.
func CheckOwners(t *Tree) []Problem {
	closers := map[string]bool{}
	t.code(func(pkg *Package, f *File) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Close" {
				closers[pkg.Path+"."+receiver(fn)] = true
			}
		}
	})
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Results == nil || !startsWith(fn.Name.Name, "New", "Open", "Listen", "Load") {
				continue
			}
			e := fn.Type.Results.List[0].Type
			if star, ok := e.(*ast.StarExpr); ok {
				e = star.X
			}
			if name, ok := e.(*ast.Ident); ok && closers[pkg.Path+"."+name.Name] && !mentions(fn.Doc, "clos", "own", "belong") {
				out = append(out, t.at(fn.Name.Pos(), "%s makes what is to be closed, and its comment does not say who owns what", fn.Name.Name))
			}
		}
	})
	return out
}

// shown reports whether go doc shows a function whose meaning is not well known.
func shown(fn *ast.FuncDecl) bool {
	typ := receiver(fn)
	return fn.Name.IsExported() && (typ == "" || ast.IsExported(typ)) && !(isMethod(fn) && wellKnown[fn.Name.Name])
}

func returnsError(fn *ast.FuncDecl) bool {
	return fn.Type.Results != nil && slices.ContainsFunc(fn.Type.Results.List, func(f *ast.Field) bool {
		name, ok := f.Type.(*ast.Ident)
		return ok && name.Name == "error"
	})
}

// mentions reports whether a comment has one of some parts of words.
func mentions(doc *ast.CommentGroup, parts ...string) bool {
	text := strings.ToLower(doc.Text())
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
