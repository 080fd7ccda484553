package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// commands are all of xwarp: their manual pages name one another.
var commands = []string{"xcheck", "xinfo", "xperf", "xping", "xrun"}

// Roff returns the manual page, of section 1, for man and groff.
func (p Page) Roff(b Build) string {
	usage, sections := p.parse()
	var w strings.Builder
	fmt.Fprintf(&w, ".\\\" Made of the text of %s --help.\n", p.Name)
	fmt.Fprintf(&w, ".TH %s 1 \"%s\" \"xwarp %s\" \"User Commands\"\n", strings.ToUpper(p.Name), b.Date, literal(b.Version))
	fmt.Fprintf(&w, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nh\n", p.Name, prose(p.Summary))
	for i, form := range usage {
		if i > 0 {
			w.WriteString(".br\n")
		}
		fill(&w, strings.TrimPrefix("\\fB"+p.Name+"\\fP "+terms(strings.TrimPrefix(form, p.Name+" ")), " "))
	}
	w.WriteString(".hy\n")
	inOptions := false
	for _, s := range order(sections) {
		switch {
		case s.title == "":
			description, rows := s.split()
			w.WriteString(".SH DESCRIPTION\n")
			writeBlocks(&w, description, terms)
			if inOptions = s.options(); inOptions {
				w.WriteString(".SH OPTIONS\n")
			}
			writeBlocks(&w, rows, terms)
			continue
		case s.options():
			if !inOptions {
				w.WriteString(".SH OPTIONS\n")
			}
			inOptions = true
			fmt.Fprintf(&w, ".SS %s\n", prose(s.title))
		default:
			fmt.Fprintf(&w, ".SH %s\n", prose(strings.ToUpper(s.title)))
		}
		style := terms
		if s.title == "Examples" {
			style = bold
		}
		writeBlocks(&w, s.blocks, style)
	}
	w.WriteString(".SH SEE ALSO\n")
	var also []string
	for _, c := range commands {
		if c != p.Name {
			also = append(also, c+"(1)")
		}
	}
	for i, page := range append(also, p.SeeAlso...) {
		name, number, _ := strings.Cut(page, "(")
		if i > 0 {
			w.WriteString(",\n")
		}
		fmt.Fprintf(&w, ".BR %s (%s", name, number)
	}
	return w.String() + "\n"
}

// order returns the sections as man-pages(7) wants them: options together, and
// what all pages have at the end.
func order(sections []*section) []*section {
	first := len(sections)
	for i, s := range slices.Backward(sections) {
		if s.options() {
			first = i
		}
	}
	rank := map[*section]int{}
	for i, s := range sections {
		last := slices.Index([]string{"Exit status", "Environment", "Files", "Notes", "Examples"}, s.title)
		switch {
		case last >= 0:
			rank[s] = 4 + last
		case s.options():
			rank[s] = 2
		case i < first:
			rank[s] = 1
		default:
			rank[s] = 3
		}
	}
	sorted := slices.Clone(sections)
	slices.SortStableFunc(sorted, func(a, b *section) int { return rank[a] - rank[b] })
	return sorted
}

// split returns the paragraphs before the rows, and the rest.
func (s *section) split() (paragraphs, rest []block) {
	n := slices.IndexFunc(s.blocks, func(b block) bool { return b.term != "" })
	if n < 0 {
		n = len(s.blocks)
	}
	return s.blocks[:n], s.blocks[n:]
}

// writeBlocks writes paragraphs and rows, whose terms look as style has it.
func writeBlocks(w *strings.Builder, blocks []block, style func(string) string) {
	for i, b := range blocks {
		switch {
		case b.term == "" && i > 0:
			w.WriteString(".PP\n")
		case b.term != "" && b.text == "":
			if i > 0 {
				w.WriteString(".PP\n")
			}
			fill(w, style(b.term))
			continue
		case b.term != "":
			fmt.Fprintf(w, ".TP\n%s\n", style(b.term))
		}
		for j, line := range strings.Split(b.text, "\n") {
			if j > 0 {
				w.WriteString(".br\n")
			}
			fill(w, prose(line))
		}
	}
}

// fill writes text in lines of a length that editors and mandoc like, in which
// roff sees no command.
func fill(w *strings.Builder, text string) {
	length := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case length+1+len(word) > 78:
			w.WriteString("\n")
			length = 0
		default:
			w.WriteString(" ")
			length++
		}
		if length == 0 && (word[0] == '.' || word[0] == '\'') {
			word = `\&` + word
		}
		w.WriteString(word)
		length += len(word)
	}
	w.WriteString("\n")
}

var (
	inProse = regexp.MustCompile("`[^`]+`|(^|[\\s(/])--?[A-Za-z][\\w-]*")
	inTerms = regexp.MustCompile(`(^|[\s|[(])--?[A-Za-z][\w-]*|\b[A-Z][A-Z0-9]*\b`)
)

// prose is running text: options in it are bold, and what stands in `quotes`.
func prose(text string) string {
	return replace(inProse, text, plain, func(found string) string {
		if found[0] == '`' {
			return bold(strings.Trim(found, "`"))
		}
		dash := strings.Index(found, "-")
		return found[:dash] + bold(found[dash:])
	})
}

// terms is what users type: options are bold, and what they stand for in
// capitals is slanted. Anything else is bold.
func terms(text string) string {
	if !strings.Contains(text, "-") && inTerms.FindString(text) == "" {
		return bold(text)
	}
	return replace(inTerms, text, literal, func(found string) string {
		if dash := strings.Index(found, "-"); dash >= 0 {
			return found[:dash] + bold(found[dash:])
		}
		return `\fI` + found + `\fP`
	})
}

// replace returns text with found in place of what a pattern finds, and with
// other in place of what is between.
func replace(pattern *regexp.Regexp, text string, other, found func(string) string) string {
	var b strings.Builder
	end := 0
	for _, m := range pattern.FindAllStringIndex(text, -1) {
		b.WriteString(other(text[end:m[0]]))
		b.WriteString(found(text[m[0]:m[1]]))
		end = m[1]
	}
	return b.String() + other(text[end:])
}

func bold(text string) string { return `\fB` + literal(text) + `\fP` }

// plain is text that roff may break and set anywhere.
func plain(text string) string { return strings.ReplaceAll(text, `\`, `\e`) }

// literal is text that can be copied into a shell.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(text)
}
