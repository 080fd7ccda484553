package bpf_test

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// sendMarked sends datagrams to a host from a socket with a mark.
func sendMarked(to *testbed.Host, mark, n int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		return err
	}
	for range n {
		if err := unix.Sendto(fd, make([]byte, 2000), 0, &unix.SockaddrInet4{Port: 9, Addr: to.Addr.As4()}); err != nil {
			return err
		}
	}
	return nil
}

// TestBypass lets datagrams arrive at a veth: the XDP program there sees those without the mark only, and the host
// has all of them.
func TestBypass(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	from, to := tb.Hosts[0], tb.Hosts[1]
	var p *bpf.Program
	onDevice(t, to, func(ifindex int) error {
		p = load(t)
		_, err := p.Attach(ifindex, bpf.Generic)
		return err
	})
	received := func() (packets uint64) {
		onDevice(t, to, func(ifindex int) error {
			l, err := netlink.LinkByIndex(ifindex)
			if err == nil {
				packets = l.Attrs().Statistics.RxPackets
			}
			return err
		})
		return packets
	}
	// unseen returns how many of the packets that n datagrams with a mark are the program has not seen.
	unseen := func(mark, n int) uint64 {
		before, err := p.Counters()
		arrived := received()
		onDevice(t, from, func(int) error { return sendMarked(to, mark, n) })
		after, err2 := p.Counters()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		arrived = received() - arrived
		if arrived < uint64(n) {
			t.Fatalf("%d of %d datagrams have arrived", arrived, n)
		}
		return arrived - (after.Passed - before.Passed)
	}
	unseen(0, 1) // and ARP
	if got := unseen(bpf.BypassMark, 10); got != 0 {
		t.Errorf("without the bypass the program has not seen %d of 10 datagrams", got)
	}
	onDevice(t, from, func(ifindex int) error {
		b, err := bpf.AttachBypass(ifindex)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
			t.Skip("Linux before 6.6: ", err)
		}
		if err != nil {
			return err
		}
		defer func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}()
		if got := unseen(bpf.BypassMark, 10); got != 10 {
			t.Errorf("of 10 datagrams with the mark the program has not seen %d", got)
		}
		if got := unseen(0, 10); got != 0 {
			t.Errorf("of 10 datagrams without the mark the program has not seen %d", got)
		}
		return nil
	})
	if got := unseen(bpf.BypassMark, 10); got != 0 {
		t.Errorf("behind the end of the bypass the program has not seen %d of 10 datagrams", got)
	}
}
