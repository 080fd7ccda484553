// Package boot is how a process finds the job it belongs to: its rank, the
// number of ranks, and a small table of keys and values through which ranks
// exchange their addresses before they can talk (what PMI calls a KVS).
package boot

import (
	"crypto/rand"
	"errors"
)

// ErrNoLauncher says that the process was not started by a launcher.
var ErrNoLauncher = errors.New("not started by a launcher")

// SecretLen is the length in bytes of the secret of a job.
const SecretLen = 32

// NewSecret returns a secret for a job.
func NewSecret() []byte {
	secret := make([]byte, SecretLen)
	_, _ = rand.Read(secret) // never fails, crypto/rand says
	return secret
}

// Confidential is a Job whose ranks may share a secret.
type Confidential interface {
	Job
	// Secret returns what all ranks of the job share, and no other process has: SecretLen bytes; nil
	// if nothing is to be encrypted. It is for the calling process alone.
	Secret() []byte
}

// Job is a process' membership in a job. Its methods may be called by any
// goroutine.
type Job interface {
	Rank() int
	Size() int
	// Host returns the number of the host that the rank runs on and its
	// position among the ranks of that host.
	Host() (host, localRank int)
	// Key is the secret of the job, the same on all its ranks.
	Key() uint64
	// Put makes a value visible to all ranks after the next Fence.
	Put(key, value string) error
	// Fence waits until all ranks have called it. Then Get finds what they
	// had put.
	Fence() error
	// Get returns what the rank has put under key before the last Fence.
	Get(rank int, key string) (string, bool)
	// Abort ends the job on all hosts. It does not return when the launcher
	// can be reached.
	Abort(code int, why string)
	// Finalize tells the launcher that this rank will exit in good order;
	// leaving without it counts as a failure of the rank.
	Finalize() error
}
