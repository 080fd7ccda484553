package main

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"unicode"
)

// count counts words: runs of letters, in small ones.
func count(text []byte) map[string]int64 {
	counts := map[string]int64{}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[string(bytes.ToLower(word))]++
	}
	return counts
}

// entry is a word and how often it is there.
type entry struct {
	word  string
	count int64
}

// top returns the k words that are there most often; of equal ones the first in
// the alphabet.
func top(counts map[string]int64, k int) []entry {
	list := make([]entry, 0, len(counts))
	for w, n := range counts {
		list = append(list, entry{w, n})
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.word, b.word))
	})
	return list[:min(k, len(list))]
}

// invent makes up a text of n bytes. Word i is there about 1/i times as often as
// the first, as in real texts (Zipf).
func invent(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 3, 1<<17)
	text := make([]byte, 0, n+32)
	for len(text) < n {
		for i := zipf.Uint64() + 1; i > 0; i /= 20 {
			text = append(text, "bcdfghjklmnprstvwxyz"[i%20], "aeiou"[i%5])
		}
		text = append(text, " \n,.    "[rng.IntN(8)])
	}
	return text
}

// cut returns where to cut the text into parts, so that no word is cut.
func cut(text []byte, parts int) []int {
	at := make([]int, parts+1)
	for i := 1; i < parts; i++ {
		at[i] = max(at[i-1], len(text)*i/parts)
		for at[i] < len(text) && text[at[i]] > ' ' {
			at[i]++
		}
	}
	at[parts] = len(text)
	return at
}
