package check

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
	"github.com/xwarp/xwarp/verbs"
)

func serialOf(n uint32) serial.U32 { return serial.U32(n) }

// counted is what the victim counted during an attack.
type counted struct {
	llp.Stats
	verbs.QPStats
}

// attackCase is an attack, and what must have been counted of it at least.
type attackCase struct {
	name   string
	attack func(r *attacker)
	seen   func(c *counted) uint64 // the counter that must have moved
}

func foreign(c *counted) uint64   { return c.RxForeign }
func stale(c *counted) uint64     { return c.RxStale }
func malformed(c *counted) uint64 { return c.RxMalformed }
func corrupt(c *counted) uint64   { return c.RxCorrupt }
func duplicate(c *counted) uint64 { return c.RxDuplicate }
func denied(c *counted) uint64    { return c.Refused }
func senseless(c *counted) uint64 { return c.Malformed }
func whatever(*counted) uint64    { return 1 }

// Whatever an attacker sends, the victim's memory holds what its peer has put
// there, the peer notices nothing, and the attempt is counted.
func TestByzantine(t *testing.T) {
	for _, c := range append(append(outsiders(), pretenders()...), insiders()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newByzantine(t)
			s.run(c.attack)
			var got counted
			got.Stats, _ = s.victim.ctx.Stats()
			got.QPStats = s.victim.qp.Stats
			if c.seen(&got) == 0 {
				t.Errorf("nothing was counted: %+v", got)
			}
		})
	}
}

// outsiders do not know the job's key, but may have listened.
func outsiders() []attackCase {
	const strange = 0xbad
	return []attackCase{
		{"noise", func(r *attacker) {
			for n := range 200 {
				b := make([]byte, n*7)
				for i := range b {
					b[i] = byte(r.task.Rand().Uint32())
				}
				r.send(r.own, b)
				r.send(r.fake, b)
			}
		}, malformed},
		{"every type with another key", func(r *attacker) {
			for typ := range dgram.Type(16) {
				for _, from := range []bool{true, false} {
					dg := r.own
					if from {
						dg = r.fake
					}
					r.send(dg, datagram(dgram.Header{Key: strange, Type: typ, SrcEpoch: 7, Count: 1, LSN: 7}, make([]byte, 40)...))
				}
			}
		}, foreign},
		{"captured datagrams with another key", func(r *attacker) {
			for _, b := range r.wire[:20] {
				b = append([]byte(nil), b...)
				binary.BigEndian.PutUint64(b[8:], strange)
				dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:]))
				r.send(r.fake, b)
			}
		}, foreign},
		{"captured datagrams with bits flipped", func(r *attacker) {
			for i, b := range r.wire[:40] {
				b = append([]byte(nil), b...)
				b[(12+i*5)%len(b)] ^= 1 << (i % 8)
				r.send(r.fake, b)
			}
		}, corrupt},
		{"captured datagrams without CRC", func(r *attacker) {
			for _, b := range r.wire[:20] {
				b = append([]byte(nil), b...)
				b[5] &^= dgram.FlagCRC
				r.send(r.fake, b)
			}
		}, corrupt},
		{"replay of all datagrams", func(r *attacker) {
			for range 2 {
				for _, b := range r.wire[:min(len(r.wire), 300)] {
					r.send(r.fake, b)
				}
			}
		}, duplicate},
		{"replay of all datagrams from another address", func(r *attacker) {
			for _, b := range r.wire[:min(len(r.wire), 100)] {
				r.send(r.own, b)
			}
		}, stale},
	}
}

// pretenders know the job's key and say that they are the peer, but have not
// listened: they do not know the numbers of its association.
func pretenders() []attackCase {
	each := func(h dgram.Header, body ...byte) func(*attacker) {
		return func(r *attacker) {
			for range 50 {
				h.SrcEpoch, h.DstEpoch = r.task.Rand().Uint32()|1, r.task.Rand().Uint32()|1
				h.LSN, h.Ack = serialOf(h.SrcEpoch), serialOf(h.DstEpoch)
				r.send(r.fake, datagram(h, body...))
			}
		}
	}
	write := func(r *attacker) []byte {
		u := tagged(rdmap.Write, r.victim.open.mr.RKey(), 0, true, make([]byte, 100)...)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(u))), u...)
	}
	return []attackCase{
		{"data with guessed numbers", func(r *attacker) { each(dgram.Header{Type: dgram.TypeData, Count: 1}, write(r)...)(r) }, stale},
		{"data to number 0", func(r *attacker) {
			r.send(r.fake, datagram(dgram.Header{Type: dgram.TypeData, Count: 1, SrcEpoch: 9, LSN: 9}, write(r)...))
		}, stale},
		{"acknowledgements with guessed numbers", each(dgram.Header{Type: dgram.TypeAck}), stale},
		{"resets with guessed numbers", each(dgram.Header{Type: dgram.TypeReset}), stale},
		{"answers to Hellos that were not sent", func(r *attacker) {
			for range 50 {
				r.send(r.fake, hello(dgram.TypeHelloAck, r.task.Rand().Uint32()|1, r.task.Rand().Uint32()|1, 100))
			}
		}, stale},
		{"Hellos of new lives", func(r *attacker) {
			for range 50 {
				r.send(r.fake, hello(dgram.TypeHello, r.task.Rand().Uint32()|1, 0, 1232))
			}
		}, whatever},
		{"Hellos of other sizes than they say", func(r *attacker) {
			for n := range 60 {
				b := hello(dgram.TypeHello, 77, 0, 1232)[:dgram.HeaderLen+dgram.HelloLen+n]
				dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:]))
				r.send(r.fake, b)
			}
		}, malformed},
	}
}

func tagged(op rdmap.Opcode, stag uint32, to uint64, last bool, payload ...byte) []byte {
	h := ddp.Header{Tagged: true, Last: last, ULP: rdmap.Control(op), STag: iwarp.STag(stag), TO: to}
	b := make([]byte, ddp.TaggedLen)
	h.Put(b)
	return append(b, payload...)
}

func untagged(op rdmap.Opcode, qn iwarp.QN, msn, mo uint32, last bool, payload ...byte) []byte {
	h := ddp.Header{Last: last, ULP: rdmap.Control(op), QN: qn, MSN: iwarp.MSN(msn), MO: mo}
	b := make([]byte, ddp.UntaggedLen)
	h.Put(b)
	return append(b, payload...)
}

func readRequest(stag uint32, to uint64, size uint32) []byte {
	req := rdmap.ReadReq{SinkSTag: 5, Size: size, SrcSTag: iwarp.STag(stag), SrcTO: to}
	b := make([]byte, rdmap.ReadReqLen)
	req.Put(b)
	return untagged(rdmap.ReadRequest, iwarp.QNReadReq, 1, 0, true, b...)
}

func atomicRequest(op rdmap.AtomicOp, stag uint32, to uint64) []byte {
	req := rdmap.AtomicReq{Op: op, ID: 1, STag: iwarp.STag(stag), TO: to, Data: 0xdead, Mask: math.MaxUint64}
	b := make([]byte, rdmap.AtomicReqLen)
	req.Put(b)
	return untagged(rdmap.AtomicRequest, iwarp.QNReadReq, 1, 0, true, b...)
}

func chunkOf(stag uint32, to uint64, c record.Chunk, payload ...byte) []byte {
	b := make([]byte, record.ChunkLen)
	c.Put(b)
	last := c.Offset+uint32(len(payload)) == c.Length
	return tagged(rdmap.WriteRecord, stag, to, last, append(b, payload...)...)
}

// insiders are members of the job that turned bad: they have the key and an
// association of their own.
func insiders() []attackCase {
	bad := make([]byte, 200) // what shall not be found in memory
	guess := func(make func(stag uint32) []byte) func(*attacker) {
		return func(r *attacker) {
			for _, stag := range []uint32{0, 1, 0x100, r.victim.open.mr.RKey() ^ 1, r.victim.open.mr.RKey() ^ 0x100, r.victim.secret.mr.RKey(), r.victim.sink.mr.RKey(), 0xffffffff} {
				r.say(make(stag))
			}
		}
	}
	return append([]attackCase{
		{"Write with guessed keys", guess(func(stag uint32) []byte { return tagged(rdmap.Write, stag, 0, true, bad...) }), denied},
		{"Read with guessed keys", guess(func(stag uint32) []byte { return readRequest(stag, 0, 100) }), denied},
		{"atomic with guessed keys", guess(func(stag uint32) []byte { return atomicRequest(rdmap.Swap, stag, 0) }), denied},
		{"Write-Record with guessed keys", guess(func(stag uint32) []byte {
			return chunkOf(stag, 0, record.Chunk{ID: 1, Length: 200}, bad...)
		}), denied},
		{"invalidation with guessed keys", guess(func(stag uint32) []byte {
			h := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.SendInv), ULP2: stag, MSN: 1}
			b := make([]byte, ddp.UntaggedLen)
			h.Put(b)
			return b
		}), denied},
		{"Write beyond the bounds", func(r *attacker) {
			key := r.victim.open.mr.RKey()
			for _, to := range []uint64{regionLen - 199, regionLen, regionLen + 1, 1 << 32, 1 << 63, math.MaxUint64 - 100, math.MaxUint64} {
				r.say(tagged(rdmap.Write, key, to, true, bad...))
			}
			r.say(tagged(rdmap.Write, r.victim.readable.mr.RKey(), 0, true, bad...))
		}, denied},
		{"Read of absurd sizes", func(r *attacker) {
			for _, n := range []uint32{regionLen + 1, 1 << 20, 1 << 31, math.MaxUint32} {
				r.say(readRequest(r.victim.open.mr.RKey(), 0, n))
				r.say(readRequest(r.victim.open.mr.RKey(), regionLen-8, n))
			}
		}, denied},
		{"atomics out of place", func(r *attacker) {
			for _, to := range []uint64{1, 4, regionLen - 4, regionLen, math.MaxUint64 - 7} {
				r.say(atomicRequest(rdmap.FetchAdd, r.victim.open.mr.RKey(), to))
			}
			r.say(atomicRequest(9, r.victim.open.mr.RKey(), 0))
		}, senseless},
	}, confusers()...)
}

// confusers are insiders that send what makes no sense.
func confusers() []attackCase {
	return []attackCase{
		{"responses that nobody has asked for", func(r *attacker) {
			for stag := range uint32(40) {
				r.say(tagged(rdmap.ReadResponse, stag<<20|stag, 0, true, make([]byte, 100)...))
				resp := rdmap.AtomicResp{ID: stag<<20 | stag, Value: 1}
				b := make([]byte, rdmap.AtomicRespLen)
				resp.Put(b)
				r.say(untagged(rdmap.AtomicResponse, iwarp.QNAtomicResp, 1, 0, true, b...))
			}
		}, func(c *counted) uint64 { return c.Refused + c.Malformed }},
		{"numbers outside of the window", func(r *attacker) {
			r.join()
			for _, d := range []uint32{1 << 31, 1000, 513, ^uint32(0), 1 << 20} {
				r.lsn = r.src + d
				r.more(tagged(rdmap.Write, r.victim.open.mr.RKey(), 0, true, make([]byte, 50)...))
			}
		}, duplicate},
		{"lengths and counts that do not add up", func(r *attacker) {
			for _, count := range []uint8{0, 1, 2, 255} {
				for _, length := range []uint16{0, 1, 13, 14, 17, 18, 60, 1000, 65535} {
					r.dst = 0
					r.join()
					body := binary.BigEndian.AppendUint16(nil, length)
					body = append(body, untagged(rdmap.Send, 0, 1, 0, false, make([]byte, 16)...)...)
					r.send(r.own, datagram(dgram.Header{
						Type: dgram.TypeData, Count: count, SrcEpoch: r.src, DstEpoch: r.dst, LSN: serialOf(r.src), Ack: serialOf(r.dst), Window: 8,
					}, body...))
				}
			}
		}, func(c *counted) uint64 { return c.RxMalformed + c.Malformed }},
		{"Sends at absurd offsets", func(r *attacker) {
			for _, mo := range []uint32{17, 4096, 1 << 31, math.MaxUint32 - 3} {
				r.say(untagged(rdmap.Send, 0, 1, mo, true, 1, 2, 3))
				r.say(untagged(rdmap.Send, 0, 1, 0, false, 1, 2, 3), untagged(rdmap.Send, 0, 1, mo, true, 1, 2, 3))
			}
		}, senseless},
		{"messages that never end", func(r *attacker) {
			r.join()
			for msn := range uint32(20) {
				r.more(untagged(rdmap.Send, 0, msn+1, 0, false, 1))
			}
		}, whatever},
		{"the same message again and again", func(r *attacker) {
			r.join()
			for range 20 {
				r.more(untagged(rdmap.Send, 0, 1, 0, false, 1), untagged(rdmap.Send, 0, 1, 1, true, 1), untagged(rdmap.Send, 0, 65, 0, false, 1))
			}
		}, whatever},
		{"unknown operations, queues and versions", func(r *attacker) {
			for ulp := range 256 {
				for _, qn := range []iwarp.QN{0, 1, 2, 3, 4, 1 << 31} {
					u := untagged(0, qn, 1, 0, true, make([]byte, 60)...)
					u[1] = byte(ulp)
					r.say(u)
				}
				if ulp%16 == 0 {
					r.task.Sleep(100_000)
				}
			}
			for version := range byte(4) {
				u := untagged(rdmap.Send, 0, 1, 0, true)
				u[0] = u[0]&^3 | version
				r.say(u)
			}
		}, senseless},
		{"Terminates of all kinds", func(r *attacker) {
			for n := range rdmap.TermMaxLen + 4 {
				b := make([]byte, n)
				for i := range b {
					b[i] = byte(r.task.Rand().Uint32())
				}
				r.say(untagged(rdmap.Terminate, iwarp.QNTerminate, 1, 0, true, b...))
			}
		}, whatever},
		{"acknowledgements of what was not sent", func(r *attacker) {
			r.join()
			sack := make([]byte, 8*dgram.MaxSackWords)
			for i := range sack {
				sack[i] = 0xff
			}
			for _, d := range []uint32{0, 1, 100, 1 << 31, ^uint32(0)} {
				r.send(r.own, datagram(dgram.Header{
					Type: dgram.TypeAck, SackWords: dgram.MaxSackWords, SrcEpoch: r.src, DstEpoch: r.dst, LSN: serialOf(r.src + d), Ack: serialOf(r.dst + d), Window: 0x3ff & 512, Credit: 63, Held: 65535,
				}, sack...))
			}
		}, whatever},
		{"records that contradict themselves", func(r *attacker) {
			key := r.victim.open.mr.RKey()
			for _, c := range []record.Chunk{{ID: 1, Length: 10}, {ID: 1, Length: 1000, Offset: 990}, {ID: 1, Length: math.MaxUint32, Offset: math.MaxUint32 - 5}, {ID: 1, Length: 100, Offset: 200}} {
				r.say(chunkOf(key, regionLen-30, c, make([]byte, 50)...))
			}
		}, func(c *counted) uint64 { return c.Refused + c.Malformed }},
		{"unreliable datagrams to nobody", func(r *attacker) {
			for qpn := range uint32(20) {
				u := untagged(rdmap.Write, 0, 1, 0, true, make([]byte, 30)...)
				u = append(binary.BigEndian.AppendUint16(nil, uint16(len(u))), u...)
				r.send(r.own, datagram(dgram.Header{Type: dgram.TypeUD, Count: 1, SrcEpoch: 3, LSN: 1, Ack: serialOf(qpn)}, u...))
				u = chunkOf(r.victim.secret.mr.RKey(), 0, record.Chunk{ID: qpn, Length: 30}, make([]byte, 30)...)
				u = append(binary.BigEndian.AppendUint16(nil, uint16(len(u))), u...)
				r.send(r.own, datagram(dgram.Header{Type: dgram.TypeUD, Count: 1, SrcEpoch: 3, LSN: 1, Ack: serialOf(r.victim.ud.Num())}, u...))
			}
		}, whatever},
	}
}
