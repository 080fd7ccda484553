package shm

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// victimEnv has the address that a victim sends to.
const victimEnv = "XWARP_TEST_VICTIM"

// victim sends as fast as it can until it is killed, with datagrams so large
// that death finds it inside of one.
func victim(to string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	arena, err := mem.New(mem.Config{Size: 16 << 20, SmallPages: true})
	fail(err)
	e, err := Open(Config{Arena: arena, Local: loopback, MTU: 65535, Peers: 2, Ring: 512 << 10})
	fail(err)
	p, err := e.Resolve(netip.MustParseAddrPort(to))
	fail(err)
	fmt.Println(e.Local())
	for n := uint64(0); ; n++ {
		send(e, p, n, 60000)
	}
}

// TestCrash kills senders in the middle of sending, one after the other, with
// fewer rings than there are victims. What arrives is whole, another sender
// is not disturbed, and every ring comes back.
func TestCrash(t *testing.T) {
	c := Config{Arena: newArena(t, 32<<20), MTU: 65535, Peers: 2, Ring: 512 << 10}
	rx, files := open(t, c), 0
	c.Arena = newArena(t, 32<<20)
	witness := open(t, c)
	to := resolve(t, witness, rx.Local())
	for round := range uint64(8) {
		v := exec.Command(os.Args[0])
		v.Env = append(os.Environ(), victimEnv+"="+rx.Local().String())
		v.Stderr = os.Stderr
		out, err := v.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("the victim says %q: %v", line, err)
		}
		from := netip.MustParseAddrPort(line[:len(line)-1])
		for n := uint64(0); n < 50+round; {
			for _, g := range poll(rx) {
				if !g.whole || g.size != 60000 || g.from != from {
					t.Fatalf("round %d: got %+v, victim is %v", round, g, from)
				}
				n++
			}
		}
		if err := v.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = v.Wait() // it was killed, and says so
		for len(rx.in) > 1 || rx.leaving || rx.seen != rx.changed.Load() {
			for _, g := range poll(rx) {
				if !g.whole || g.from != from {
					t.Fatalf("round %d: after its death %+v, victim is %v", round, g, from)
				}
			}
			runtime.Gosched()
		}
		send(witness, to, round, 30000)
		if g := await(rx, 1)[0]; g != (got{round, 30000, witness.Local(), true}) {
			t.Fatalf("round %d: the witness' datagram is %+v", round, g)
		}
		if now := testenv.OpenFiles(t); round == 0 {
			files = now
		} else if now != files {
			t.Errorf("round %d: %d files are open, there were %d", round, now, files)
		}
	}
	if st := rx.Stats(); st.RxMalformed != 0 {
		t.Errorf("a dead sender has left nonsense: %+v", st)
	}
}
