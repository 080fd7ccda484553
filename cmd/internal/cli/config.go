package cli

import (
	"strings"

	"github.com/xwarp/xwarp/internal/base/config"
)

// helpWidth is how many characters a line of a help text has at most.
const helpWidth = 80

// Configured returns a help text with what package config says. A line "  $NAME" stands for
// the flag that means the same as a variable, with what follows in the given column behind
// it, and the line "  $*" for all variables of users.
func Configured(help string, column int) string {
	lines := strings.Split(help, "\n")
	var out []string
	for len(lines) > 0 {
		name, ok := strings.CutPrefix(lines[0], "  $")
		switch {
		case !ok:
			out = append(out, lines[0])
		case name == "*":
			out = append(out, variables(column)...)
		default:
			v := config.Find(name)
			text, end := v.Help(), "."
			for ; len(lines) > 1 && strings.HasPrefix(lines[1], strings.Repeat(" ", column)); lines = lines[1:] {
				text, end = text+end+" "+lines[1][column:], ""
			}
			out = append(out, entry(v.Flag, text, column)...)
		}
		lines = lines[1:]
	}
	return strings.Join(out, "\n")
}

// variables returns the lines of all variables of users.
func variables(column int) (lines []string) {
	for _, g := range config.Groups() {
		for _, v := range g.Vars {
			text := v.Help()
			switch {
			case strings.HasPrefix(v.Of, "xrun"):
				text = "as " + strings.FieldsFunc(v.Flag, isSeparator)[0]
			case v.Switch():
				text = v.Other() + ": " + text
			}
			if g.Users {
				lines = append(lines, entry(v.Name, text, column)...)
			}
		}
	}
	return lines
}

func isSeparator(r rune) bool { return r == ' ' || r == ',' }

// entry returns the lines of an option or a variable, and of what is said about it.
func entry(head, text string, column int) (lines []string) {
	line := "  " + head
	if len(line)+2 > column {
		lines, line = append(lines, line), ""
	}
	line += strings.Repeat(" ", column-len(line)-1)
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > helpWidth {
			lines, line = append(lines, line), strings.Repeat(" ", column-1)
		}
		line += " " + word
	}
	return append(lines, line)
}
