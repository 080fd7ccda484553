//go:build !amd64 || race

package mem

import "sync/atomic"

// Unfenced says that what is loaded behind StoreRelease may be older than the store.
const Unfenced = false

// StoreRelease stores v behind all that the caller has stored before. Processors other than amd64 have
// no dearer store than this one, and the race detector knows no other one.
func StoreRelease(word *atomic.Uint64, v uint64) { word.Store(v) }
