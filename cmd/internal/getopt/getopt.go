// Package getopt lets commands that take the flags of older ones be called as
// those are: with flags of one letter in a cluster (-vVd), and with the value
// right behind the letter (-C10). Package flag knows neither. For flags of others
// that a command does not have it says what there is instead.
package getopt

import "strings"

// Split returns args as package flag reads them: one letter after each single
// dash, and its value apart. valued lists the letters that take a value
// (getopt(3) has a colon behind these). Flags with two dashes stay as they are,
// and so does everything behind "--".
func Split(args []string, valued string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' {
			out = append(out, arg)
			continue
		}
		letters, value := cluster(arg[1:], valued)
		for _, letter := range letters {
			out = append(out, "-"+string(letter))
		}
		switch last := letters[len(letters)-1:]; {
		case value != "":
			out = append(out, value)
		case strings.Contains(valued, last) && i+1 < len(args):
			i++
			out = append(out, args[i]) // whatever it looks like
		}
	}
	return out
}

// cluster splits what is behind a dash into letters and the value of the last
// one, if it is there.
func cluster(text, valued string) (letters, value string) {
	if i := strings.IndexAny(text, valued); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}
