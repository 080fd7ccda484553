package footprint

import (
	"errors"
	"strings"
	"testing"
)

func TestHeap(t *testing.T) {
	for _, c := range []Config{
		{Carrier: Memory}, {Carrier: KernelTCP}, {Carrier: KernelTCP, Shared: true}, {Carrier: SimTCP}, {Carrier: SimTCP, Shared: true},
	} {
		c.Recvs = 64
		c.Peers = 1
		one, err := Heap(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		c.Peers = 200
		many, err := Heap(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		each := (many - one) / 199
		t.Logf("%v, shared receives %v: %d bytes with one peer, %d for each further one", c.Carrier, c.Shared, one, each)
		if each < 300 || each > 64<<10 {
			t.Errorf("%+v: %d bytes for each peer", c, each)
		}
	}
	if _, err := Heap(Config{}); err == nil {
		t.Error("no peers")
	}
}

func TestAddresses(t *testing.T) {
	n, err := Addresses(1000)
	if err != nil || n < 50_000 || n > 1000_000 {
		t.Errorf("1000 addresses take %d bytes: %v", n, err)
	}
}

func TestMostOverTCP(t *testing.T) {
	if n, err := MostOverTCP(); err != nil || n < 100 {
		t.Errorf("%d connections fit: %v", n, err)
	}
}

func TestObjects(t *testing.T) {
	const info = `slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>
TCPv6                 52     52   2496   13    8 : tunables    0    0    0 : slabdata      4      4      0
TCP                  130    182   2368   13    8 : tunables    0    0    0 : slabdata     14     14      0
filp                 813    882    192   21    1 : tunables    0    0    0 : slabdata     42     42      0
`
	if n, err := objects(strings.NewReader(info), []string{"TCP", "filp"}); err != nil || n != 2368+192 {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := objects(strings.NewReader(info), []string{"TCP", "dentry"}); !errors.Is(err, ErrNoSlabs) || !strings.Contains(err.Error(), "dentry") {
		t.Errorf("got %v", err)
	}
}
