//go:build !race

package conform

const slow = false
