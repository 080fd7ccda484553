package rma

// layers are the contexts of overlapping windows, as Casper has them over an MPI that it is not
// part of (Si, Peña, Hammond, Balaji, Takagi, Ishikawa: IPDPS 2015): each is a window of the whole
// memory of each host, and what concerns the rank with number n there, the first one being 1, goes
// through the n-th. So ranks with the same ghost have locks of their own. Here a ghost has a lock
// for each of its ranks in one window, and this layout is for comparison. nil: there is one window.
type layers []uint32

// of returns the context for what concerns the rank that a ghost knows by a number, or 0, a rank
// that serves itself.
func (l layers) of(client int32, context uint32) uint32 {
	if client == 0 || len(l) == 0 {
		return context
	}
	return l[client-1]
}
