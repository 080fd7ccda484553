package lint

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Public lists the packages that programs outside of this module may import: their
// exported names are for everybody.
var Public = []string{
	"verbs", "verbs/device", "mpi", "xdp", "xdp/asavie", "bpf",
	"iwarp", "iwarp/ddp", "iwarp/rdmap", "iwarp/mpa", "iwarp/dgram", "iwarp/record",
}

// CheckAPI finds exported names of public packages whose types nobody outside of this
// module can name: those of an internal package, for which the package has no
// alias. An alias has a comment, as all exported names.
func CheckAPI(fset *token.FileSet, pkgs []*types.Package) []Problem {
	var out []Problem
	for _, pkg := range pkgs {
		a := &api{fset: fset, aliased: map[*types.TypeName]bool{}}
		names := pkg.Scope().Names()
		for _, name := range names {
			if t, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && t.Exported() && t.IsAlias() {
				if n, ok := types.Unalias(t.Type()).(*types.Named); ok {
					a.aliased[n.Obj()] = true
				}
			}
		}
		for _, name := range names {
			if obj := pkg.Scope().Lookup(name); obj.Exported() {
				a.object(obj)
			}
		}
		out = append(out, a.out...)
	}
	return out
}

// api is a public package that is being looked at.
type api struct {
	fset    *token.FileSet
	aliased map[*types.TypeName]bool // internal types that the package has a name for
	out     []Problem
}

func (a *api) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.TypeName:
		a.typeName(obj)
	case *types.Const, *types.Var: // whose type may follow from their value, and is then not named
		if n, ok := obj.Type().(*types.Named); !ok || !a.aliased[n.Obj()] {
			a.check(obj, obj.Name(), obj.Type())
		}
	default:
		a.check(obj, obj.Name(), obj.Type())
	}
}

func (a *api) typeName(obj *types.TypeName) {
	named, ok := obj.Type().(*types.Named)
	if !ok { // an alias: what it stands for has a name now
		return
	}
	for t := range named.TypeParams().TypeParams() {
		a.check(obj, obj.Name(), t.Constraint())
	}
	a.check(obj, obj.Name(), named.Underlying())
	if types.IsInterface(named) {
		return
	}
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if m.Obj().Exported() {
			a.check(m.Obj(), obj.Name()+"."+m.Obj().Name(), m.Type())
		}
	}
}

// check notes the first internal type that t names.
func (a *api) check(obj types.Object, what string, t types.Type) {
	if bad := hidden(t); bad != nil {
		p := a.fset.Position(obj.Pos())
		a.out = append(a.out, Problem{fmt.Sprintf("%s:%d", p.Filename, p.Line), fmt.Sprintf(
			"%s of package %s has a type that only this module can name, %s.%s: use an alias of a public package, or take it out",
			what, obj.Pkg().Path(), bad.Pkg().Name(), bad.Name())})
	}
}

// hidden returns the first type of an internal package that t names.
func hidden(t types.Type) *types.TypeName {
	first := func(each ...types.Type) *types.TypeName {
		for _, t := range each {
			if bad := hidden(t); bad != nil {
				return bad
			}
		}
		return nil
	}
	switch t := t.(type) {
	case *types.Alias:
		if isInternal(t.Obj()) { // of a standard type, perhaps
			return first(t.Rhs())
		}
		return first(slices.Collect(t.TypeArgs().Types())...)
	case *types.Named:
		if isInternal(t.Obj()) {
			return t.Obj()
		}
		return first(slices.Collect(t.TypeArgs().Types())...)
	case *types.Map:
		return first(t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return first(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			if bad := first(v.Type()); bad != nil {
				return bad
			}
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			if bad := first(p.Constraint()); bad != nil {
				return bad
			}
		}
		return first(t.Params(), t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			if bad := first(f.Type()); f.Exported() && bad != nil {
				return bad
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if bad := first(m.Type()); bad != nil {
				return bad
			}
		}
		return first(slices.Collect(t.EmbeddedTypes())...)
	case *types.Union:
		for term := range t.Terms() {
			if bad := first(term.Type()); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// isInternal reports whether an object is of a package that only its neighbours may
// import.
func isInternal(obj *types.TypeName) bool {
	return obj.Pkg() != nil && slices.Contains(strings.Split(obj.Pkg().Path(), "/"), "internal")
}
