//go:build !race

package verbs

const Slow = false
