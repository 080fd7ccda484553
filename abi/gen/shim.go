package main

import (
	"fmt"
	"slices"
	"strings"
)

// handleTypes are the types of handles that are as wide as an int in MPICH's ABI.
var handleTypes = []string{"MPI_Comm", "MPI_Datatype", "MPI_Errhandler", "MPI_Group", "MPI_Info", "MPI_Message", "MPI_Op", "MPI_Request", "MPI_Session", "MPI_Win", "MPI_File"}

// A crossing is how a parameter crosses from C to Go.
type crossing struct {
	c, goType, capi string // types in C and in Go, and the conversion to what package capi takes
	wide            bool   // package capi takes how wide the numbers are with it
}

func (p param) crossing() crossing {
	handle := slices.Contains(handleTypes, p.base)
	switch {
	case !p.pointer() && handle:
		return crossing{"uintptr_t", "uintptr", "capi.Handle(%s)", false}
	case !p.pointer() && slices.Contains([]string{"int", "MPI_Aint", "MPI_Count", "MPI_Offset", "MPI_T_cb_safety"}, p.base):
		return crossing{"long long", "int64", "int(%s)", false}
	case p.base == "char" && p.constant && len(p.stars+p.suffix) <= 2:
		return crossing{"uintptr_t", "uintptr", "capi.Addr(%s).String()", false}
	case p.base == "char" && p.stars == "*" && p.suffix == "":
		return crossing{"uintptr_t", "uintptr", "capi.Text(%s)", false}
	case handle && p.base != "MPI_File":
		return crossing{"uintptr_t", "uintptr", "capi.Handles(%s)", false}
	case p.base == "MPI_Status":
		return crossing{"uintptr_t", "uintptr", "capi.Statuses(%s)", false}
	case p.base == "int":
		return crossing{"uintptr_t", "uintptr", "capi.Ints{At: %s, Wide: %s}", true}
	case slices.Contains([]string{"MPI_Aint", "MPI_Count", "MPI_Offset"}, p.base):
		return crossing{"uintptr_t", "uintptr", "capi.Ints{At: %s, Wide: true}", false}
	}
	return crossing{"uintptr_t", "uintptr", "capi.Addr(%s)", false}
}

// callback reports whether the parameter is a function with a form for large counts: package
// capi is told which.
func (p param) callback() bool { return p.varies() && strings.HasSuffix(p.base, "_function") }

// constructor reports whether f makes a datatype: package capi is told which form did, for
// MPI_Type_get_contents.
func (f function) constructor() bool {
	return f.large && strings.HasPrefix(f.name, "MPI_Type_") && f.params[len(f.params)-1].base == "MPI_Datatype"
}

// tellsForm reports whether Go must know which form of f was called.
func (f function) tellsForm() bool {
	if f.constructor() {
		return true
	}
	for _, p := range f.params {
		if p.callback() || p.varies() && p.base == "int" && p.pointer() {
			return true
		}
	}
	return false
}

// shim is the C functions.
func (in *input) shim(a abi) string {
	var b strings.Builder
	b.WriteString("#include <time.h>\n\n#include \"library.h\"\n\n")
	for _, f := range in.functionsOf(a) {
		if !f.inC() {
			f.declareGo(&b)
		}
		for _, large := range f.forms() {
			fmt.Fprintf(&b, "%s { %s }\n", f.prototype("P", large), f.body(a, large))
			fmt.Fprintf(&b, "%s __attribute__((weak, alias(\"%s\")));\n", f.prototype("", large), f.symbol("P", large))
		}
	}
	return b.String()
}

// cResult is what Go returns for f.
func (f function) cResult() string {
	switch f.result {
	case "double", "int":
		return f.result
	}
	return "long long"
}

func (f function) declareGo(b *strings.Builder) {
	var types []string
	for _, p := range f.params {
		types = append(types, p.crossing().c)
	}
	if f.tellsForm() {
		types = append(types, "unsigned char")
	}
	if len(types) == 0 {
		types = []string{"void"}
	}
	fmt.Fprintf(b, "extern %s go%s(%s);\n", f.cResult(), f.name, strings.Join(types, ", "))
}

// body is what the C function does.
func (f function) body(a abi, large bool) string {
	if f.name == clock {
		return "struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;"
	}
	if f.cast() {
		p := f.params[0]
		if p.base == "int" {
			return fmt.Sprintf("return (%s)(intptr_t)%s;", f.result, p.name)
		}
		return fmt.Sprintf("return (int)(intptr_t)%s;", p.name)
	}
	var args []string
	for _, p := range f.params {
		c := p.crossing()
		arg := "(" + c.c + ")" + p.name
		if strings.HasPrefix(c.capi, "capi.Handle(") {
			arg = "HANDLE(" + p.name + ")"
			if p.base == "MPI_File" {
				arg = "(uintptr_t)" + p.name
			}
		}
		args = append(args, arg)
	}
	if f.tellsForm() {
		args = append(args, map[bool]string{false: "0", true: "1"}[large])
	}
	return fmt.Sprintf("return go%s(%s);", f.name, strings.Join(args, ", "))
}
