package lint

import (
	"slices"
	"testing"
)

func TestCheckWords(t *testing.T) {
	const text = "| term | means | not |\n|---|---|---|\n| batch | packets | train, coach |\n| lock | one | |\n"
	tests := []struct {
		name, code string
		want       []string
	}{
		{"none", "package low\n\n// restrained batches.\nfunc constrain() {}\n", nil},
		{"comment", "package low\n\n// A train leaves.\nfunc f() {}\n", []string{"train: write batch"}},
		{"plural", "package low\n\n// Trains leave.\nfunc f() {}\n", []string{"trains: write batch"}},
		{"identifier", "package low\n\nfunc f() { openCoachNow := 1; _ = openCoachNow }\n", []string{"a.go:3: coach", "a.go:3: coach"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := source(t, "low/a.go", tt.code)
			tree.Texts = append(tree.Texts, Text{Path: glossary, Data: text})
			expect(t, CheckWords(tree), tt.want...)
		})
	}
	expect(t, CheckWords(source(t, "low/a.go", "package low\n")), "is its last column there?")
}

func TestWordsOf(t *testing.T) {
	for name, want := range map[string][]string{"openQPNow": {"open", "qpnow"}, "a": {"a"}, "TestRC_random": {"test", "rc", "random"}} {
		if got := wordsOf(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestCheckPersons(t *testing.T) {
	const code = "package low\n\n// F wakes whoever waits.\nfunc F() {} // not who\n\n// G wakes a waiter.\nfunc G() {}\n"
	expect(t, CheckPersons(source(t, "low/a.go", code), nil), "a.go:3: whoever: name the component", "a.go:4: who")
	expect(t, CheckPersons(source(t, "low/a.go", code), []string{"low"}))
	expect(t, CheckPersons(source(t, "low/b/a.go", code), []string{"low/..."}))
	expect(t, CheckPersons(source(t, "low/b/a.go", code), []string{"low"}), "a.go:3: whoever", "a.go:4: who")
	expect(t, CheckPersons(source(t, "low/a_test.go", code), nil))
}
