package bench

import (
	"bytes"
	"sync"
)

// Tail keeps the last part of what is written to it. Any goroutine may.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	const most = 4096
	t.b = t.b[max(len(t.b)-most, 0):]
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
