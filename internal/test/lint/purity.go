package lint

import "go/ast"

// impureImports are what a sans-I/O package does without, and what it does
// instead.
var impureImports = map[string]string{
	"time":          "take the time as an argument of type mono.Time; spans are mono.Duration",
	"net":           "take bytes; net/netip has the address types",
	"os":            "take bytes and return errors",
	"io":            "take and append to byte slices",
	"sync":          "everything belongs to one engine, which one caller at a time may enter",
	"sync/atomic":   "everything belongs to one engine, which one caller at a time may enter",
	"syscall":       "system calls belong in a carrier (L2)",
	"context":       "there is nothing to wait for: return and be called again",
	"math/rand":     "take random numbers as an argument, so that the simulator can repeat them",
	"math/rand/v2":  "take random numbers as an argument, so that the simulator can repeat them",
	"crypto/rand":   "take random numbers as an argument, so that the simulator can repeat them",
	"log":           "count it, or return an error",
	"log/slog":      "count it, or return an error",
	"reflect":       "write the code for the types there are",
	"runtime":       "take what it would tell as an argument",
	"runtime/debug": "take what it would tell as an argument",
}

// CheckPure holds the packages that the table calls pure to it: no clock, no
// I/O, no concurrency, and fmt only off the path of a frame.
func CheckPure(t *Tree, table []Row) []Problem {
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		i := rowOf(table, pkg.Path)
		if i < 0 || !table[i].Pure {
			return
		}
		for imp, pos := range f.imports() {
			if instead, bad := impureImports[imp]; bad {
				out = append(out, t.at(pos, "%s is sans-I/O and may not import %s: %s", pkg.Path, imp, instead))
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt:
				out = append(out, t.at(n.Pos(), "%s is sans-I/O and starts a goroutine: return and be called again by the engine", pkg.Path))
			case *ast.ChanType, *ast.SelectStmt:
				out = append(out, t.at(n.Pos(), "%s is sans-I/O and uses a channel: keep a slice as a ring, owned by the engine", pkg.Path))
			}
			return true
		})
		out = append(out, formatting(t, pkg, f)...)
	})
	return out
}

// formatting finds calls of fmt where a frame may pass: anywhere but in
// functions that return an error, in String and its like, and in the argument
// of a panic.
func formatting(t *Tree, pkg *Package, f *File) []Problem {
	var out []Problem
	fmtName := f.nameOf("fmt")
	if fmtName == "" {
		return nil
	}
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || offPath(fn) {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
				return false
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && selector(s, fmtName, s.Sel.Name) {
				out = append(out, t.at(call.Pos(), "%s formats text in %s, where frames may pass: set a typed error or a counter, and format in its Error or String method", pkg.Path, fn.Name.Name))
			}
			return true
		})
	}
	return out
}

func offPath(fn *ast.FuncDecl) bool {
	switch fn.Name.Name {
	case "String", "Error", "GoString", "Format":
		return true
	}
	if fn.Type.Results == nil {
		return false
	}
	for _, r := range fn.Type.Results.List {
		if id, ok := r.Type.(*ast.Ident); ok && id.Name == "error" {
			return true
		}
	}
	return false
}

// CheckClock finds readings of the clock outside of the packages that may.
func CheckClock(t *Tree, allowed map[string]string) []Problem {
	var out []Problem
	used := map[string]bool{}
	t.code(func(pkg *Package, f *File) {
		name := f.nameOf("time")
		ast.Inspect(f.AST, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || !selector(e, name, "Now", "Since", "Until") {
				return true
			}
			used[pkg.Path] = true
			if allowed[pkg.Path] == "" {
				out = append(out, t.at(n.Pos(), "%s reads the clock: take now mono.Time as an argument, or a mono.Clock when it must be read (mono.Real is the machine's); programs that need the time of day have their place in ClockPackages of internal/test/lint/layers.go", pkg.Path))
			}
			return true
		})
	})
	return append(out, unused("ClockPackages", allowed, used, "does not read the clock")...)
}

// unused finds exceptions that nobody needs any more.
func unused(list string, allowed map[string]string, used map[string]bool, does string) []Problem {
	var out []Problem
	for p := range allowed {
		if !used[p] {
			out = append(out, Problem{"internal/test/lint/layers.go", list + " names " + p + ", which " + does + ": remove it"})
		}
	}
	return out
}

// CheckQuiet finds libraries that print, log or exit: those are the
// program's to decide.
func CheckQuiet(t *Tree, mayExit map[string]string) []Problem {
	var out []Problem
	used := map[string]bool{}
	t.code(func(pkg *Package, f *File) {
		if pkg.Name == "main" {
			return
		}
		for _, imp := range []string{"log", "log/slog"} {
			if pos, has := f.imports()[imp]; has {
				out = append(out, t.at(pos, "%s imports %s: libraries return errors and count; programs print", pkg.Path, imp))
			}
		}
		fmtName, osName := f.nameOf("fmt"), f.nameOf("os")
		ast.Inspect(f.AST, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			switch {
			case !ok:
			case selector(e, fmtName, "Print", "Println", "Printf"):
				out = append(out, t.at(n.Pos(), "%s prints to the standard output: take an io.Writer or return the text", pkg.Path))
			case selector(e, osName, "Exit"):
				used[pkg.Path] = true
				if mayExit[pkg.Path] == "" {
					out = append(out, t.at(n.Pos(), "%s exits: return an error and let the program decide", pkg.Path))
				}
			}
			return true
		})
	})
	return append(out, unused("ExitPackages", mayExit, used, "does not exit")...)
}
