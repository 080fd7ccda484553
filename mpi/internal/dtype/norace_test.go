//go:build !race

package dtype

const slow = false
