package lint

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// glossary is where the words are.
const glossary = "docs/GLOSSARY.md"

// CheckWords finds words in identifiers and comments that the last column of a table of the
// glossary names: the field, or this repository, has another word for the thing.
func CheckWords(t *Tree) []Problem {
	banned := map[string]string{} // what to write
	for _, text := range t.Texts {
		if text.Path == glossary {
			banned = bannedWords(text.Data)
		}
	}
	if len(banned) == 0 {
		return []Problem{{glossary, "names no words that are not to be used: is its last column there?"}}
	}
	var out []Problem
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				var words []string
				switch n := n.(type) {
				case *ast.Ident:
					words = wordsOf(n.Name)
				case *ast.Comment:
					words = strings.FieldsFunc(strings.ToLower(n.Text), func(r rune) bool { return !unicode.IsLetter(r) })
				}
				for _, w := range words {
					if instead := banned[strings.TrimSuffix(w, "s")]; instead != "" {
						out = append(out, t.at(n.Pos(), "%s: write %s (%s)", w, instead, glossary))
						break
					}
				}
				return true
			})
		}
	}
	return out
}

// bannedWords returns the words of the last column, without the s of a plural, with the
// first one.
func bannedWords(glossary string) map[string]string {
	banned := map[string]string{}
	for line := range strings.Lines(glossary) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.TrimSpace(cells[3]) == "not" {
			continue
		}
		for w := range strings.SplitSeq(cells[3], ",") {
			if w = strings.Trim(w, " -"); w != "" {
				banned[strings.TrimSuffix(w, "s")] = strings.TrimSpace(cells[1])
			}
		}
	}
	return banned
}

// wordsOf cuts an identifier where an upper-case letter begins a word, and at underscores.
func wordsOf(name string) []string {
	var words []string
	begin := 0
	runes := []rune(name)
	for i := 1; i < len(runes); i++ {
		if unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) {
			words, begin = append(words, string(runes[begin:i])), i
		}
	}
	words = append(words, string(runes[begin:]))
	return strings.FieldsFunc(strings.ToLower(strings.Join(words, "_")), func(r rune) bool { return r == '_' })
}

// persons are words for people. What a program does is done by a component, and a comment
// that names it tells more.
var persons = []string{
	"who", "whom", "whoever", "somebody", "someone", "anybody", "anyone", "nobody", "everybody", "everyone", "hears", "believes", "likes",
}

// CheckPersons finds comments outside of tests whose subject is a person, but in folders
// that are excepted.
func CheckPersons(t *Tree, exceptions []string) []Problem {
	var out []Problem
	t.code(func(pkg *Package, f *File) {
		if slices.ContainsFunc(exceptions, func(e string) bool {
			folder, all := strings.CutSuffix(e, "...")
			return pkg.Path == e || all && strings.HasPrefix(pkg.Path, folder)
		}) {
			return
		}
		for _, group := range f.AST.Comments {
			for _, c := range group.List {
				for _, w := range strings.FieldsFunc(strings.ToLower(c.Text), func(r rune) bool { return !unicode.IsLetter(r) }) {
					if slices.Contains(persons, w) {
						out = append(out, t.at(c.Pos(), "%s: name the component", w))
						break
					}
				}
			}
		}
	})
	return out
}
