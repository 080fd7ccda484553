package coll

import "github.com/xwarp/xwarp/internal/base/mem"

// ReduceScatterHosts lets each rank reduce on its host what all ranks with its number there need, those of
// other hosts first, and then reduce over these ranks. It is for operations that commute, and for hosts
// with as many ranks each.
//
// Why: a block goes to another host once, reduced, and not once from each rank, while the host works on its own.
// Cost: (R - 1) h a + (R - 1) h n/p (b + g) inside of a host, and (h - 1) a + (h - 1) n/p (b + g) between hosts,
// with h hosts of R ranks.
func ReduceScatterHosts(s *Schedule, t Team, blocks [][]byte, out []byte) {
	acc := out
	if mem.AddressOf(blocks[0]) == mem.AddressOf(out) { // in place: others need what is there
		acc = s.Temp(len(out))
	}
	h := t.Hosts
	local := Part(int32(t.Me), h.ranks[h.of[t.Me]])
	near, far := local.Size-1, len(h.ranks)-1
	host := func(i int) []int32 { return h.ranks[(int(h.of[t.Me])+i)%(far+1)] } // its ranks, i hosts on
	nears, fars := s.Blocks((far+1)*near), s.Blocks(far)
	for i := range far + 1 {
		each := nears[i*near : (i+1)*near]
		for k := range each {
			if each[k] = acc; i < far || k > 0 {
				each[k] = s.Temp(len(blocks[host(i + 1)[local.Me]]))
			}
			s.recv(local, local.off(local.Me-k-1), each[k])
		}
	}
	for i := range fars {
		fars[i] = s.Temp(len(out))
		s.recv(t, int(host(far - i)[local.Me]), fars[i])
	}
	for i := range far + 1 {
		for k := range near {
			to := local.off(local.Me + k + 1)
			s.send(local, to, blocks[host(i + 1)[to]])
		}
	}
	for i := range far + 1 {
		to := int(host(i + 1)[local.Me])
		s.await((i + 1) * near)
		b := nears[i*near]
		s.combine(b, blocks[to], true)
		for _, more := range nears[i*near+1 : (i+1)*near] {
			s.combine(b, more, true)
		}
		if i < far {
			s.send(t, to, b)
		}
	}
	for i, b := range fars {
		s.await((far+1)*near + i + 1)
		s.combine(acc, b, true)
	}
	s.fence()
	s.Copy(out, acc)
}
