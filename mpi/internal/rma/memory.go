package rma

// memory is what others operate on.
type memory struct {
	mem     []byte
	dynamic bool
	parts   []part
}

// part is memory that was attached.
type part struct {
	addr uint64
	mem  []byte
}

// Attach adds memory to a dynamic window, under its address.
func (w *Window) Attach(addr uint64, b []byte) bool { return w.here.attach(addr, b) }

// Detach takes memory out of a dynamic window.
func (w *Window) Detach(addr uint64) bool { return w.here.detach(addr) }

func (w *memory) attach(addr uint64, b []byte) bool {
	for _, p := range w.parts {
		if addr < p.addr+uint64(len(p.mem)) && p.addr < addr+uint64(len(b)) {
			return false
		}
	}
	w.parts = append(w.parts, part{addr, b})
	return true
}

func (w *memory) detach(addr uint64) bool {
	for i, p := range w.parts {
		if p.addr == addr {
			w.parts = append(w.parts[:i], w.parts[i+1:]...)
			return true
		}
	}
	return false
}

// at returns n bytes of the own memory, or false.
func (w *memory) at(off uint64, n int) ([]byte, bool) {
	if !w.dynamic {
		return slice(w.mem, off, n)
	}
	for _, p := range w.parts {
		if off >= p.addr {
			if b, ok := slice(p.mem, off-p.addr, n); ok {
				return b, true
			}
		}
	}
	return nil, false
}

func slice(b []byte, off uint64, n int) ([]byte, bool) {
	if off > uint64(len(b)) || uint64(n) > uint64(len(b))-off {
		return nil, false
	}
	return b[off : off+uint64(n) : off+uint64(n)], true
}
