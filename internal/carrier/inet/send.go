package inet

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// TxRoom returns how many datagrams of MaxBufs buffers Send takes now.
func (e *Datagram) TxRoom() int {
	return e.port.TxFree() / e.caps.MaxBufs
}

// Send writes the headers in front of all datagrams of b and queues them.
// Datagrams to a destination that cannot be reached now are counted and
// dropped. The buffers belong to the port afterwards.
func (e *Datagram) Send(b *fabric.Batch) {
	if len(b.Pkts) == 1 && len(b.Descs) == 1 && !b.Pkts[0].Again && e.sendOne(&b.Pkts[0], &b.Descs[0]) {
		return
	}
	if e.joined.takes(b) && e.joined.send(b) {
		return
	}
	n := 0
	for i := range b.Pkts {
		p := &b.Pkts[i]
		bufs := b.Descs[p.First : p.First+p.Bufs]
		to := &e.paths[p.To]
		if p.Len > to.maxPayload {
			e.refuse(to, bufs)
			continue
		}
		if n+len(bufs) > txStage {
			e.push(n)
			n = 0
		}
		if p.Again {
			to.pieces.Again()
		}
		e.putHeaders(to, p, bufs)
		n = e.stage(n, bufs)
		e.stats.TxPackets++
		e.stats.TxBytes += uint64(p.Len)
	}
	e.push(n)
}

// sendOne is Send for what a small message is: one datagram in one buffer. false
// means that Send has to look; then nothing was done.
func (e *Datagram) sendOne(p *fabric.Packet, d *fabric.Desc) bool {
	to := &e.paths[p.To]
	if p.Len > to.maxPayload || !p.Sealed || e.port.TxFree() == 0 {
		return false
	}
	t := &e.tx[0]
	if e.v6 {
		h := (*[HeaderLen6]byte)(e.bytes[d.Addr-HeaderLen6:])
		sum := to.put6(h, int(p.Len))
		if p.Source != 0 {
			sum = e.sources.put(h[udpAt6:], p.Source, sum)
		}
		sum.Add(e.bytes[d.Addr:][:d.Len]).PutChecksumUDP(h[udpAt6+udpChecksum:])
		t.Addr, t.Len, t.Flags = d.Addr-HeaderLen6, d.Len+HeaderLen6, 0
	} else {
		e.id++
		h := (*[HeaderLen]byte)(e.bytes[d.Addr-HeaderLen:])
		to.put(h, e.id, int(p.Len))
		if p.Source != 0 {
			e.sources.put(h[udpAt:], p.Source, 0)
		}
		t.Addr, t.Len, t.Flags = d.Addr-HeaderLen, d.Len+HeaderLen, 0
	}
	e.stats.TxPackets++
	e.stats.TxBytes += uint64(p.Len)
	e.port.Send(e.tx[:1])
	return true
}

// putHeaders writes the headers of p in front of its first buffer.
func (e *Datagram) putHeaders(to *path, p *fabric.Packet, bufs []fabric.Desc) {
	if e.v6 { // which has no checksum but this: RFC 8200, section 8.1
		h := (*[HeaderLen6]byte)(e.bytes[bufs[0].Addr-HeaderLen6:])
		sum := to.put6(h, int(p.Len))
		if p.Source != 0 {
			sum = e.sources.put(h[udpAt6:], p.Source, sum)
		}
		e.addPayload(sum, bufs).PutChecksumUDP(h[udpAt6+udpChecksum:])
		return
	}
	h := (*[HeaderLen]byte)(e.bytes[bufs[0].Addr-HeaderLen:])
	e.id++
	sum := to.put(h, e.id, int(p.Len))
	if p.Source != 0 {
		sum = e.sources.put(h[udpAt:], p.Source, sum)
	}
	if !p.Sealed { // else it has a CRC of its own, and RFC 768 allows to leave this out
		e.addPayload(sum, bufs).PutChecksumUDP(h[udpAt+udpChecksum:])
	}
}

// stage copies the buffers of a datagram to e.tx[n:], as those of a frame:
// with the headers, and linked. It returns where the next one goes.
func (e *Datagram) stage(n int, bufs []fabric.Desc) int {
	e.tx[n] = fabric.Desc{Addr: bufs[0].Addr - mem.Addr(e.headerLen), Len: bufs[0].Len + uint32(e.headerLen)}
	for i := 1; i < len(bufs); i++ {
		if bufs[i].Len == 0 { // the kernel refuses a frame that has an empty buffer
			e.pool.Put(bufs[i].Addr)
			continue
		}
		e.tx[n].Flags = fabric.More
		n++
		e.tx[n] = fabric.Desc{Addr: bufs[i].Addr, Len: bufs[i].Len}
	}
	return n + 1
}

// push hands the first n staged buffers to the port.
func (e *Datagram) push(n int) {
	if n == 0 {
		return
	}
	if took := e.port.Send(e.tx[:n]); took < n {
		e.overrun(e.tx[took:n])
	}
}

// overrun drops frames that the port did not take because the caller sent
// more than TxRoom said.
func (e *Datagram) overrun(bufs []fabric.Desc) {
	for i := range bufs {
		e.stats.TxBytes -= uint64(bufs[i].Len)
		if bufs[i].Flags&fabric.More == 0 {
			e.stats.TxErrors++
			e.stats.TxPackets--
			e.stats.TxBytes += uint64(e.headerLen)
		}
	}
	fabric.PutAll(e.pool, bufs)
}

// refuse drops a datagram that has no way to go, or is too large for it.
func (e *Datagram) refuse(to *path, bufs []fabric.Desc) {
	if to.maxPayload < 0 {
		e.stats.TxUnreachable++
	} else {
		e.stats.TxErrors++
	}
	fabric.PutAll(e.pool, bufs)
}
