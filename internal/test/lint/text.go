package lint

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// strangers are texts that have no place in a repository that others clone,
// and what to write instead. They are put together from parts, so that this
// file does not break its own law.
var strangers = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(^|[^\w.~/-])/(work|root|Users/\w+|home/\w+)/`), "a path of one machine: use a path relative to the repository, $HOME, or a temporary folder made for the purpose"},
	{regexp.MustCompile(`/tmp/` + `[\w.-]+`), "a fixed path in a shared folder: use t.TempDir, os.MkdirTemp or mktemp -d"},
	{regexp.MustCompile(`(proxy|sum)\.` + `golang\.org|(deb|security)\.` + `debian\.org`), "the host of a package registry: the ordinary clients know where to go"},
}

// CheckText finds what only makes sense on the machine of its author.
func CheckText(t *Tree) []Problem {
	var out []Problem
	for _, text := range t.Texts {
		if text.Path == "go.sum" {
			continue
		}
		n := 0
		for line := range strings.Lines(text.Data) {
			n++
			for _, s := range strangers {
				if m := s.pattern.FindString(line); m != "" {
					out = append(out, Problem{text.Path + ":" + strconv.Itoa(n), strconv.Quote(strings.TrimSpace(m)) + " is " + s.instead})
				}
			}
		}
	}
	return out
}

var (
	testName = regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// CheckTests finds tests that the documents name, or what their names begin with, and that are not
// there.
func CheckTests(t *Tree) []Problem {
	var all strings.Builder
	for _, text := range t.Texts {
		for _, name := range testFunc.FindAllStringSubmatch(text.Data, -1) {
			all.WriteString(" " + name[1])
		}
	}
	var out []Problem
	for _, text := range t.Texts {
		if path.Ext(text.Path) != ".md" {
			continue
		}
		n := 0
		for line := range strings.Lines(text.Data) {
			n++
			for _, name := range testName.FindAllString(line, -1) {
				if !strings.Contains(all.String(), " "+name) {
					out = append(out, Problem{text.Path + ":" + strconv.Itoa(n), name + ": there is no such test; name the one that shows it now"})
				}
			}
		}
	}
	return out
}
