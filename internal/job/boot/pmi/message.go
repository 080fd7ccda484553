package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

// Message is a line of PMI-1: a command and what belongs to it.
type Message struct {
	Cmd   string
	Attrs []Attr
}

// Attr is a key with its value. Neither can hold white space, and the key no
// "=" either.
type Attr struct{ Key, Value string }

// Get returns the value of a key, or "".
func (m Message) Get(key string) string {
	for _, a := range m.Attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// number returns the value of a key as a number of at least low.
func (m Message) number(key string, low int) (int, error) {
	n, err := strconv.Atoi(m.Get(key))
	if err != nil || n < low {
		return 0, fmt.Errorf("%s: %s is %.32q: want a number of at least %d", m.Cmd, key, m.Get(key), low)
	}
	return n, nil
}

// Parse reads a line without its end. A word without "=" continues the value
// before it: launchers differ in how they quote messages for people.
func Parse(line []byte) (Message, error) {
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return Message{}, fmt.Errorf("empty line")
	}
	cmd, ok := strings.CutPrefix(words[0], "cmd=")
	if !ok || cmd == "" {
		return Message{}, fmt.Errorf("%.64q does not start with cmd=", line)
	}
	m := Message{Cmd: cmd}
	begun := 0 // the word that the last value began with
	words = words[1:]
	for i, w := range words {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case ok && key != "":
			m.extend(words[begun:i])
			m.Attrs, begun = append(m.Attrs, Attr{key, value}), i
		case len(m.Attrs) == 0:
			return Message{}, fmt.Errorf("%.32q in %.64q is no key=value", w, line)
		}
	}
	m.extend(words[begun:])
	return m, nil
}

// extend adds to the last value the words behind the one that it began with.
func (m *Message) extend(words []string) {
	if len(words) > 1 {
		last := &m.Attrs[len(m.Attrs)-1].Value
		*last = strings.Join(append([]string{*last}, words[1:]...), " ")
	}
}

// Append appends m as a line with its end.
func Append(b []byte, m Message) ([]byte, error) {
	if !word(m.Cmd) || m.Cmd == "" {
		return b, fmt.Errorf("command %.32q", m.Cmd)
	}
	line := append(append(b, "cmd="...), m.Cmd...)
	for _, a := range m.Attrs {
		if !word(a.Key) || !word(a.Value) || a.Key == "" || strings.Contains(a.Key, "=") {
			return b, fmt.Errorf("%s: %.32q=%.32q: PMI carries no white space", m.Cmd, a.Key, a.Value)
		}
		line = append(append(append(append(line, ' '), a.Key...), '='), a.Value...)
	}
	return append(line, '\n'), nil
}

// word reports whether s has no white space, and so comes out as it went in.
func word(s string) bool { return s == "" || len(strings.Fields(s)) == 1 && strings.TrimSpace(s) == s }
