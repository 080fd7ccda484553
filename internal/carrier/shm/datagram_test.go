package shm

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

func TestOpen_errors(t *testing.T) {
	arena := newArena(t, 8<<20)
	free := arena.Room()
	first := open(t, Config{})
	for _, c := range []struct {
		name   string
		config Config
		want   error
		text   string
	}{
		{"no arena", Config{Local: loopback}, nil, "Arena is missing"},
		{"arena of plain memory", Config{Local: loopback, Arena: mem.Over(make([]byte, 8<<20))}, nil, "use mem.New"},
		{"no address", Config{Arena: arena}, nil, "want an IPv4 address, or one of IPv6, of this host"},
		{"somebody else's address", Config{Arena: arena, Local: netip.MustParseAddrPort("203.0.113.5:0")}, ErrNotLocal, "203.0.113.5"},
		{"port in use", Config{Arena: arena, Local: first.Local()}, ErrPortInUse, "choose another port"},
		{"large MTU", Config{Arena: arena, Local: loopback, MTU: 65536}, nil, "Config.MTU is 65536: want 68 to 65535"},
		{"small MTU", Config{Arena: arena, Local: loopback, MTU: 60}, nil, "Config.MTU is 60"},
		{"negative frames", Config{Arena: arena, Local: loopback, Frames: -1}, nil, "Config.Frames is -1"},
		{"negative peers", Config{Arena: arena, Local: loopback, Peers: -1}, nil, "Config.Peers is -1"},
		{"crooked ring", Config{Arena: arena, Local: loopback, Ring: 100000}, nil, "want a power of two"},
		{"small ring", Config{Arena: arena, Local: loopback, MTU: 9000, Ring: 16 << 10}, nil, "does not hold two datagrams"},
		{"frames beyond the arena", Config{Arena: arena, Local: loopback, Frames: 9999}, mem.ErrNoMemory, "frame pool of 9999"},
		{"rings beyond the arena", Config{Arena: arena, Local: loopback, Peers: 100, Ring: 1 << 20}, mem.ErrNoMemory, "100 rings of 1048576"},
	} {
		_, err := Open(c.config)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := arena.Room(); now != free {
			t.Errorf("%s: keeps %d bytes of the arena", c.name, free-now)
		}
	}
}

func TestResolve_errors(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{Peers: 1})
	small := open(t, Config{MTU: 1500})
	resolve(t, b, b.Local()) // itself: that takes the only ring
	for _, c := range []struct {
		to   string
		want error
		text string
	}{
		{"203.0.113.9:1", ErrNotLocal, "shared memory reaches no other"},
		{"127.0.0.1:0", nil, "want the address of an endpoint, with its port"},
		{"0.0.0.0:1", nil, "want the address of an endpoint, with its port"},
		{b.Local().String(), ErrPeers, "raise its Config.Peers"},
		{small.Local().String(), ErrMTU, "use the same MTU everywhere"},
	} {
		_, err := a.Resolve(netip.MustParseAddrPort(c.to))
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

// TestSend_toOneself goes through a ring like every other.
func TestSend_toOneself(t *testing.T) {
	e := open(t, Config{})
	send(e, resolve(t, e, e.Local()), 7, 5000)
	if g := await(e, 1)[0]; g != (got{7, 5000, e.Local(), true}) {
		t.Errorf("got %+v", g)
	}
}

// TestSend_many fills the rings of one receiver from many senders, some of
// which leave: each ring keeps its order and its bytes.
func TestSend_many(t *testing.T) {
	rx := open(t, Config{Peers: 6, Ring: 64 << 10})
	next := map[netip.AddrPort]uint64{}
	var lost uint64
	for round := range 5 {
		var tx []*Datagram
		for range 6 {
			e := open(t, Config{Peers: 1, Ring: 64 << 10})
			to := resolve(t, e, rx.Local())
			for i := range 20 + 5*round {
				send(e, to, uint64(i), 8+(i*977+round*331)%8000)
			}
			tx = append(tx, e)
		}
		for _, e := range tx {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range poll(rx) {
			if !g.whole || g.number < next[g.from] || g.size != 8+(int(g.number)*977+round*331)%8000 {
				t.Fatalf("round %d: got %+v, next is %d", round, g, next[g.from])
			}
			lost += g.number - next[g.from]
			next[g.from] = g.number + 1
		}
		for from, n := range next {
			lost += uint64(20+5*round) - n
			delete(next, from)
		}
		for rx.meet(); len(rx.in) > 0; rx.meet() { // until it is noticed that all have left
			runtime.Gosched()
		}
	}
	if st := rx.Stats(); st.RxDropped != lost {
		t.Errorf("%d datagrams were lost, %d are counted", lost, st.RxDropped)
	}
}

// TestSend_peerStartsLate and comes back after it has ended.
func TestSend_peerStartsLate(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	at := b.Local()
	to := resolve(t, a, at)
	for life := range 3 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for a.Stats().TxUnreachable == uint64(life) { // until the end of b is noticed
			send(a, to, 99, 100)
			runtime.Gosched()
		}
		b = open(t, Config{Local: at})
		var back []got
		for n := uint64(0); len(back) == 0; n++ {
			send(a, to, n, 100)
			runtime.Gosched()
			back = poll(b)
		}
		if !back[0].whole || back[0].from != a.Local() {
			t.Fatalf("got %+v", back[0])
		}
		a.stats.TxUnreachable = uint64(life) + 1
	}
}

// TestFD_wakesWaiter puts a receiver to sleep in poll(2) again and again.
func TestFD_wakesWaiter(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	to, home := resolve(t, a, b.Local()), resolve(t, b, a.Local())
	const rounds = 2000
	done := make(chan int)
	go func() {
		sum := 0
		for i := range rounds {
			for len(poll(b)) == 0 {
				fds := []unix.PollFd{{Fd: int32(b.FD()), Events: unix.POLLIN}}
				_, _ = unix.Poll(fds, -1)
				sum++
			}
			send(b, home, uint64(i), 8)
		}
		done <- sum
	}()
	for i := range rounds {
		send(a, to, uint64(i), 8)
		if i%2 == 0 {
			runtime.Gosched()
		}
		await(a, 1)
	}
	if sum := <-done; sum == 0 {
		t.Error("the receiver never slept")
	}
}

// TestFD_onlyWaitersAreRung spins: no system call is made for it.
func TestFD_onlyWaitersAreRung(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	to := resolve(t, a, b.Local())
	send(a, to, 0, 8) // rings, because b may have slept when a came
	await(b, 1)
	b.FD() // quiet again
	poll(b)
	for i := range 100 {
		send(a, to, uint64(i), 8)
		await(b, 1)
	}
	fds := []unix.PollFd{{Fd: int32(b.bell), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 0); n != 0 || err != nil {
		t.Errorf("somebody rang: %d, %v", n, err)
	}
}

func TestClose_leavesNothing(t *testing.T) {
	arena, file := newArena(t, 16<<20), newArena(t, 16<<20)
	room := arena.Room()
	copy(arena.Bytes()[8<<20:], "what was in the arena")
	files := 0
	local := loopback
	var used []netip.AddrPort
	for round := range 3 {
		a, err := Open(Config{Arena: arena, Local: local})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open(Config{Arena: file, Local: loopback})
		if err != nil {
			t.Fatal(err)
		}
		local = a.Local() // the port is free again, too
		used = append(used, local, b.Local())
		send(a, resolve(t, a, b.Local()), 1, 100)
		send(b, resolve(t, b, a.Local()), 2, 100)
		resolve(t, a, netip.MustParseAddrPort("127.0.0.1:1"))
		if err := errors.Join(a.Close(), b.Close(), a.Close()); err != nil {
			t.Error(err)
		}
		if round == 0 {
			files = testenv.OpenFiles(t) // with those of the runtime's poller, which stay
		}
	}
	if now := arena.Room(); now != room {
		t.Errorf("%d bytes of the arena are missing", room-now)
	}
	if got := string(arena.At(8<<20, 21)); got != "what was in the arena" {
		t.Errorf("the arena holds %q", got)
	}
	if now := testenv.OpenFiles(t); now != files {
		t.Errorf("%d files are open, there were %d", now, files)
	}
	table, err := os.ReadFile("/proc/net/unix") // other tests have names in it, too
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range used {
		if strings.Contains(string(table), "@xwarp-shm/"+addr.String()+"\n") {
			t.Errorf("the name of %v is left", addr)
		}
	}
}

func TestAllocs_sendRecv(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	to := resolve(t, a, b.Local())
	tx, rx := fabric.NewBatch(8, 1), fabric.NewBatch(8, 1)
	n := testing.AllocsPerRun(1000, func() {
		tx.Reset()
		for i := range 8 {
			f, _ := a.Frame()
			tx.Pkts = append(tx.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: 1000, To: to})
			tx.Descs = append(tx.Descs, fabric.Desc{Addr: f, Len: 1000})
		}
		a.Send(tx)
		a.Flush()
		b.Recv(rx)
		b.Release(rx)
		b.FD()
	})
	if n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}
