package kudp

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// pathState is what is known of a path, beside its address.
type pathState struct {
	strange bool // made by Back, and not proven yet to lead to a peer
	pieces  fabric.Pieces
}

func (s *Socket) addPath(to netip.AddrPort, strange bool) fabric.Path {
	var p fabric.Path
	if n := len(s.free); n > 0 {
		p, s.free = s.free[n-1], s.free[:n-1]
	} else {
		p = fabric.Path(len(s.paths))
		s.paths, s.states = append(s.paths, rawAddr{}), append(s.states, pathState{})
	}
	s.paths[p], s.states[p] = rawAddrOf(to), pathState{strange: strange}
	s.byAddr[to] = p
	return p
}

// Back returns the path to the sender of a datagram. The kernel finds the way there itself,
// without making us wait.
func (s *Socket) Back(from fabric.Remote, _ fabric.Station) (fabric.Path, bool) {
	to := from.AddrPort()
	if p, ok := s.byAddr[to]; ok {
		return p, true
	}
	if a := to.Addr(); !a.IsValid() || a.Is4() != s.local.Addr().Is4() || a.IsUnspecified() || a.IsMulticast() || to.Port() == 0 {
		return 0, false
	}
	return s.addPath(to, true), true
}

// Drop forgets a path of Back. Its number is used again when all that is queued was
// sent.
func (s *Socket) Drop(p fabric.Path) {
	if !s.states[p].strange {
		return
	}
	s.states[p].strange = false
	delete(s.byAddr, s.paths[p].remote().AddrPort())
	if s.tx.next == s.tx.end {
		s.free = append(s.free, p)
	} else {
		s.dropped = append(s.dropped, p)
	}
}

// Trust notes that the path leads to a peer.
func (s *Socket) Trust(p fabric.Path, _ fabric.Station) { s.states[p].strange = false }

// Doubt does nothing: the kernel asks for a neighbour again that does not answer.
func (s *Socket) Doubt(fabric.Path) {}
