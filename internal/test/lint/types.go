package lint

import "go/ast"

// The sizes of a type that nothing grows beyond without an exception: small functions on a
// type that holds everything are not simple.
const (
	MaxFields  = 25
	MaxMethods = 40
)

// CheckFields finds structs with too many fields, tests aside. The key of an exception is
// package.Type.
func CheckFields(t *Tree, exceptions map[string]int) []Problem {
	r := newRatchet("fields", exceptions)
	t.code(func(pkg *Package, f *File) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				n := 0
				for _, field := range s.Fields.List {
					n += max(len(field.Names), 1)
				}
				r.judge(pkg.Path+"."+spec.Name.Name, n, MaxFields, "which of them belong together? Give those a type that keeps its own state")
			}
			return true
		})
	})
	return r.end()
}

// CheckMethods finds types with too many methods. The key of an exception is package.Type.
func CheckMethods(t *Tree, exceptions map[string]int) []Problem {
	r := newRatchet("methods", exceptions)
	methods := map[string]int{}
	t.code(func(pkg *Package, f *File) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && receiver(fn) != "" {
				methods[pkg.Path+"."+receiver(fn)]++
			}
		}
	})
	for key, n := range methods {
		r.judge(key, n, MaxMethods, "it does several things: give each a type of its own")
	}
	return r.end()
}
