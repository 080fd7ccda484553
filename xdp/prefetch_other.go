//go:build !amd64

package xdp

// prefetch is for amd64.
func prefetch(*Desc) {}
