package main

import (
	"bufio"
	"bytes"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asHostile makes the test binary a rank that, if it is an odd one, writes nonsense
// wherever it can: to all descriptors that it has inherited, and to all memory that it
// shares with others. The arguments are a seed, how often it tries, and
// the beginning of the name of a file that says how often it has, or "".
const asHostile = "as-hostile-rank"

// dataLimitEnv is how many bytes of private memory processes that the test binary starts
// as xrun may have.
const dataLimitEnv = "XWARP_TEST_DATA_LIMIT"

// limitData obeys dataLimitEnv.
func limitData() {
	if n, err := strconv.ParseUint(os.Getenv(dataLimitEnv), 10, 64); err == nil {
		_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: n, Max: n})
	}
}

func hostileMain() error {
	rank, err := strconv.Atoi(os.Getenv("XWARP_RANK"))
	if err != nil {
		return err
	}
	if rank%2 == 0 {
		return onWorld(func(w *mpi.Comm) error { return busyMain(w, len(os.Args) > 5) })()
	}
	seed, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		return err
	}
	tries, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	h := &vandal{rng: rand.New(rand.NewPCG(seed, uint64(rank))), talks: seed%3 == 0}
	h.inherit() // before it has files of its own
	if name := os.Args[4]; name != "" {
		if h.tried, err = os.OpenFile(name+os.Getenv("XWARP_RANK"), os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if h.self, err = os.OpenFile("/proc/self/mem", os.O_RDWR, 0); err != nil {
		return err
	}
	ready := make(chan struct{})
	go func() { // what it maps as a rank is there to be torn up, too
		if len(os.Args) > 5 || h.rng.IntN(4) > 0 {
			_, _ = mpi.Init()
		}
		close(ready)
	}()
	<-ready
	h.findMemory()
	for i := range tries {
		if h.try(); i%10 == 9 {
			_, _ = h.tried.WriteAt(fmt.Appendf(nil, "%10d", i+1), 0)
		}
	}
	os.Exit(3)
	return nil
}

// busyMain exchanges messages with the other even ranks: without end, or careful: a few
// thousand, which it looks at.
func busyMain(w *mpi.Comm, careful bool) error {
	out, in := make([]byte, 1<<16), make([]byte, 1<<16)
	for round := 1; !careful || round <= 4000; round++ {
		n := 1 + round*97%len(out)
		fillWith(out[:n], round+w.Rank())
		to, from := (w.Rank()+2)%w.Size(), (w.Rank()+w.Size()-2)%w.Size()
		if _, err := mpi.Sendrecv(w, out[:n], to, 1, in[:n], from, 1); err != nil {
			return err
		}
		if !careful {
			continue
		}
		if fillWith(out[:n], round+from); !bytes.Equal(in[:n], out[:n]) {
			return fmt.Errorf("%d bytes are not what rank %d has sent", n, from)
		}
	}
	fmt.Println("intact")
	_, _ = mpi.Sendrecv(w, out[:1], (w.Rank()+2)%w.Size(), 1, in[:1], (w.Rank()+2)%w.Size(), 1) // the other has it all
	os.Exit(0)                                                                                  // Finalize would wait for the odd ones
	return nil
}

// vandal is what a hostile rank has.
type vandal struct {
	rng   *rand.Rand
	talks bool      // to the launcher, which ends the job for most of that
	tried *os.File  // says how often it has tried
	fds   []int     // that it has inherited
	maps  []mapping // that it shares with others
	self  *os.File  // all of its memory
}

// inherit keeps the descriptors from the library, which closes some.
func (v *vandal) inherit() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 100); err == nil {
			_ = unix.SetNonblock(own, true)
			v.fds = append(v.fds, own)
		}
	}
}

// findMemory finds all memory that others have, too, and maps what it could have mapped.
func (v *vandal) findMemory() {
	for _, fd := range v.fds {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Size > 0 {
			_, _ = unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		for _, ring := range []int64{unix.XDP_PGOFF_RX_RING, unix.XDP_PGOFF_TX_RING, unix.XDP_UMEM_PGOFF_FILL_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING} {
			for size := 1 << 20; size >= 4096; size /= 2 { // the largest that there is
				if _, err := unix.Mmap(fd, ring, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
					break
				}
			}
		}
	}
	text, _ := os.ReadFile("/proc/self/maps")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var m mapping
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &m.from, &m.to, &rights); n == 3 && rights == "rw-s" {
			v.maps = append(v.maps, m)
		}
	}
}

// mapping is a range of addresses of this process.
type mapping struct{ from, to int64 }

func (v *vandal) number() uint64 {
	switch v.rng.IntN(4) {
	case 0:
		return v.rng.Uint64()
	case 1:
		return uint64(v.rng.Uint32())
	case 2:
		return uint64(v.rng.IntN(1 << 14))
	}
	return 1<<v.rng.IntN(64) - uint64(v.rng.IntN(2))
}

func (v *vandal) try() {
	if len(v.maps) > 0 && v.rng.IntN(3) > 0 {
		v.scribble(v.maps[v.rng.IntN(len(v.maps))])
		return
	}
	fd, n := v.fds[v.rng.IntN(len(v.fds))], int64(v.number()>>1)
	switch v.rng.IntN(7 + 3) {
	case 0:
		_ = unix.Ftruncate(fd, n)
	case 1:
		_ = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, n&^4095, int64(v.number()>>1))
	case 2:
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, v.rng.IntN(64))
	case 3:
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(v.rng.IntN(8)), Len: int64(v.rng.IntN(3))}
		_ = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock)
	case 4:
		_ = unix.Shutdown(fd, v.rng.IntN(3))
	case 5:
		_ = unix.SetsockoptInt(fd, unix.SOL_XDP, v.rng.IntN(12), int(n))
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, v.rng.IntN(80), int(n))
	case 6:
		_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	default:
		if v.talks {
			v.say(fd)
		}
	}
}

// scribble writes numbers somewhere, most often where there are indices and tables.
func (v *vandal) scribble(m mapping) {
	at := v.rng.Int64N(m.to - m.from)
	if v.rng.IntN(2) == 0 {
		at = v.rng.Int64N(min(m.to-m.from, 1<<14))
	}
	var text []byte
	for range v.rng.IntN(64) {
		text = binary.LittleEndian.AppendUint64(text, v.number())
	}
	at &^= 7
	_, _ = v.self.WriteAt(text[:min(int64(len(text)), m.to-m.from-at)], m.from+at)
}

// say writes something that looks as if it were for the launcher.
func (v *vandal) say(fd int) {
	words := []string{
		`{"op":"hello","version":4}`, `{"op":"put","key":"k","value":"eA=="}`, `{"op":"fence"}`, `{"op":"state","value":"eA=="}`, `{"op":`, "\x00\xff",
		"cmd=init pmi_version=1 pmi_subversion=1", "cmd=init pmi_version=2 pmi_subversion=0", "cmd=put kvsname=k key=a value=b", "mcmd=spawn",
		"999999cmd=kvs-put;key=a;value=b;", "    14cmd=kvs-fence;", "-1    ", "cmd=get_maxes", "cmd=barrier_in",
	}
	text := []byte(words[v.rng.IntN(len(words))])
	if v.rng.IntN(2) == 0 {
		text[v.rng.IntN(len(text))] = byte(v.rng.Uint32())
	}
	if v.rng.IntN(8) == 0 {
		text = bytes.Repeat(text, 1+v.rng.IntN(1<<16))
	}
	_, _ = unix.Write(fd, append(text, '\n'))
}

// Root's agent outlives whatever ranks of another user do to what it shares with them. It
// does not grow, and the job ends with a cause that somebody can read.
func TestXrun_hostileRanks(t *testing.T) {
	testenv.NeedRoot(t)
	all, each, odd := 3000, 250, []string{"1", "3"}
	if os.Getenv("XWARP_LONG") == "1" {
		all = 10_000
	}
	count := filepath.Join(os.TempDir(), "xwarp-hostile-"+cryptorand.Text())
	for _, rank := range odd {
		t.Cleanup(func() { _ = os.Remove(count + rank) })
	}
	tried := 0
	for i := uint64(0); tried < all; i++ {
		for _, rank := range odd {
			if err := os.WriteFile(count+rank, []byte("0"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(count+rank, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		way := [][]string{
			{"--queues", "shared", "--stats"}, {"--queues", "shared", "-x", "XWARP_SHARED=0"},
			{"--queues", "steered", "--stats"}, {"--fabric", "udp", "--stats"},
		}[i%4]
		args := append([]string{"-n", "4", "--testbed", "2", "--user", "nobody", "--wdir", "/"}, way...)
		args = append(args, self, asHostile, fmt.Sprint(i), fmt.Sprint(each), count)
		cmd := command(args...)
		cmd.Env = append(cmd.Env, dataLimitEnv+"=1000000000")
		_, errOut, status := finish(t, cmd)
		cause := errOut[max(0, strings.LastIndex(errOut, "xrun: ")):] // a rank may have begun the line
		if status == 0 || !strings.Contains(cause, "rank ") ||
			strings.Contains(errOut, "lost its agent") || strings.Contains(errOut, "do not end") {
			t.Fatalf("%v: status %d, %s", args, status, errOut)
		}
		for _, rank := range odd {
			text, err := os.ReadFile(count + rank)
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			tried += n
		}
		t.Logf("%d tries: %s", tried, cause)
	}
}

// What a rank does to what it has is no concern of ranks that have a network card of
// their own, or sockets of the kernel.
func TestXrun_hostileNeighbours(t *testing.T) {
	testenv.NeedRoot(t)
	for name, way := range map[string][]string{
		"a card each":  {"--testbed", "4", "--queues", "shared"},
		"kernel's UDP": {"--testbed", "2", "--fabric", "udp", "-x", "XWARP_SHARED=0"},
	} {
		for seed := range 2 {
			args := slices.Concat([]string{"-n", "4", "--user", "nobody", "--wdir", "/", "--disable-auto-cleanup"}, way,
				[]string{self, asHostile, fmt.Sprint(3*seed + 1), "100000", "", "careful"})
			out, errOut, _ := xrun(t, args...)
			if strings.Count(out, "intact\n") != 2 {
				t.Errorf("%s: %v: %q, %s", name, args, out, errOut)
			}
		}
	}
}
