package device

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// openShm opens an endpoint in shared memory, with a ring for each rank that
// may be on this host.
func openShm(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if err := s.takeAddress(); err != nil {
		return nil, err
	}
	return shm.Open(shm.Config{
		Arena: arena, Local: netip.AddrPortFrom(s.Addr, s.Port), MTU: s.MTU,
		Peers: max(shm.DefaultPeers, s.Poller.Ranks),
	})
}
