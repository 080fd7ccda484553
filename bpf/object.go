package bpf

import (
	"bytes"
	"embed"
	"encoding/binary"

	"github.com/cilium/ebpf"
)

// The objects are committed, so that building needs no C compiler. Changing
// them needs clang-14, llvm-14 and libbpf's headers (Debian: libbpf-dev).

//go:generate -command clang clang-14 -mcpu=v1 -O2 -g -Wall -Wextra -Werror -fno-ident -fdebug-compilation-dir . -c
//go:generate clang ./steer.c -target bpfel -o steer_bpfel.o
//go:generate clang ./steer.c -target bpfeb -o steer_bpfeb.o
//go:generate clang ./switch.c -target bpfel -o switch_bpfel.o
//go:generate clang ./switch.c -target bpfeb -o switch_bpfeb.o
//go:generate llvm-strip-14 -g steer_bpfel.o steer_bpfeb.o switch_bpfel.o switch_bpfeb.o

// objects are the compiled programs, for processors of either byte order.
//
//go:embed *.o
var objects embed.FS

// object returns what was compiled of a program.
func object(name string) (*ebpf.CollectionSpec, error) {
	order := "bpfel"
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		order = "bpfeb"
	}
	b, err := objects.ReadFile(name + "_" + order + ".o")
	if err != nil {
		return nil, err
	}
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(b))
}
