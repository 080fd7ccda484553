package main

import (
	"fmt"
	"slices"
	"strings"
)

// header is mpi.h.
func (in *input) header(a abi) string {
	var b strings.Builder
	b.WriteString("/* MPI for C, with the binary interface of " + map[string]string{"mpi": "the MPI 5.0 standard", "mpich": "MPICH"}[a.name] + ". Made by abi/gen of xwarp. */\n")
	// MPI_INCLUDED is MPICH's name for it, MPI_H_ABI that of the MPI Forum.
	b.WriteString("#ifndef MPI_INCLUDED\n#define MPI_INCLUDED\n#define MPI_H_XWARP\n" + map[string]string{"mpi": "#define MPI_H_ABI\n"}[a.name] + "\n")
	b.WriteString(in.parts["types_"+a.name+".h"])
	b.WriteString(in.parts["types.h"])
	for _, c := range in.constants {
		if v := c.values[a.column]; v != "-" {
			fmt.Fprintf(&b, "#define MPI_%s %s\n", c.name, cValue(c.kind, v))
		}
	}
	b.WriteString("\n")
	for _, prefix := range []string{"", "P"} {
		for _, f := range in.functionsOf(a) {
			for _, large := range f.forms() {
				fmt.Fprintf(&b, "%s;\n", f.prototype(prefix, large))
			}
		}
	}
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n#endif\n")
	return b.String()
}

// functionsOf are the functions as an ABI has them. In MPICH's the count of a message in partitions
// is an MPI_Count in either form.
func (in *input) functionsOf(a abi) []function {
	list := slices.Clone(in.functions)
	for i := range list {
		f := &list[i]
		if a.name != "mpich" || f.name != "MPI_Psend_init" && f.name != "MPI_Precv_init" {
			continue
		}
		f.params = slices.Clone(f.params)
		for j := range f.params {
			f.params[j].base = f.params[j].wide
		}
	}
	return list
}

// forms are those of f: false is the one with small counts, true that with large ones.
func (f function) forms() []bool {
	if f.large {
		return []bool{false, true}
	}
	return []bool{false}
}

// symbol is the name of a form of f.
func (f function) symbol(prefix string, large bool) string {
	if large {
		return prefix + f.name + "_c"
	}
	return prefix + f.name
}

// prototype declares a form of f.
func (f function) prototype(prefix string, large bool) string {
	var params []string
	for _, p := range f.params {
		params = append(params, p.declaration(large))
	}
	if f.name == "MPI_Pcontrol" {
		params = append(params, "...")
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	return fmt.Sprintf("%s %s(%s)", f.result, f.symbol(prefix, large), strings.Join(params, ", "))
}

func (p param) typeOf(large bool) string {
	if large {
		return p.wide
	}
	return p.base
}

// declaration declares a parameter. Arrays are pointers, lest compilers warn about constants in
// their places, like MPI_UNWEIGHTED.
func (p param) declaration(large bool) string {
	t := p.typeOf(large) + " " + p.stars + p.name + p.suffix
	if p.suffix == "[]" {
		t = p.typeOf(large) + " " + p.stars + "*" + p.name
	}
	if p.base == "MPI_Status" { // as an array, MPI_STATUSES_IGNORE would be too short for compilers
		t = p.base + " *" + p.name
	}
	if p.constant {
		return "const " + t
	}
	return t
}

// cValue is a constant in C.
func cValue(kind, v string) string {
	if kind == "int" {
		if v[0] == '-' {
			return "(" + v + ")"
		}
		return v
	}
	return "((" + kind + ")" + v + ")"
}
