package cli

import (
	"regexp"
	"strings"
)

// block is a paragraph, or with a term a row of two columns. A newline in its
// text is one that has to stay.
type block struct{ term, text string }

// section is a part of a help text. What stands before the first title has none.
type section struct {
	title  string
	blocks []block
}

// options reports whether the section describes some.
func (s *section) options() bool { return s.has(func(b block) bool { return b.term[0] == '-' }) }

// rows reports whether the section has any.
func (s *section) rows() bool { return s.has(func(block) bool { return true }) }

// has reports whether a row is as is says.
func (s *section) has(is func(block) bool) bool {
	for _, b := range s.blocks {
		if b.term != "" && is(b) {
			return true
		}
	}
	return false
}

var (
	gap    = regexp.MustCompile(`\S {2,}\S`) // between columns
	status = regexp.MustCompile(`^Exit status: +`)
	code   = regexp.MustCompile(`(?:^|; )(\d+) `)
)

// codes returns the rows of "0 all went well; 1 something failed."
func codes(text string) (rows []block) {
	text = strings.TrimSuffix(text, ".")
	found := code.FindAllStringSubmatchIndex(text, -1)
	for i, m := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		rows = append(rows, block{text[m[2]:m[3]], text[m[1]:end]})
	}
	return rows
}

// parse takes a help text to pieces: the lines behind "usage:", and sections.
func (p Page) parse() (usage []string, sections []*section) {
	text := &section{}
	sections = append(sections, text)
	begin := func(title string) {
		text = &section{title: title}
		sections = append(sections, text)
	}
	lines := strings.Split(strings.TrimRight(p.Help, "\n"), "\n")
	at := func(i int) string {
		if i < 0 || i >= len(lines) {
			return ""
		}
		return lines[i]
	}
	for i := 0; i < len(lines); i++ {
		line, words := lines[i], strings.TrimSpace(lines[i])
		switch {
		case words == "":
		case strings.HasPrefix(line, "usage: "):
			for usage = append(usage, line[len("usage: "):]); strings.HasPrefix(at(i+1), " "); i++ {
				if next := strings.TrimSpace(at(i + 1)); strings.HasPrefix(next, p.Name+" ") {
					usage = append(usage, next)
				} else {
					usage[len(usage)-1] += " " + next
				}
			}
		case line[0] != ' ' && at(i-1) == "" && strings.HasPrefix(at(i+1), " "):
			title, more, _ := strings.Cut(strings.TrimSuffix(line, ":"), " (")
			if begin(title); more != "" {
				text.blocks = append(text.blocks, block{text: strings.ToUpper(more[:1]) + strings.TrimSuffix(more[1:], ")") + "."})
			}
		case line[0] != ' ':
			paragraph := line
			for ; at(i+1) != "" && at(i + 1)[0] != ' '; i++ {
				paragraph += " " + at(i+1)
			}
			if m := status.FindString(paragraph); m != "" {
				begin("Exit status")
				text.blocks = codes(paragraph[len(m):])
				continue
			}
			if text.title != "Notes" && text.rows() {
				begin("Notes")
			}
			text.blocks = append(text.blocks, block{text: paragraph})
		case strings.HasPrefix(line, "   ") && text.rows():
			last := &text.blocks[len(text.blocks)-1]
			between := " "
			if gap.MatchString(words) { // a row of a table inside of it
				between = "\n"
			}
			last.text = strings.TrimSpace(last.text + between + words)
		default:
			b := block{term: words}
			if m := gap.FindStringIndex(words); m != nil {
				b = block{words[:m[0]+1], words[m[1]-1:]}
			}
			text.blocks = append(text.blocks, b)
		}
	}
	return usage, sections
}
