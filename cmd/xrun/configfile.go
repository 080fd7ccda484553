package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/xwarp/xwarp/internal/job/launch"
)

// withConfigFile puts what the file of --configfile says into the command line: a program
// in each line, with its options, as if there were a colon between them (MPI 4.1, section
// 11.5). What the command line says itself counts more.
func withConfigFile(args []string) ([]string, error) {
	parts := splitPrograms(args)
	var c launch.Config
	var o options
	fs := flagSet(&c, &o)
	own := joinPairs(fs, parts[0])
	if err := fs.Parse(own); err != nil || o.configFile == "" {
		return args, nil //nolint:nilerr // the parser of the command line finds it, too
	}
	if fs.NArg() > 0 || len(parts) > 1 {
		return nil, errors.New("--configfile has the programs: leave out those of the command line")
	}
	text, err := os.ReadFile(o.configFile)
	if err != nil {
		return nil, fmt.Errorf("--configfile: %w", err)
	}
	programs, err := configLines(string(text))
	if err != nil {
		return nil, fmt.Errorf("--configfile %s: %w", o.configFile, err)
	}
	if len(programs) == 0 {
		return nil, fmt.Errorf("--configfile %s: there is no program in it; want lines such as -n 2 ./app", o.configFile)
	}
	name := o.configFile
	o.configFile = ""
	fs = flagSet(&c, &o)
	first := joinPairs(fs, programs[0])
	if err := explain(fs.Parse(first)); err != nil {
		return nil, fmt.Errorf("--configfile %s: %w", name, err)
	}
	if o.configFile != "" {
		return nil, fmt.Errorf("--configfile %s: it names another one, %s", name, o.configFile)
	}
	program := len(first) - fs.NArg()
	if program > 0 && first[program-1] == "--" {
		program--
	}
	all := append(append(append([]string(nil), first[:program]...), own...), first[program:]...)
	for _, p := range programs[1:] {
		all = append(append(all, between), p...)
	}
	return all, nil
}

// configLines returns the words of each line. A line that begins with # is a comment, and
// one that ends with \ goes on in the next. Quotes keep words together.
func configLines(text string) (lines [][]string, err error) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		words, err := splitWords(line)
		if err != nil {
			return nil, fmt.Errorf("%.64q: %w", strings.TrimSpace(line), err)
		}
		if len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines, nil
}

// splitWords cuts a line at its blanks, but for those in single or double quotes.
func splitWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inside := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}
