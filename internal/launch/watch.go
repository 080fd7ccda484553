package launch

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/xwarp/xwarp/internal/inet/route"
	"github.com/xwarp/xwarp/verbs/device"
)

// linkWatch lets people know what is wrong with the network device that the ranks of a
// host use, and when that is over. Ranks wait for it, or tell of it when they end.
type linkWatch struct {
	watch *route.Watch
	host  string
	out   *outbox

	mu   sync.Mutex
	told error // its reason
}

// watchLink begins to watch the device of the ranks, if they have one.
func (a *agent) watchLink() *linkWatch {
	if a.start.Device == "" {
		return nil
	}
	c := route.WatchConfig{Link: a.start.Device, XDP: strings.HasPrefix(a.start.Fabric, "xdp")}
	c.Addr, _ = device.Address(c.Link, ipv6In(a.start.lookup)) // without, the ranks say so
	w, err := route.OpenWatch(c)
	if err != nil {
		return nil // the ranks fail to open it, and say why
	}
	name, _ := os.Hostname()
	l := &linkWatch{watch: w, host: fmt.Sprintf("host %d (%s)", a.start.Host, name), out: a.out}
	w.Start(l.tell)
	return l
}

// tell tells what is wrong, once, and with nil that it is over.
func (l *linkWatch) tell(t *route.Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t == nil && l.told != nil:
		l.told = nil
		l.out.post(report{Op: opNotice, Why: l.host + ": the network device is in order again"})
	case t != nil && l.told != t.Reason:
		l.told = t.Reason
		l.out.post(report{Op: opNotice, Why: fmt.Sprintf("%s: %v", l.host, t)})
	}
}

// last tells what is wrong when the job ends before its time: that may be why.
func (l *linkWatch) last() {
	if l == nil {
		return
	}
	if t := l.watch.Now(); t != nil {
		l.tell(t)
	}
}

func (l *linkWatch) close() {
	if l != nil {
		l.watch.Close()
	}
}
