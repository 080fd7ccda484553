// Package cli holds what commands say about themselves. The text that --help
// prints and the flags that the command defines are the only source: the manual
// page and the completion of a shell are made of these.
package cli

import (
	"flag"
	"fmt"
	"io"
)

// Page is a command as its users get to know it.
type Page struct {
	Name    string // as it is called: xrun
	Summary string // what it does, in half a line without a full stop
	// Help is what --help prints, in the shape that all commands have:
	//
	//	usage: NAME [OPTIONS] OPERAND...
	//
	//	What it does, in paragraphs.
	//
	//	Title
	//	  -o, --option VALUE   what it means, which goes on
	//	                       in this column
	//
	//	Exit status: in a paragraph, or as a title with a line for each.
	Help    string
	Flags   *flag.FlagSet // all that it takes
	SeeAlso []string      // manual pages of others: mpiexec(1)
}

// Answer writes what the first of args asks for, if it is about the command
// itself: --version, --man (the manual page, for man -l) or --completion (for
// bash). It returns false for everything else, with nothing written.
func (p Page) Answer(args []string, to io.Writer) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "--version", "-version":
		fmt.Fprintln(to, p.Version())
	case "--man":
		fmt.Fprint(to, p.Roff(Read()))
	case "--completion":
		fmt.Fprint(to, p.Completion())
	default:
		return false
	}
	return true
}

// Version returns what --version prints, without a newline.
func (p Page) Version() string { return fmt.Sprintf("%s of xwarp, %v", p.Name, Read()) }
