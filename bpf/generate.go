package bpf

// The objects are committed, so that building needs no C compiler. Changing
// them needs clang-14 and libbpf's headers (Debian: clang-14 libbpf-dev).

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-14 -target bpfel,bpfeb -cflags "-O2 -g -Wall -Wextra -Werror" steer steer.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-14 -target bpfel,bpfeb -cflags "-O2 -g -Wall -Wextra -Werror" l2switch switch.c
