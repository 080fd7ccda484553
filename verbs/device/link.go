package device

import (
	"cmp"
	"strings"

	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/xdp"
)

// openWatch begins to watch the network device under the carriers, which are open. It
// returns nil where there is none.
func (o *opening) openWatch(s *Spec) (*route.Watch, error) {
	if s.Device == "" || s.Fabric == "shm" || SeveralDevices(s.Device) != nil { // one of several may die
		return nil, nil
	}
	c := route.WatchConfig{
		Link: s.Device, Addr: s.Addr, MTU: s.MTU, XDP: strings.HasPrefix(s.Fabric, "xdp"),
		Limit: s.Dgram.PeerLost,
	}
	c.Limit = cmp.Or(c.Limit, arq.Config{}.WithDefaults(0).PeerLost)
	if c.XDP {
		if q, err := xdp.NewQueueCounter(c.Link); err == nil {
			c.Queues = q
		}
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
		switch {
		case t == nil:
		case t.Lasting() && t.Partial():
			ctx.FailIfStuck(t)
		case t.Lasting() || t.Final():
			ctx.Fail(t)
		}
	})
}
