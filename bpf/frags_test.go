package bpf

import (
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// inNewNetns runs fn on a thread with a network namespace of its own, which
// goes with the thread.
func inNewNetns(t *testing.T, fn func() error) {
	t.Helper()
	testenv.NeedRoot(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // without Unlock: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What happens on a kernel or with a driver that has no XDP multi-buffer: a
// program without frags meets jumbo frames.
func TestAttach_jumboFramesWithoutFrags(t *testing.T) {
	inNewNetns(t, func() error {
		veth := netlink.NewVeth(netlink.LinkAttrs{Name: "a", MTU: 9000})
		veth.PeerName = "b"
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		link, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		p := &Program{}
		if err := p.load(Config{PortBase: testPort, Slots: 1, Queues: 1}); err != nil {
			return err
		}
		defer p.Close()
		if p.Frags() {
			t.Error("Frags reports what was not asked for")
		}
		if _, err := p.Attach(link.Attrs().Index, Driver); err == nil || !strings.Contains(err.Error(), "MTU (here 9000") {
			t.Errorf("driver mode: %v", err)
		}
		mode, err := p.Attach(link.Attrs().Index, Auto)
		if err != nil || mode != Generic {
			t.Errorf("auto: %v, %v", mode, err)
		}
		return nil
	})
}
