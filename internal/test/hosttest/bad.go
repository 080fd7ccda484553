package hosttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// BadTCP is a program at the way into a host that loses packets of TCP over IPv4, and has others come once more,
// behind those that wait by then. Packets of AF_XDP sockets do not pass it: internal/carrier/fault is for those.
type BadTCP struct {
	program *ebpf.Program
	done    *ebpf.Map
	link    link.Link
}

// From linux/bpf.h.
const (
	tcxNext     = -1 // TCX_NEXT
	tcxDrop     = 2  // TCX_DROP
	ingress     = 1  // BPF_F_INGRESS
	protocol    = 16 // offset in struct __sk_buff
	ipProtocol  = 23 // in a frame
	lost, later = 0, 1
)

// SpoilTCP attaches the program to the device of a host, with the probabilities that a packet is lost and that it
// comes later, until the test ends.
func SpoilTCP(t *testing.T, h *testbed.Host, loss, late float64) *BadTCP {
	t.Helper()
	b := &BadTCP{}
	testenv.Closing(t, b)
	err := b.attach(h, loss, late)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("Linux before 6.6: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *BadTCP) attach(h *testbed.Host, loss, late float64) error {
	return h.Do(func() error {
		dev, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		if err := netlink.LinkSetGSOMaxSegs(dev, 1); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		if b.done, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2}); err != nil {
			return err
		}
		count := func(which int64) asm.Instructions {
			name := fmt.Sprintf("counted %d", which)
			return asm.Instructions{
				asm.StoreImm(asm.R10, -4, which, asm.Word),
				asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, -4),
				asm.LoadMapPtr(asm.R1, b.done.FD()),
				asm.FnMapLookupElem.Call(),
				asm.JEq.Imm(asm.R0, 0, name),
				asm.Mov.Imm(asm.R1, 1),
				asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
				asm.Mov.Imm(asm.R1, int32(dev.Attrs().Index)).WithSymbol(name),
			}
		}
		const all = 1 << 31 // half of the random numbers, which a jump takes for positive
		code := asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1), // what LoadAbs reads
			asm.LoadMem(asm.R2, asm.R1, protocol, asm.Word),
			asm.HostTo(asm.BE, asm.R2, asm.Half),
			asm.JNE.Imm(asm.R2, unix.ETH_P_IP, "next"),
			asm.LoadAbs(ipProtocol, asm.Byte),
			asm.JNE.Imm(asm.R0, unix.IPPROTO_TCP, "next"),
			asm.FnGetPrandomU32.Call(),
			asm.RSh.Imm32(asm.R0, 1),
			asm.JLT.Imm(asm.R0, int32(loss*all), "lost"),
			asm.JLT.Imm(asm.R0, int32((loss+late)*all), "later"),
			asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
			asm.Return(),
		}
		drop, again := count(lost), count(later)
		drop[0], again[0] = drop[0].WithSymbol("lost"), again[0].WithSymbol("later")
		code = append(append(code, drop...), asm.Mov.Imm(asm.R0, tcxDrop), asm.Return())
		code = append(append(code, again...), asm.Mov.Imm(asm.R2, ingress), asm.FnRedirect.Call(), asm.Return())
		b.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "bad_tcp", Type: ebpf.SchedCLS, AttachType: ebpf.AttachTCXIngress, License: "Apache-2.0", Instructions: code,
		})
		if err != nil {
			return err
		}
		b.link, err = link.AttachTCX(link.TCXOptions{Interface: dev.Attrs().Index, Program: b.program, Attach: ebpf.AttachTCXIngress})
		return err
	})
}

// Done returns how many packets were lost, and how many came later.
func (b *BadTCP) Done() (n [2]uint64, err error) {
	for i := range n {
		err = errors.Join(err, b.done.Lookup(uint32(i), &n[i]))
	}
	return n, err
}

// Close takes the program away.
func (b *BadTCP) Close() error {
	var err error
	if b.link != nil {
		err = b.link.Close()
	}
	return errors.Join(err, b.program.Close(), b.done.Close())
}
