package launch

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// linkWatch lets people know what is wrong with a network device that the ranks of a
// host use, and when that is over. Ranks wait for it, go on over another one, or tell of
// it when they end.
type linkWatch struct {
	watch *route.Watch
	host  string
	dev   string
	out   *outbox

	mu   sync.Mutex
	told error // its reason
}

// watchLinks begins to watch the devices of the ranks, if they have any.
func (a *agent) watchLinks() (links []*linkWatch) {
	if a.start.Device == "" {
		return nil
	}
	name, _ := os.Hostname()
	for _, dev := range device.Devices(a.start.Device) {
		c := route.WatchConfig{Link: dev, XDP: strings.HasPrefix(a.start.Fabric, "xdp")}
		if c.XDP {
			if q, err := xdp.NewQueueCounter(c.Link); err == nil {
				c.Queues = q
			}
		}
		c.Addr, _ = device.Address(c.Link, settings(a.start.lookup).IPv6) // without, the ranks say so
		w, err := route.OpenWatch(c)
		if err != nil {
			continue // the ranks fail to open it, and say why
		}
		l := &linkWatch{watch: w, host: fmt.Sprintf("host %d (%s)", a.start.Host, name), dev: dev, out: a.out}
		w.Start(l.tell)
		links = append(links, l)
	}
	return links
}

// tell tells what is wrong, once, and with nil that it is over.
func (l *linkWatch) tell(t *route.Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t == nil && l.told != nil:
		l.told = nil
		l.out.post(report{Op: opNotice, Why: fmt.Sprintf("%s: %s is in order again", l.host, l.dev)})
	case t != nil && l.told != t.Reason:
		l.told = t.Reason
		l.out.post(report{Op: opNotice, Why: fmt.Sprintf("%s: %v", l.host, t)})
	}
}

// last tells what is wrong when the job ends before its time: that may be why.
func (l *linkWatch) last() {
	if t := l.watch.Now(); t != nil {
		l.tell(t)
	}
}

func (l *linkWatch) close() { l.watch.Close() }
