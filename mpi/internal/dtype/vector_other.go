//go:build !amd64

package dtype

// vectorize changes nothing where there is no code for it.
func vectorize(t [rules][machines]kernel) [rules][machines]kernel { return t }
