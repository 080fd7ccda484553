package xdp

// prefetch asks for the cache line that d lies in and does not wait for it.
//
//go:noescape
func prefetch(d *Desc)
