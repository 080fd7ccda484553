//go:build !race

package check

const slow = false
