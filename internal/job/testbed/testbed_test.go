package testbed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

func open(t *testing.T, c Config) *Testbed {
	t.Helper()
	testenv.NeedRoot(t)
	tb, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := netnsNames(tb.Name); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return tb
}

func TestNew_rejectsBadConfig(t *testing.T) {
	for field, c := range map[string]Config{
		"Hosts":  {Hosts: MaxHosts + 1},
		"Hosts ": {Hosts: 3, Switch: Cable},
		"MTU":    {MTU: 100},
		"MTU ":   {MTU: MaxMTU + 1},
		"Name":   {Name: "no spaces"},
		"Switch": {Switch: 17},
	} {
		_, err := New(c)
		if ce, ok := errors.AsType[*ConfigError](err); !ok || ce.Field != strings.TrimSpace(field) {
			t.Errorf("New(%+v): %v, want a ConfigError about %s", c, err, field)
		}
	}
}

func TestNew_withoutRootSaysSo(t *testing.T) {
	if os.Getenv("XWARP_TEST_AS_NOBODY") != "" {
		_, err := New(Config{})
		if !errors.Is(err, ErrPermission) {
			t.Errorf("error %v, want ErrPermission", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		if _, err := New(Config{}); !errors.Is(err, ErrPermission) {
			t.Errorf("error %v, want ErrPermission", err)
		}
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNew_withoutRootSaysSo$", "-test.v")
	cmd.Env = append(os.Environ(), "XWARP_TEST_AS_NOBODY=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestNew_hostsReachEachOther(t *testing.T) {
	for _, c := range []Config{
		{},
		{MTU: 1500},
		{Switch: Bridge},
		{Hosts: 3, Switch: Bridge, MTU: 65535},
		{Switch: XDP},
		{Hosts: 4, MTU: 1500},
		{Hosts: 3, Switch: XDP, MTU: 65535},
		{Hosts: 1},
	} {
		t.Run(fmt.Sprintf("%d_%v_%d", c.Hosts, c.Switch, c.MTU), func(t *testing.T) {
			tb := open(t, c)
			for _, to := range tb.Hosts {
				for _, from := range tb.Hosts {
					exchange(t, from, to)
				}
			}
		})
	}
}

// exchange sends one UDP packet of the MTU's size.
func exchange(t *testing.T, from, to *Host) {
	t.Helper()
	var in, out *net.UDPConn
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(to.Do(func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: to.Addr.AsSlice()})
		return err
	}))
	defer in.Close()
	mtu := 0
	check(from.Do(func() (err error) {
		dev, err := net.InterfaceByName(from.Dev)
		if err != nil {
			return err
		}
		mtu = dev.MTU
		out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	}))
	defer out.Close()
	const headers = 20 + 8
	message := strings.Repeat("x", mtu-headers)
	_, err := out.Write([]byte(message))
	check(err)
	b := make([]byte, mtu)
	n, sender, err := in.ReadFromUDPAddrPort(b)
	check(err)
	if string(b[:n]) != message || sender.Addr().Unmap() != from.Addr {
		t.Errorf("%s received %d bytes from %v, want %d from %v", to.Name, n, sender, len(message), from.Addr)
	}
}

func TestNew_devicesAreAsDescribed(t *testing.T) {
	tb := open(t, Config{Hosts: 3, MTU: 4000})
	for _, h := range tb.Hosts {
		err := h.Do(func() error {
			for _, name := range []string{"lo", h.Dev} {
				link, err := netlink.LinkByName(name)
				if err != nil {
					return err
				}
				if link.Attrs().Flags&net.FlagUp == 0 {
					t.Errorf("%s: %s is down", h.Name, name)
				}
				if name == h.Dev && (link.Attrs().MTU != 4000 || link.Attrs().HardwareAddr.String() != h.MAC.String()) {
					t.Errorf("%s: %+v", h.Name, link.Attrs())
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNew_twoAtOnce(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	if a.Name == b.Name {
		t.Errorf("both are called %s", a.Name)
	}
	c := open(t, Config{Name: "named"})
	if _, err := New(Config{Name: "named"}); err == nil {
		t.Errorf("a second %s was made", c.Name)
	}
	exchange(t, c.Hosts[0], c.Hosts[1])
}

func TestClose_isForgiving(t *testing.T) {
	tb := open(t, Config{})
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	if err := tb.Hosts[0].Do(func() error { return nil }); err == nil {
		t.Error("Do works after Close")
	}
	if err := tb.Hosts[0].Start(exec.Command("true")); err == nil {
		t.Error("Start works after Close")
	}
}

func TestClose_withoutJanitor(t *testing.T) {
	tb := open(t, Config{})
	if err := tb.janitor.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
}

func TestParseSwitch(t *testing.T) {
	for s := Auto; s <= XDP; s++ {
		if got, err := ParseSwitch(s.String()); err != nil || got != s {
			t.Errorf("%v came back as %v, %v", s, got, err)
		}
	}
	var wrong *ConfigError
	if _, err := ParseSwitch("hub"); !errors.As(err, &wrong) || wrong.Field != "Switch" {
		t.Errorf("hub: %v", err)
	}
}
