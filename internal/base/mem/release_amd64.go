//go:build !race

package mem

import "sync/atomic"

// Unfenced says that what is loaded behind StoreRelease may be older than the store.
const Unfenced = true

// StoreRelease stores v behind all that the caller has stored before, but without a wait for that, as
// Store of the word has: what is loaded next may be older.
//
//go:noescape
func StoreRelease(word *atomic.Uint64, v uint64)
