package sim

import (
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// end is one side of a conversation in raw frames: what a test writes instead
// of a protocol.
type end struct {
	port  *Port
	descs []fabric.Desc
	got   [][]byte // payloads received so far
}

func open(t testing.TB, n *Node) *end {
	t.Helper()
	p, err := n.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &end{port: p, descs: make([]fabric.Desc, 64)}
}

// send sends a frame with the payload to a node, in as many buffers as it
// takes. It reports false when there was no room.
func (e *end) send(to *Node, payload []byte) bool {
	frame := make([]byte, 0, ethHeader+len(payload))
	mac, own := to.MAC(), e.port.node.MAC()
	frame = append(append(frame, mac[:]...), own[:]...)
	frame = append(append(frame, 0x88, 0xb5), payload...) // local experimental EtherType
	var descs []fabric.Desc
	for len(frame) > 0 {
		addr, ok := e.port.Pool().Get()
		if !ok {
			for _, d := range descs {
				e.port.Pool().Put(d.Addr)
			}
			return false
		}
		n := copy(e.port.Arena().At(addr, mem.FrameSize), frame)
		frame = frame[n:]
		descs = append(descs, fabric.Desc{Addr: addr, Len: uint32(n), Flags: fabric.More})
	}
	descs[len(descs)-1].Flags = 0
	if e.port.Send(descs) == 0 {
		for _, d := range descs {
			e.port.Pool().Put(d.Addr)
		}
		return false
	}
	return true
}

// poll receives all frames that wait and flushes.
func (e *end) poll() int {
	n := e.port.Recv(e.descs)
	var frame []byte
	frames := 0
	for _, d := range e.descs[:n] {
		frame = append(frame, e.port.Arena().At(d.Addr, int(d.Len))...)
		e.port.Pool().Put(d.Addr)
		if d.Flags&fabric.More == 0 {
			e.got = append(e.got, frame[ethHeader:])
			frame = nil
			frames++
		}
	}
	e.port.Flush()
	return frames
}

// await polls until want payloads have come, or the task's time is until.
func (e *end) await(t *Task, want int, until mono.Time) {
	for e.poll(); len(e.got) < want && t.Now() < until; e.poll() {
		t.Park(until, 0)
	}
}

func number(payload []byte) int { return int(binary.BigEndian.Uint32(payload)) }

func numbered(i, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, uint32(i))
	for j := 4; j < size; j++ {
		b[j] = byte(i + j)
	}
	return b
}
