package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Bypass is a program at the way out of a veth that has packets with BypassMark pass by an XDP
// program in generic mode at the other end of the pair. The kernel copies every packet for such a
// program, 64 KiB of a TCP stream like 64 bytes, unless it was redirected on its way: this program redirects it to
// the device that it is leaving through. The program at the other end would have passed these packets on.
type Bypass struct {
	program *ebpf.Program
	link    link.Link
}

// BypassMark is the mark (SO_MARK, socket(7)) of packets that take the bypass. They leave without it.
const BypassMark = 0x78777270

// From linux/bpf.h and linux/pkt_cls.h.
const (
	skBuffMark = 8  // offset of mark in struct __sk_buff
	tcxNext    = -1 // TCX_NEXT: what other programs of the device say counts
)

// AttachBypass loads the program and attaches it to a veth. It fails before Linux 6.6, and where Load
// does. The caller closes it; the kernel does when the process ends.
func AttachBypass(ifindex int) (*Bypass, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "bypass", Type: ebpf.SchedCLS, AttachType: ebpf.AttachTCXEgress, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, skBuffMark, asm.Word),
			asm.JNE.Imm(asm.R2, BypassMark, "next"),
			asm.Mov.Imm(asm.R2, 0), // it comes here once more
			asm.StoreMem(asm.R1, skBuffMark, asm.R2, asm.Word),
			asm.Mov.Imm(asm.R1, int32(ifindex)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, loadError("bypass", err)
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: ebpf.AttachTCXEgress})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bpf: cannot attach the bypass to interface %d: %w", ifindex, err), p.Close())
	}
	return &Bypass{p, l}, nil
}

// Close detaches the program and removes it from the kernel.
func (b *Bypass) Close() error { return errors.Join(detach(b.link), b.program.Close()) }
