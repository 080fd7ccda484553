package bench

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for _, c := range []struct {
		list string
		want []int
	}{
		{"8", []int{8}},
		{"0", []int{0}},
		{"8,64,4K,1M", []int{8, 64, 4096, 1 << 20}},
		{"8:64", []int{8, 16, 32, 64}},
		{"3:13", []int{3, 6, 12}},
		{"1, 2k , 2m", []int{1, 2048, 2 << 20}},
		{"64M", []int{64 << 20}},
		{"1MB,1MiB,1mb", []int{1 << 20, 1 << 20, 1 << 20}},
		{"64KB,2KiB,1 kB,8B", []int{64 << 10, 2 << 10, 1 << 10, 8}},
		{"8B:1KB", []int{8, 16, 32, 64, 128, 256, 512, 1024}},
		{"1,4:8", []int{1, 4, 8}},
	} {
		got, err := ParseSizes(c.list)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v; want %v", c.list, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "x", "-1", "8,", "1G", "65M", "0:8", "8:4", "K", "MB", "B", "65MB", "1GB", "1BB", "1iB", "1.5", "9999999999999999999"} {
		if got, err := ParseSizes(bad); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: got %v, %v; want a usage error", bad, got, err)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, s := range []string{"8", "8:4M", "1,2K,3M", "0:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		sizes, err := ParseSizes(list)
		if err == nil && len(sizes) == 0 {
			t.Fatal("no error and no sizes")
		}
		for _, n := range sizes {
			if n < 0 || n > MaxSize {
				t.Fatalf("size %d", n)
			}
		}
	})
}

func TestSpec_defaults(t *testing.T) {
	s := Spec{Test: "send_lat"}
	if err := errors.Join(s.Check(), s.Complete(1500)); err != nil {
		t.Fatal(err)
	}
	if s.Transport != "rd" || s.Fabric != "xdp" || s.MTU != 1500 || s.Window != 64 || len(s.Sizes) == 0 {
		t.Errorf("got %+v", s)
	}
	if s := (Spec{Test: "send_lat", Fabric: "tcp"}); s.Check() != nil || s.Transport != "rc" {
		t.Errorf("what tcp carries is rc: got %+v", s)
	}
	for _, c := range Cases() {
		for _, fabric := range Fabrics() {
			s := Spec{Test: c.Name, Fabric: fabric}
			if s.Check() != nil {
				continue // not every family runs on every fabric
			}
			if err := s.Complete(9000); err != nil {
				t.Errorf("default sizes of %s over %s: %v", c.Name, fabric, err)
			}
		}
	}
}

func TestSpec_collective(t *testing.T) {
	s := Spec{Test: MPIPrefix + "bcast"}
	if err := s.Check(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "no two ends") {
		t.Errorf("a collective is no test of two ends: %v", err)
	}
}

func TestSpec_errors(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Spec
		want string // part of the message
	}{
		{"unknown test", Spec{Test: "lat"}, "the tests are raw_lat"},
		{"unknown fabric", Spec{Test: "raw_lat", Fabric: "dpdk"}, "the fabrics are xdp"},
		{"raw with transport", Spec{Test: "raw_lat", Transport: "rd"}, "leave --transport away"},
		{"unknown transport", Spec{Test: "send_lat", Transport: "xx"}, "the transports are"},
		{"write over ud", Spec{Test: "write_bw", Transport: "ud"}, "use --transport rd, or write_record_lat"},
		{"read over ud", Spec{Test: "read_lat", Transport: "ud"}, "nobody would ask again"},
		{"atomic over ud", Spec{Test: "atomic_lat", Transport: "ud"}, "exactly once"},
		{"atomic of another size", Spec{Test: "atomic_lat", Sizes: []int{16}}, "8 to 8 bytes"},
		{"unknown operation", Spec{Test: "atomic_lat", Op: "xor"}, "the operations are fetch_add, cmp_swap, swap"},
		{"operation of another test", Spec{Test: "send_lat", Op: "fetch_add"}, "--op is for atomic_lat"},
		{"peers", Spec{Test: "send_rate", Peers: MaxPeers + 1}, "peers 129"},
		{"peers of another test", Spec{Test: "send_bw", Peers: 2}, "--peers is for send_rate"},
		{"write of nothing", Spec{Test: "write_lat", Sizes: []int{0}}, "last byte"},
		{"all sizes and one", Spec{Test: "send_lat", All: true, Sizes: []int{8}}, "give one of them"},
		{"datagrams over tcp", Spec{Test: "send_lat", Transport: "rd", Fabric: "tcp"}, "use --transport rc"},
		{"hybrid without MPI", Spec{Test: "send_lat", Transport: "hybrid"}, "use rd or rc"},
		{"hybrid without datagrams", Spec{Test: "mpi_lat", Transport: "hybrid", Fabric: "tcp"}, "use --transport rc"},
		{"CRC under MPI", Spec{Test: "mpi_lat", Transport: "rc", CRC: true}, "MPI connects without"},
		{"record over rc", Spec{Test: "write_record_lat", Transport: "rc"}, "use write_lat"},
		{"rc over shared memory", Spec{Test: "send_lat", Transport: "rc", Fabric: "shm"}, "use --fabric tcp"},
		{"rc with loss", Spec{Test: "send_lat", Transport: "rc", Loss: 0.1}, "--loss is for datagrams"},
		{"CRC of datagrams", Spec{Test: "send_lat", CRC: true}, "for --transport rc"},
		{"markers of a socket", Spec{Test: "raw_lat", Fabric: "tcp", Markers: true}, "leave --crc and --markers away"},
		{"small MTU", Spec{Test: "raw_lat", MTU: 100}, "1280 to 65535"},
		{"large MTU", Spec{Test: "raw_lat", MTU: 70000}, "1280 to 65535"},
		{"window", Spec{Test: "raw_bw", Window: MaxWindow + 1}, "window"},
		{"iters", Spec{Test: "raw_bw", Iters: -1}, "iters"},
		{"warmup", Spec{Test: "raw_bw", Warmup: -2}, "warmup"},
		{"loss", Spec{Test: "raw_bw", Loss: 1}, "loss"},
		{"raw over shared memory", Spec{Test: "raw_lat", Fabric: "shm"}, "there are neither"},
		{"loss of a stream", Spec{Test: "raw_bw", Fabric: "tcp", Loss: 0.1}, "lost on purpose"},
		{"loss that is no number", Spec{Test: "raw_bw", Loss: math.NaN()}, "loss"},
		{"size", Spec{Test: "mpi_bw", Sizes: []int{MaxSize + 1}}, "size"},
		{"frame too large", Spec{Test: "raw_bw", Sizes: []int{9015}}, "60 to 9014"},
		{"frame too small", Spec{Test: "raw_lat", Sizes: []int{8}}, "one Ethernet frame"},
		{"datagram too large", Spec{Test: "raw_bw", Fabric: "udp", Sizes: []int{65508}}, "one datagram"},
	} {
		err := errors.Join(c.spec.Check(), c.spec.Complete(9000))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want a usage error with %q", c.name, err, c.want)
		}
	}
}

func TestSpec_all(t *testing.T) {
	for _, c := range []struct {
		spec   Spec
		n      int
		lo, hi int
	}{
		{Spec{Test: "write_bw", All: true}, 24, 1, 8 << 20},
		{Spec{Test: "raw_bw", All: true}, 8, 64, 8192},
		{Spec{Test: "raw_lat", Fabric: "udp", All: true}, 13, 8, 32 << 10},
		{Spec{Test: "atomic_lat", All: true}, 1, 8, 8},
	} {
		if err := errors.Join(c.spec.Check(), c.spec.Complete(9000)); err != nil {
			t.Fatal(err)
		}
		if s := c.spec.Sizes; len(s) != c.n || s[0] != c.lo || s[c.n-1] != c.hi || !c.spec.Clip {
			t.Errorf("%s: %v", c.spec.Test, s)
		}
		// The server gets the complete one.
		if err := errors.Join(c.spec.Check(), c.spec.Complete(9000)); err != nil || len(c.spec.Sizes) != c.n {
			t.Errorf("%s again: %v, %v", c.spec.Test, err, c.spec.Sizes)
		}
	}
}

func TestSpec_burst(t *testing.T) {
	s := Spec{Window: 64, Iters: 100, Warmup: -1}
	if b := s.burst(Bandwidth, 8, false); b.Iters != 128 || b.Warmup != 64 {
		t.Errorf("a stream counts in windows: got %+v", b)
	}
	if b := s.burst(PingPong, 8, false); b.Iters != 100 || b.Warmup != 10 {
		t.Errorf("a ping-pong does not: got %+v", b)
	}
	s.Peers = 8
	if b := s.burst(Rate, 8, false); b.Iters != 512 || b.Warmup != 512 {
		t.Errorf("each peer gets whole windows: got %+v", b)
	}
	s = Spec{Window: MaxWindow, Warmup: MaxIters, Iters: MaxIters, Peers: MaxPeers}
	for _, kind := range []Kind{PingPong, Bandwidth, Rate} {
		for _, size := range []int{0, 8, MaxSize} {
			if err := s.burst(kind, size, false).check(); err != nil {
				t.Error(err)
			}
			if b := (&Spec{Window: 1, Warmup: -1}).burst(kind, size, true); b.check() != nil {
				t.Errorf("default burst %+v", b)
			}
		}
	}
}
