package lint

import (
	"go/token"
	"path"
	"slices"
	"strings"
)

// CheckTable finds rows of the import table that contradict each other: a
// name without a row of its own further down in the stack, a row without a
// package.
func CheckTable(t *Tree, table []Row) []Problem {
	var out []Problem
	lower := map[string]bool{}
	bad := func(row, what string) {
		out = append(out, Problem{"internal/test/lint/layers.go", "row " + row + ": " + what})
	}
	for _, r := range table {
		for name := range strings.FieldsSeq(r.May) {
			if name != "..." && !lower[name] {
				bad(r.Package, "may import "+name+", which has no row further down in the stack: imports go strictly downward; move the row or drop the edge")
			}
		}
		if lower[r.Package] {
			bad(r.Package, "is there twice; merge the two")
		}
		lower[r.Package] = true
		if !slices.ContainsFunc(t.Packages, func(p *Package) bool { return rowMatches(r, p.Path) }) {
			bad(r.Package, "there is no such package; remove the row")
		}
	}
	return out
}

// CheckImports finds imports that the table does not allow. Tests may import
// what they like: Go itself refuses the cycles.
func CheckImports(t *Tree, table []Row) []Problem {
	var out []Problem
	for _, pkg := range t.Packages {
		i := rowOf(table, pkg.Path)
		if i < 0 {
			out = append(out, Problem{pkg.Path, "the package has no row in internal/test/lint/layers.go: add one in its layer, with the imports that the design gives it"})
			continue
		}
		for _, f := range pkg.Files {
			if f.Test {
				continue
			}
			for imp, pos := range f.imports() {
				if why := refuse(table, i, pkg.Path, imp); why != "" {
					out = append(out, t.at(pos, "%s imports %s: %s", pkg.Path, imp, why))
				}
			}
		}
	}
	return out
}

// refuse says why row i may not import imp, or "".
func refuse(table []Row, i int, importer, imp string) string {
	row := table[i]
	if below, ok := strings.CutPrefix(imp, Module+"/"); ok {
		j := rowOf(table, below)
		switch {
		case j < 0:
			return "that package has no row in internal/test/lint/layers.go"
		case j > i:
			return "that is upwards; let the lower package define a small interface that the upper one implements, or move the shared part down"
		case j == i:
			return "both are in the row " + row.Package + ": programs do not import each other; move the shared part into a package below"
		case table[j].Leaf, row.May == "...", slices.Contains(strings.Fields(row.May), table[j].Package):
			return ""
		}
		return "the table in internal/test/lint/layers.go does not have that edge; go through " + strings.Join(strings.Fields(row.May), ", ") + " or change the design first"
	}
	if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") {
		for m := range strings.FieldsSeq(row.Modules) {
			if imp == m || strings.HasPrefix(imp, m+"/") {
				return ""
			}
		}
		return "that foreign module is not for this package; use the package of ours that wraps it, or add it to the row with the reason in docs/DEPENDENCIES.md"
	}
	return ""
}

func rowMatches(r Row, pkg string) bool {
	if dir, ok := strings.CutSuffix(r.Package, "/*"); ok {
		return strings.HasPrefix(pkg, dir+"/")
	}
	return r.Package == pkg
}

// rowOf returns the index of the row for a package, a row of its own before
// one with a star, or -1.
func rowOf(table []Row, pkg string) int {
	star := -1
	for i, r := range table {
		if r.Package == pkg {
			return i
		}
		if rowMatches(r, pkg) {
			star = i
		}
	}
	return star
}

// CheckUnsafe finds unsafe code outside of the files made for it.
func CheckUnsafe(t *Tree, allowed []string) []Problem {
	var out []Problem
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			pos, has := f.imports()["unsafe"]
			pos = max(pos, linkname(f))
			switch {
			case !has && pos == token.NoPos || f.Generated:
			case !slices.Contains(allowed, pkg.Path):
				out = append(out, t.at(pos, "unsafe code in %s: it belongs in %s; mem.BytesOf and mem.ScalarsOf turn slices into bytes and back", pkg.Path, strings.Join(allowed, ", ")))
			case !f.Test && !strings.HasSuffix(f.Path, "_unsafe.go"):
				out = append(out, t.at(pos, "unsafe code in %s: move it into a file named *_unsafe.go of this package", path.Base(f.Path)))
			}
		}
	}
	return out
}

// linkname returns where f reaches into another package by //go:linkname.
func linkname(f *File) token.Pos {
	for _, g := range f.AST.Comments {
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:linkname ") {
				return c.Pos()
			}
		}
	}
	return token.NoPos
}
