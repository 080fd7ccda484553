package boot

import "sync"

// name is what a value is found under.
type name struct {
	rank int
	key  string
}

// table holds the values that fences have made visible.
type table struct {
	mu     sync.RWMutex
	values map[name]string
}

func (t *table) add(values []Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range values {
		t.values[name{v.Rank, v.Key}] = string(v.Value)
	}
}

// Get returns what the rank has put under key before the last Fence.
func (t *table) Get(rank int, key string) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.values[name{rank, key}]
	return v, ok
}
