package sim

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Node is a host: an arena, a cable to the switch, and ports on its NIC.
type Node struct {
	Up, Down Link // to the switch and from it

	world *World
	id    int
	arena *mem.Arena
	ports []*Port
	tasks []*Task

	home *Node   // that the NIC belongs to: the node itself, or see Beside
	nics []*Node // of a host, itself first

	streams   []*Streams
	tcp       map[uint16]bool // ports in use
	ephemeral int             // the port that was chosen last

	island bool // which side of a partition

	sending bool // a frame is on the way from a TX ring to the wire
	turn    int  // the port whose turn it is
}

// Node adds a node to the world.
func (w *World) Node() *Node {
	return w.node(mem.Over(make([]byte, w.config.ArenaSize)))
}

// Beside adds one more NIC to the host that n is, with a cable and an address of its
// own. What is done to its links is done to this NIC alone; tasks run on n, and wait
// for what arrives on any of its NICs.
func (n *Node) Beside() *Node {
	b := n.world.node(n.arena)
	b.home, b.nics = n, nil
	n.nics = append(n.nics, b)
	return b
}

func (w *World) node(arena *mem.Arena) *Node {
	n := &Node{world: w, id: len(w.nodes), arena: arena}
	n.home, n.nics = n, []*Node{n}
	n.Up = newLink(n, w.config.Up, randomUp)
	n.Down = newLink(n, w.config.Down, randomDown)
	w.nodes = append(w.nodes, n)
	return n
}

// Nodes adds n nodes.
func (w *World) Nodes(n int) []*Node {
	nodes := make([]*Node, n)
	for i := range nodes {
		nodes[i] = w.Node()
	}
	return nodes
}

// ID returns the number of the node, from 0.
func (n *Node) ID() int { return n.id }

// Arena returns the memory of the node. All its ports use it.
func (n *Node) Arena() *mem.Arena { return n.arena }

// host is the number of a node in its addresses: 0 would be the network's.
func (n *Node) host() (h, l byte) { return byte((n.id + 1) >> 8), byte(n.id + 1) }

// MAC returns the Ethernet address of the node, 02:00:00:00:h:l, where h and l
// are the bytes of the node's number plus 1.
func (n *Node) MAC() [6]byte {
	h, l := n.host()
	return [6]byte{2, 0, 0, 0, h, l}
}

// Addr returns the IPv4 address of the node, 10.0.h.l. All nodes are neighbours
// in 10.0.0.0/16.
func (n *Node) Addr() netip.Addr {
	h, l := n.host()
	return netip.AddrFrom4([4]byte{10, 0, h, l})
}

// MACOf is the static neighbour table of the world: the Ethernet address of
// the node that has the address a.
func (w *World) MACOf(a netip.Addr) (mac [6]byte, ok bool) {
	if !a.Is4() {
		return mac, false
	}
	b := a.As4()
	mac = [6]byte{2, 0, 0, 0, b[2], b[3]}
	return mac, b[0] == 10 && b[1] == 0 && w.nodeOf(mac) != nil
}

func (w *World) nodeOf(mac [6]byte) *Node {
	id := int(mac[4])<<8 + int(mac[5]) - 1
	if [4]byte(mac[:4]) != [4]byte{2, 0, 0, 0} || id < 0 || id >= len(w.nodes) {
		return nil
	}
	return w.nodes[id]
}

// Open opens a port on the node's NIC. It gets the frames that steer accepts
// and that no port opened before it has accepted, as the XDP program does it;
// nil accepts all.
func (n *Node) Open(steer func(frame []byte) bool) (*Port, error) {
	pool, err := mem.NewPool(n.arena, n.world.config.Frames, true)
	if err != nil {
		return nil, fmt.Errorf("sim: node %d: %w", n.id, err)
	}
	return n.OpenOn(pool, steer), nil
}

// OpenOn is Open with frames of a pool that several ports of the host share.
func (n *Node) OpenOn(pool *mem.Pool, steer func(frame []byte) bool) *Port {
	p := newPort(n, pool, steer)
	n.ports = append(n.ports, p)
	return p
}

// Wake ends the Park of every task on the node, as an eventfd would.
func (n *Node) Wake() {
	for _, t := range n.tasks {
		t.Wake()
	}
}

// input reports whether a port or streams that t reads have something for it.
func (n *Node) input(t *Task) bool {
	for _, nic := range n.nics {
		for _, p := range nic.ports {
			if p.ready() && p.readBy(t) {
				return true
			}
		}
	}
	for _, s := range n.streams {
		if len(s.news) > 0 && s.readBy(t) {
			return true
		}
	}
	return false
}

// deliver hands a frame to the port that wants it. Like a NIC it wants none
// but its own address and group addresses; a flipped bit can make another.
func (n *Node) deliver(pk *packet) {
	for _, p := range n.ports {
		if pk.frame[0]&1 == 0 && [6]byte(pk.frame) != n.MAC() {
			break
		}
		if !p.closed && (p.steer == nil || p.steer(pk.frame)) {
			p.receive(pk)
			return
		}
	}
	n.world.note(traceUnknown, pk.id, n.id, nil)
}

// transmit puts the next frame of the TX rings on the wire, port by port in
// turn, unless one is there already.
func (n *Node) transmit() {
	if n.sending {
		return
	}
	for range n.ports {
		p := n.ports[n.turn%len(n.ports)]
		n.turn++
		if p.flushed > 0 {
			n.sending = true
			p.launch()
			return
		}
	}
}
