// Package testbed makes hosts on one machine: network namespaces joined by a
// cable or a switch, with real Ethernet devices, addresses and MTU, for tests
// and for `--testbed` of the tools. It needs root.
//
// Nothing is left behind. A testbed has a janitor, a small process of its own
// that removes the namespaces and kills what runs in them as soon as the owner
// closes the testbed or dies in any way, kill -9 included. The janitor is the
// same program executed again; package initialisation recognises it by its
// argv[0] (see janitor.go), so it works from every binary that links this
// package, test binaries included, and needs no hook in main or TestMain.
// [Clean] removes what is left when the janitor was killed as well.
package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/xwarp/xwarp/internal/job/proc"
	"golang.org/x/sys/unix"
)

// Switch is what joins the hosts.
type Switch int

const (
	// Auto is Cable for two hosts. For any other number it is XDP, and Bridge
	// where the kernel cannot do that.
	Auto Switch = iota
	// Cable is one veth pair between exactly two hosts.
	Cable
	// Bridge is the kernel's bridge in a namespace of its own. It adds 1.4 us
	// to the way of a small AF_XDP frame.
	Bridge
	// XDP is our redirect program in a namespace of its own, in front of a
	// bridge that floods what is for a group. It adds 0.4 us,
	// but it cannot forward packets above the MTU, and without segmentation
	// offload kernel TCP has less than half the bandwidth of a bridge.
	XDP
)

var switchNames = [...]string{Auto: "auto", Cable: "cable", Bridge: "bridge", XDP: "xdp"}

// String returns the name of s.
func (s Switch) String() string {
	if s < 0 || int(s) >= len(switchNames) {
		return "switch " + strconv.Itoa(int(s))
	}
	return switchNames[s]
}

// ParseSwitch returns the switch with this name.
func ParseSwitch(name string) (Switch, error) {
	if i := slices.Index(switchNames[:], name); i >= 0 {
		return Switch(i), nil
	}
	return Auto, &ConfigError{"Switch", strconv.Quote(name), "auto, cable, bridge or xdp"}
}

// Limits of a Config.
const (
	MaxHosts = 250
	MinMTU   = 576
	MaxMTU   = 65535

	MaxQueues = 1026 // 32 by 32, and two

	minMTU6 = 1280 // RFC 8200, section 5
)

// Config describes a testbed. The zero value is two hosts and a cable.
type Config struct {
	// Hosts is the number of hosts, 1 to MaxHosts. Default 2.
	Hosts int
	// MTU is the largest IP packet of every device in bytes, MinMTU to
	// MaxMTU. Default 9000.
	MTU int
	// Second gives every host a second device, SecondDevice, on a network of its own:
	// Host.Second. It takes a Cable.
	Second bool
	// Queues is how many queues every device has each way, 1 to MaxQueues.
	// Default 1.
	Queues int
	// Name tells testbeds of one process apart; the namespaces are called
	// xwarp-<pid>-<start>-<Name>-h0 and so on. Up to 16 lower-case letters
	// and digits. Default a number.
	Name string
	// Switch joins the hosts. Default Auto.
	Switch Switch
	// IPv6 gives the hosts addresses of IPv6 instead of IPv4. Default: IPv4.
	IPv6 bool
}

// ErrPermission says that the process may not make network namespaces.
var ErrPermission = errors.New("testbed: making network namespaces needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): use sudo, or do without a testbed")

// ConfigError is a setting that New cannot work with.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("testbed: %s is %v: want %s", e.Field, e.Value, e.Want)
}

// Testbed is a set of hosts. Its fields are for reading.
type Testbed struct {
	// Name is the common beginning of the names of the namespaces.
	Name string
	// Hosts are the hosts by number.
	Hosts []*Host
	// Switch is what joins them: never Auto.
	Switch Switch
	// MTU is the MTU of every device, Queues the number of its queues each way.
	MTU, Queues int

	ipv6    bool
	second  bool
	janitor *janitor
	fabric  closer // the switch, when it needs the process; or nil
}

type closer interface{ Close() error }

var labelSyntax = regexp.MustCompile(`^[a-z0-9]{1,16}$`)

func (c Config) withDefaults() (Config, error) {
	c.Hosts = cmp.Or(c.Hosts, 2)
	c.MTU = cmp.Or(c.MTU, 9000)
	c.Queues = cmp.Or(c.Queues, 1)
	if c.Switch == Auto && c.Hosts == 2 {
		c.Switch = Cable
	}
	switch {
	case c.Hosts < 1 || c.Hosts > MaxHosts:
		return c, &ConfigError{"Hosts", c.Hosts, fmt.Sprintf("1 to %d", MaxHosts)}
	case c.MTU < MinMTU || c.MTU > MaxMTU:
		return c, &ConfigError{"MTU", c.MTU, fmt.Sprintf("%d to %d bytes", MinMTU, MaxMTU)}
	case c.IPv6 && c.MTU < minMTU6:
		return c, &ConfigError{"MTU", c.MTU, fmt.Sprintf("%d bytes at least, as IPv6 has it", minMTU6)}
	case c.Queues < 1 || c.Queues > MaxQueues:
		return c, &ConfigError{"Queues", c.Queues, fmt.Sprintf("1 to %d", MaxQueues)}
	case c.Name != "" && !labelSyntax.MatchString(c.Name):
		return c, &ConfigError{"Name", strconv.Quote(c.Name), "1 to 16 lower-case letters and digits"}
	case c.Switch < Auto || c.Switch > XDP:
		return c, &ConfigError{"Switch", int(c.Switch), "Auto, Cable, Bridge or XDP"}
	case c.Switch == Cable && c.Hosts != 2:
		return c, &ConfigError{"Hosts", c.Hosts, "2 with a cable"}
	case c.Second && c.Switch != Cable:
		return c, &ConfigError{"Second", c.Second, "a cable, and two hosts"}
	}
	return c, nil
}

// New makes a testbed whose links are up. It returns a *ConfigError, an error
// that wraps ErrPermission, or what the kernel said. The caller closes the
// testbed.
func New(config Config) (*Testbed, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if config.Switch != Auto {
		return newTestbed(config)
	}
	config.Switch = XDP
	t, err := newTestbed(config)
	if err == nil || errors.Is(err, ErrPermission) {
		return t, err
	}
	config.Switch = Bridge
	return newTestbed(config)
}

func newTestbed(config Config) (*Testbed, error) {
	self, err := ownerOf(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("testbed: %w", err)
	}
	if err := prepareNetnsDir(); err != nil {
		return nil, permission(err)
	}
	j, err := startJanitor(self, config.Name)
	if err != nil {
		return nil, fmt.Errorf("testbed: starting the janitor: %w", err)
	}
	t := &Testbed{Name: j.prefix, Switch: config.Switch, MTU: config.MTU, Queues: config.Queues, ipv6: config.IPv6, second: config.Second, janitor: j}
	if err := t.build(config.Hosts); err != nil {
		return nil, errors.Join(permission(err), t.Close())
	}
	return t, nil
}

func (t *Testbed) build(hosts int) error {
	for i := range hosts {
		h, err := newHost(t.Name, i, t.ipv6)
		if err != nil {
			return err
		}
		t.Hosts = append(t.Hosts, h)
	}
	var err error
	switch t.Switch {
	case Cable:
		err = t.plugCable(t.Hosts[0], t.Hosts[1])
	case Bridge:
		err = t.plugBridge()
	case XDP:
		t.fabric, err = t.plugXDP()
	}
	if err != nil {
		return err
	}
	nics := slices.Clone(t.Hosts)
	if t.second {
		for _, h := range t.Hosts {
			h.Second = h.beside(t.ipv6)
			nics = append(nics, h.Second)
		}
		if err := t.plugCable(t.Hosts[0].Second, t.Hosts[1].Second); err != nil {
			return err
		}
	}
	for _, h := range nics {
		if err := h.configure(t.MTU); err != nil {
			return err
		}
	}
	for _, h := range nics {
		if err := h.awaitLink(); err != nil {
			return err
		}
	}
	return nil
}

// Signal sends a signal to what runs in the namespaces of t, other than this process and those
// that t needs itself. SIGSTOP and SIGCONT make them give the processors to others for a while.
func (t *Testbed) Signal(signal unix.Signal) error {
	var names []string
	for _, h := range t.Hosts {
		names = append(names, h.Name)
	}
	var errs []error
	in := isIn(names)
	for _, pid := range proc.That(in) {
		errs = append(errs, proc.SignalIf(pid, signal, in))
	}
	return errors.Join(errs...)
}

// Close kills what runs in the namespaces of t, other than this process, and
// removes them. Closing twice is harmless.
func (t *Testbed) Close() error {
	if t.janitor == nil {
		return nil
	}
	var errs []error
	if t.fabric != nil {
		errs = append(errs, t.fabric.Close())
	}
	for _, h := range t.Hosts {
		h.close()
	}
	errs = append(errs, t.janitor.dismiss())
	t.janitor = nil
	return errors.Join(errs...)
}

// hostAddr returns the address of host i on network 0 or 1, that of the second devices, and
// that network. Testbeds do not see each other, so all use the same ones.
func hostAddr(network byte, i int, ipv6 bool) netip.Prefix {
	if ipv6 {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: 87 + network, 15: byte(i + 1)}), 64)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 87 + network, 0, byte(i + 1)}), 24)
}

// hostMAC returns the address of the device of host i on a network, locally administered.
func hostMAC(network byte, i int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 'x', 'w', 0, network, byte(i + 1)}
}
