package bpf_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

func loadSwitch(t *testing.T, mode bpf.Mode) *bpf.Switch {
	t.Helper()
	s, err := bpf.LoadSwitch(mode)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, s)
	return s
}

func TestSwitch_addPortErrors(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	h := tb.Hosts[0]
	onDevice(t, h, func(ifindex int) error {
		s := loadSwitch(t, bpf.Auto)
		for _, mac := range []net.HardwareAddr{nil, {1, 2, 3, 4, 5, 6}, {2, 0, 0, 0, 0, 0, 0, 1}} {
			if err := s.AddPort(ifindex, mac); err == nil || !strings.Contains(err.Error(), "not the address of a station") {
				t.Errorf("address %v: %v", mac, err)
			}
		}
		if err := s.AddPort(ifindex+100, h.MAC); err == nil {
			t.Error("an interface that does not exist became a port")
		}
		if err := s.AddPort(ifindex, h.MAC); err != nil {
			return err
		}
		if err := s.AddPort(ifindex, h.MAC); err == nil || !strings.Contains(err.Error(), "port of the switch already") {
			t.Errorf("the same port again: %v", err)
		}
		var other *bpf.AttachedError
		if err := loadSwitch(t, bpf.Generic).AddPort(ifindex, h.MAC); !errors.As(err, &other) {
			t.Errorf("a second switch on the port: %v", err)
		}
		return nil
	})
}

// A frame from host to host crosses the switch once, a broadcast reaches all
// others, and Close takes the switch off its ports.
func TestSwitch_forwardsAndFloods(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{Hosts: 3, Switch: testbed.XDP})
	from := socketOn(t, tb.Hosts[0])
	var to []int
	for _, h := range tb.Hosts {
		to = append(to, socketOn(t, h))
	}
	const unicast, broadcast = "to host 2", "to everyone"
	send(t, from, frameFor(tb.Hosts[0].MAC, tb.Hosts[2].MAC, unicast))
	if got := next(t, to[2]); got != unicast {
		t.Errorf("host 2 got %q", got)
	}
	send(t, from, frameFor(tb.Hosts[0].MAC, net.HardwareAddr{255, 255, 255, 255, 255, 255}, broadcast))
	for i := 1; i < 3; i++ { // host 1 must not have seen the unicast frame
		if got := next(t, to[i]); got != broadcast {
			t.Errorf("host %d got %q", i, got)
		}
	}
	send(t, from, frameFor(tb.Hosts[0].MAC, net.HardwareAddr{2, 9, 9, 9, 9, 9}, "unknown station"))
	for i := 1; i < 3; i++ {
		if got := next(t, to[i]); got != "unknown station" {
			t.Errorf("host %d got %q", i, got)
		}
	}
}

// etherType of the frames of these tests: local experimental (IEEE 802).
const etherType = 0x88b5

func frameFor(from, to net.HardwareAddr, text string) []byte {
	b := append(append([]byte{}, to...), from...)
	b = append(b, etherType>>8, etherType&0xff, byte(len(text)))
	return append(append(b, text...), make([]byte, 60)...)
}

func socketOn(t *testing.T, h *testbed.Host) (fd int) {
	t.Helper()
	const bigEndianType = etherType&0xff<<8 | etherType>>8
	onDevice(t, h, func(ifindex int) (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, bigEndianType); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndianType, Ifindex: ifindex})
	})
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func send(t *testing.T, fd int, frame []byte) {
	t.Helper()
	if _, err := unix.Write(fd, frame); err != nil {
		t.Fatal(err)
	}
}

// next waits for a frame and returns its text.
func next(t *testing.T, fd int) string {
	t.Helper()
	b := make([]byte, 2048)
	n, err := unix.Read(fd, b)
	if err != nil || n < 15 || n < 15+int(b[14]) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	return string(b[15 : 15+b[14]])
}
