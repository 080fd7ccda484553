package boot

import (
	"errors"
	"fmt"
)

// Limits of what a rank may say. A launcher keeps what ranks put, and may have more
// rights than they have: one that has gone mad, or means harm, must not make it grow.
const (
	MaxRequest = 512 << 10 // bytes of a line of a rank
	MaxKey     = 256       // bytes of a key
	MaxValue   = 64 << 10  // bytes of a value
	MaxPut     = 1 << 20   // bytes of lines, at most, that all that a rank ever puts takes
	MaxTable   = 48 << 20  // the same of all ranks of a job; a line with all of it is no longer than MaxLine

	maxState = 256 << 10 // bytes of what a rank says it does
	maxWhy   = 64 << 10  // bytes of why it aborts
)

// ErrQuota is wrapped by what refuses a value.
var ErrQuota = errors.New("the table of the job takes no more")

// Quota is how much of a table is taken. Its zero value is nothing.
type Quota struct{ taken int }

// Take takes room for a value of a rank, and returns an error that wraps ErrQuota if
// there is none.
func (q *Quota) Take(key string, value []byte) error {
	switch n := lineLen(key, value); {
	case len(key) > MaxKey:
		return fmt.Errorf("%w: a key has %d bytes, and may have %d", ErrQuota, len(key), MaxKey)
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the value of %.32q has %d bytes, and may have %d", ErrQuota, key, len(value), MaxValue)
	case q.taken+n > MaxPut:
		return fmt.Errorf("%w: a rank may put %d KiB in all; send what is more as messages", ErrQuota, MaxPut>>10)
	default:
		q.taken += n
	}
	return nil
}

// TakeTotal takes room for a value in what all ranks have together.
func (q *Quota) TakeTotal(key string, value []byte) error {
	n := lineLen(key, value)
	if q.taken+n > MaxTable {
		return fmt.Errorf("%w: the ranks of a job may put %d MiB together; use fewer ranks, or send what is more as messages", ErrQuota, MaxTable>>20)
	}
	q.taken += n
	return nil
}

// lineLen is not below what a value takes in a line.
func lineLen(key string, value []byte) int { return 64 + 6*len(key) + len(value)*4/3 }
