package bench

import (
	"fmt"
	"io"
	"strings"
)

// Lines writes a table line by line: in columns of fixed width, or as Markdown.
type Lines struct {
	W        io.Writer
	Markdown bool
	Width    int // of every column but the first, in characters
}

// Begin begins the table with its title and the heads of the columns.
func (l Lines) Begin(title string, heads []string) error {
	if _, err := fmt.Fprintf(l.W, "\n%s\n", title); err != nil {
		return err
	}
	if !l.Markdown {
		return l.Line(heads)
	}
	if _, err := fmt.Fprintln(l.W); err != nil {
		return err
	}
	if err := l.Line(heads); err != nil {
		return err
	}
	_, err := fmt.Fprintln(l.W, strings.Repeat("|---:", len(heads))+"|")
	return err
}

// Line writes one line.
func (l Lines) Line(cells []string) error {
	line := "| " + strings.Join(cells, " | ") + " |"
	if !l.Markdown {
		line = fmt.Sprintf("%10s", cells[0])
		for _, c := range cells[1:] {
			line += fmt.Sprintf("%*s", l.Width, c)
		}
	}
	_, err := fmt.Fprintln(l.W, line)
	return err
}
