package kudp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

const (
	// txDepth is how many datagrams may be queued. One system call sends all.
	txDepth = 64
	// maxSegments is the most datagrams that the kernel makes of one message
	// (UDP_MAX_SEGMENTS; 128 since Linux 6.9).
	maxSegments = 64
	// maxIovecs is the most buffers of one message (UIO_MAXIOV).
	maxIovecs = 1024
)

// sender is the sending half of a socket: datagrams that wait for Flush.
type sender struct {
	pool       *mem.Pool
	bytes      []byte // of the arena
	gso        bool
	maxPayload int

	// Queued datagrams are pkts[next:end], and their buffers follow each
	// other in iovs and bufs.
	pkts      [txDepth]queued
	next, end int
	iovs      []unix.Iovec
	bufs      []mem.Addr

	msgs  [txDepth]message
	count [txDepth]int // datagrams in each message
	ctrls [txDepth]control
}

// queued is a datagram that waits to be sent.
type queued struct {
	first, bufs int32 // in iovs
	len         int32
	to          fabric.Path
	alone       bool // goes by itself
}

func (t *sender) init(a *mem.Arena, pool *mem.Pool, maxPayload int, gso bool) {
	t.pool, t.bytes, t.maxPayload, t.gso = pool, a.Bytes(), maxPayload, gso
	t.iovs = make([]unix.Iovec, 0, txDepth*fabric.MaxBufs)
	t.bufs = make([]mem.Addr, 0, txDepth*fabric.MaxBufs)
	for i := range t.ctrls {
		c := &t.ctrls[i]
		c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
	}
}

// TxRoom returns how many datagrams of MaxBufs buffers Send takes now.
func (s *Socket) TxRoom() int {
	return min(txDepth-s.tx.end, (cap(s.tx.iovs)-len(s.tx.iovs))/fabric.MaxBufs)
}

// Send queues the datagrams of b for Flush. Those beyond TxRoom, or too large,
// are counted and dropped.
func (s *Socket) Send(b *fabric.Batch) {
	t := &s.tx
	for i := range b.Pkts {
		p := &b.Pkts[i]
		bufs := b.Descs[p.First : p.First+p.Bufs]
		if t.end == txDepth || len(t.iovs)+len(bufs) > cap(t.iovs) || int(p.Len) > t.maxPayload {
			s.stats.TxErrors++
			for j := range bufs {
				t.pool.Put(bufs[j].Addr)
			}
			continue
		}
		w := &s.states[p.To].pieces
		if p.Again {
			w.Again()
		}
		t.push(p, bufs, p.Again || w.Alone())
	}
}

func (t *sender) push(p *fabric.Packet, bufs []fabric.Desc, alone bool) {
	q := &t.pkts[t.end]
	t.end++
	q.first, q.bufs, q.len, q.to, q.alone = int32(len(t.iovs)), p.Bufs, p.Len, p.To, alone
	for i := range bufs {
		n := len(t.iovs)
		t.iovs, t.bufs = t.iovs[:n+1], t.bufs[:n+1]
		t.iovs[n].Base = &t.bytes[bufs[i].Addr]
		t.iovs[n].SetLen(int(bufs[i].Len))
		t.bufs[n] = bufs[i].Addr
	}
}

// Flush sends what is queued. When the kernel has no room the rest stays
// queued for the next Flush.
func (s *Socket) Flush() {
	t := &s.tx
	if t.next == t.end {
		return
	}
	for t.next < t.end {
		msgs := t.group(s.paths)
		n, errno := sendmmsg(s.fd, t.msgs[:msgs])
		for i := range n {
			s.retire(t.count[i])
		}
		// The kernel reports an error only for the first message of a call.
		if n == 0 && !s.blame(errno) {
			return
		}
	}
	s.free, s.dropped = append(s.free, s.dropped...), s.dropped[:0]
	t.next, t.end = 0, 0
	t.iovs, t.bufs = t.iovs[:0], t.bufs[:0]
}

// retire takes the n datagrams in front, which were sent, out of the queue.
func (s *Socket) retire(n int) {
	s.states[s.tx.pkts[s.tx.next].to].pieces.Sent(n)
	for range n {
		s.stats.TxPackets++
		s.stats.TxBytes += uint64(s.tx.pkts[s.tx.next].len)
		s.tx.drop()
	}
}

// drop takes the datagram in front out of the queue and gives back its frames.
func (t *sender) drop() {
	q := &t.pkts[t.next]
	t.next++
	for _, a := range t.bufs[q.first : q.first+q.bufs] {
		t.pool.Put(a)
	}
}

// blame handles the error of the message in front. It returns false when the
// queue has to wait.
func (s *Socket) blame(errno unix.Errno) bool {
	t := &s.tx
	switch errno {
	case unix.EINTR:
		return true
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return false
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EHOSTDOWN, unix.ECONNREFUSED:
		s.stats.TxUnreachable += uint64(t.count[0])
	case unix.EIO, unix.EINVAL:
		// A device without checksum offload cannot cut messages on old
		// kernels. Go on without.
		if t.gso && t.count[0] > 1 {
			t.gso = false
			return true
		}
		s.stats.TxErrors += uint64(t.count[0])
	default:
		s.stats.TxErrors += uint64(t.count[0])
	}
	for range t.count[0] {
		t.drop()
	}
	return true
}

// group makes messages of the queued datagrams and returns their number. With
// GSO an aggregate of equal datagrams to one destination becomes one message; the
// last of the aggregate may be shorter.
func (t *sender) group(paths []rawAddr) int {
	msgs := 0
	for i := t.next; i < t.end; msgs++ {
		first := &t.pkts[i]
		n, bufs, total := 1, first.bufs, first.len
		for t.gso && !first.alone && first.len > 0 && i+n < t.end && n < maxSegments {
			q := &t.pkts[i+n]
			if q.to != first.to || q.alone || q.len == 0 || q.len > first.len || total+q.len > maxDatagram || bufs+q.bufs > maxIovecs {
				break
			}
			n, bufs, total = n+1, bufs+q.bufs, total+q.len
			if q.len < first.len {
				break
			}
		}
		m := &t.msgs[msgs]
		m.setName(&paths[first.to])
		m.Iov = &t.iovs[first.first]
		m.SetIovlen(int(bufs))
		m.setControl(nil)
		if n > 1 {
			binary.NativeEndian.PutUint16(t.ctrls[msgs].value[:], uint16(first.len))
			m.setControl(&t.ctrls[msgs])
		}
		t.count[msgs] = n
		i += n
	}
	return msgs
}
