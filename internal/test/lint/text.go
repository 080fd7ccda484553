package lint

import (
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
