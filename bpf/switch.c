//go:build ignore

// SPDX-License-Identifier: Apache-2.0
/*
 * The fast path of an Ethernet switch for testbeds on veth: it runs on the
 * switch's end of every pair and hands frames for known stations to their
 * pairs. Stations are written into the table by user space. Everything else
 * goes on to the bridge that the pairs are ports of: flooding from here loses
 * frames that do not fit a page (Linux 6.18).
 */
#include "kernel.h"

#define PORTS_MAX 256

enum counter {
	FORWARDED,
	PASSED,
	MALFORMED,
	COUNTERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* Ports by interface index. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct mac {
	__u8 byte[6];
};

/* The interface index behind which a station is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS_MAX);
	__type(key, struct mac);
	__type(value, __u32);
} stations SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		(*n)++;
}

SEC("xdp.frags")
int l2switch(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end) {
		count(MALFORMED);
		return XDP_DROP;
	}

	struct mac to;

	__builtin_memcpy(&to, eth->dest, sizeof(to));

	__u32 *port = bpf_map_lookup_elem(&stations, &to);

	if (port) {
		count(FORWARDED);
		return bpf_redirect_map(&ports, *port, XDP_DROP);
	}
	count(PASSED); /* broadcast, multicast, unknown */
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
