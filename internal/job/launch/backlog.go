package launch

import "os"

// backlogMemory is how many bytes of a backlog stay in memory.
const backlogMemory = 1 << 20

// backlog is output that waits: its end in memory, and what is before that, if it is
// much, in a nameless file. Where there is no room for one all stays in memory, and it
// is full.
type backlog struct {
	mem  []byte
	file *os.File // or nil
	size int64    // of the file
	full bool     // it takes no more
}

// add appends data.
func (b *backlog) add(data []byte) {
	b.mem = append(b.mem, data...)
	if len(b.mem) >= backlogMemory && !b.full {
		b.spill()
	}
}

// spill moves what is in memory into the file.
func (b *backlog) spill() {
	if b.file == nil {
		f, err := os.CreateTemp("", "xrun-output-")
		if err != nil {
			b.full = true
			return
		}
		_ = os.Remove(f.Name()) // it goes with its descriptor
		b.file = f
	}
	n, err := b.file.WriteAt(b.mem, b.size)
	b.size += int64(n)
	b.mem = b.mem[:copy(b.mem, b.mem[n:])]
	b.full = err != nil
}

// drain empties the backlog into emit. An error says that a part could not be read
// again.
func (b *backlog) drain(emit func([]byte)) (err error) {
	if b.file != nil {
		piece := make([]byte, outputPiece)
		for at := int64(0); at < b.size && err == nil; {
			var n int
			n, err = b.file.ReadAt(piece[:min(int64(len(piece)), b.size-at)], at)
			emit(piece[:n])
			at += int64(n)
		}
		b.file.Close()
	}
	if len(b.mem) > 0 {
		emit(b.mem)
	}
	*b = backlog{mem: b.mem[:0]}
	return err
}
