package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A value is how a variable is read, and where to. One that only its own reader knows how to
// read has no set.
type value struct {
	Want    string // in words
	Default string // in words; "" for none
	words   Words
	set     func(string) bool
}

// Set reads a value. The error says what is wanted.
func (v value) Set(text string) error {
	if v.set(text) {
		return nil
	}
	return errors.New("want " + v.Want)
}

// Switch reports whether the value is 0 or 1.
func (v value) Switch() bool { return v.Want == zeroOrOne }

// Other returns what a switch is if not as by default.
func (v value) Other() string { return map[string]string{"0": "1", "1": "0"}[v.Default] }

const zeroOrOne = "0 or 1"

// onOff is a value of 0 or 1.
func onOff(to *bool, otherwise bool) value {
	*to = otherwise
	return value{Want: zeroOrOne, Default: map[bool]string{false: "0", true: "1"}[otherwise], set: func(s string) bool {
		if s == "0" || s == "1" {
			*to = s == "1"
			return true
		}
		return false
	}}
}

// size is a number of bytes.
func size(to *int, otherwise string) value {
	return value{Want: wantSize, Default: otherwise, set: func(s string) (ok bool) {
		n, err := ParseSize(s)
		if err == nil {
			*to = n
		}
		return err == nil
	}}
}

// limit is a size of which 0 stands for none, and is -1 then.
func limit(to *int, otherwise string) value {
	v := size(to, otherwise)
	read := v.set
	v.Want += "; 0 for none"
	v.set = func(s string) bool {
		ok := read(s)
		if ok && *to == 0 {
			*to = -1
		}
		return ok
	}
	return v
}

// count is a number of things.
func count(to *int, otherwise int) value {
	return value{Want: "a number above 0", Default: strconv.Itoa(otherwise), set: func(s string) bool {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return false
		}
		*to = n
		return true
	}}
}

// span is a time from least on, and up to most if that is not 0.
func span(to *time.Duration, otherwise, least, most time.Duration) value {
	*to = otherwise
	want := "a time such as 30s or 5m, or 0"
	switch {
	case most > 0:
		want = fmt.Sprintf("a time from %s to %s, such as %s", spanText(least), spanText(most), spanText(otherwise))
	case least > 0:
		want = fmt.Sprintf("a time of at least %s, such as 30s or 5m", spanText(least))
	}
	return value{Want: want, Default: spanText(otherwise), set: func(s string) bool {
		d, err := time.ParseDuration(s)
		if err != nil || d < least || most > 0 && d > most {
			return false
		}
		*to = d
		return true
	}}
}

// spanText is how people write a time: 1h for 1h0m0s.
func spanText(d time.Duration) string {
	text := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// word is one of words, by default the first one.
func word(to *string, words Words) value {
	*to = words[0].Name
	return value{Want: words.String(), Default: words[0].Name, words: words, set: func(s string) bool {
		if words.Index(s) < 0 {
			return false
		}
		*to = s
		return true
	}}
}

// text is checked where it is used.
func text(to *string, want, otherwise string) value {
	return value{Want: want, Default: otherwise, set: func(s string) bool { *to = s; return true }}
}

// named is text that one of words fits.
func named(to *string, words Words, otherwise string) value {
	v := text(to, words.String(), otherwise)
	v.words = words
	return v
}

// share is the two numbers of a Machine with a slash between them.
func share(to *Machine) value {
	return value{Want: "ranks and processors, such as 8/4", set: func(s string) bool {
		var m Machine
		if _, err := fmt.Sscanf(s, "%d/%d", &m.Ranks, &m.Cores); err != nil || m.Ranks < 1 || m.Cores < 1 {
			return false
		}
		*to = m
		return true
	}}
}

// own is what only its reader knows how to read.
func own(want string) value { return value{Want: want} }

// Words are what a variable may be, in the order of the constants that they stand for.
type Words []Word

// A Word is one of them, and what it means, or "".
type Word struct{ Name, Doc string }

// Index returns the number of a word, or -1.
func (w Words) Index(name string) int {
	return slices.IndexFunc(w, func(w Word) bool { return w.Name == name })
}

// Name returns the word with a number, or that number of an enumeration if there is none.
func (w Words) Name(number uint8, enumeration string) string {
	if int(number) < len(w) {
		return w[number].Name
	}
	return fmt.Sprintf("%s(%d)", enumeration, number)
}

// String returns "one, two or three".
func (w Words) String() string {
	return w.join(func(w Word) string { return w.Name })
}

// explained is String with what they mean in parentheses.
func (w Words) explained() string {
	return w.join(func(w Word) string {
		if w.Doc == "" {
			return w.Name
		}
		return w.Name + " (" + w.Doc + ")"
	})
}

func (w Words) join(text func(Word) string) string {
	var b strings.Builder
	for i := range w {
		switch i {
		case 0:
		case len(w) - 1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(text(w[i]))
	}
	return b.String()
}
