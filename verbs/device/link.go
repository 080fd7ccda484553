package device

import (
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/inet/route"
	"github.com/xwarp/xwarp/verbs"
)

// openWatch begins to watch the network device under the carriers, which are open. It
// returns nil where there is none.
func (o *opening) openWatch(s *Spec) (*route.Watch, error) {
	if s.Device == "" || s.Fabric == "shm" {
		return nil, nil
	}
	c := route.WatchConfig{
		Link: s.Device, Addr: s.Addr, MTU: s.MTU, XDP: strings.HasPrefix(s.Fabric, "xdp"),
		Limit: time.Duration(s.Dgram.PeerLost),
	}
	if c.Limit == 0 {
		c.Limit = time.Duration(arq.Config{}.WithDefaults(0).PeerLost)
	}
	if s.Fabric == "tcp" {
		c.MTU = 1 // the kernel's TCP takes any
	}
	w, err := route.OpenWatch(c)
	if err == nil {
		o.closers = append(o.closers, w)
	}
	return w, err
}

// failWith makes ctx fail when the device that w watches is of no use any more.
func failWith(ctx *verbs.Context, w *route.Watch) {
	w.Start(func(t *route.Trouble) {
		if t != nil && t.Final() {
			_ = ctx.Fail(t) // if it has too much to do it goes on, and is told of the next trouble
		}
	})
}
