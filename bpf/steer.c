//go:build ignore

// SPDX-License-Identifier: Apache-2.0
/*
 * Steers UDP datagrams, and TCP segments if it is told to, for our ports into
 * AF_XDP sockets. Everything else, and every packet for which there is no
 * socket, goes on to the kernel: ARP, ping, ssh and the like on the same
 * interface never notice us.
 */
#include "kernel.h"

/* Set by Load and constant from then on: the verifier folds them in. */
const volatile __u16 port_base; /* first UDP port, host byte order */
const volatile __u16 slots;     /* number of ports, one per socket and queue */
const volatile __u16 tcp_base;  /* first TCP port, host byte order */
const volatile __u16 tcp_ports; /* number of TCP ports of each slot; 0: no TCP */
const volatile __u32 address;   /* IPv4 destination besides groups, network byte order; 0: any */

/* A packet is dropped when a random number is below this: 0 drops none. */
volatile __u32 loss_threshold;

enum counter {
	STEERED,
	PASSED,
	NO_SOCKET,
	LOST,
	MALFORMED,
	COUNTERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* The socket of slot s on queue q is at q * slots + s. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

static __always_inline int count(__u32 which, int verdict)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		(*n)++;
	return verdict;
}

struct headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* 224.0.0.0/4 */
static __always_inline int multicast(__be32 addr)
{
	return (addr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000);
}

/* The slot that a UDP datagram is for, or a huge number. */
static __always_inline __u32 udp_slot(const struct headers *h)
{
	/*
	 * Multicast to our ports is ours whatever the group: endpoints know which
	 * groups they have joined, and the device knows those of the host.
	 */
	if (address && h->ip.daddr != address && !multicast(h->ip.daddr))
		return -1;
	return (__u32)bpf_ntohs(h->udp.dest) - port_base; /* below base: huge */
}

/* The slot that a TCP segment is for, or a huge number. */
static __always_inline __u32 tcp_slot(const struct headers *h)
{
	if (!tcp_ports || (address && h->ip.daddr != address))
		return -1;
	/* A TCP header begins with the ports as a UDP header does. */
	return ((__u32)bpf_ntohs(h->udp.dest) - tcp_base) / tcp_ports;
}

SEC("xdp.frags")
int steer(struct xdp_md *ctx)
{
	struct headers *h = (void *)(long)ctx->data;

	/* 42 bytes is also the length of an ARP packet: nothing shorter is ours. */
	if ((void *)(h + 1) > (void *)(long)ctx->data_end)
		return count(PASSED, XDP_PASS);
	/*
	 * Packets with IP options and fragments are the kernel's: endpoints send
	 * neither.
	 */
	if (h->eth.proto != bpf_htons(ETH_P_IP) || h->ip.version_ihl != 0x45 ||
	    h->ip.frag_off & bpf_htons(IP_MF_OR_OFFSET))
		return count(PASSED, XDP_PASS);

	__u32 slot = slots;

	if (h->ip.protocol == IPPROTO_UDP)
		slot = udp_slot(h);
	else if (h->ip.protocol == IPPROTO_TCP)
		slot = tcp_slot(h);
	if (slot >= slots)
		return count(PASSED, XDP_PASS);

	if (h->ip.protocol == IPPROTO_UDP) {
		__u32 len = bpf_ntohs(h->udp.len);

		if (len < sizeof(h->udp) || len + sizeof(h->ip) != bpf_ntohs(h->ip.tot_len))
			return count(MALFORMED, XDP_PASS);
	}

	__u32 threshold = loss_threshold;

	if (threshold && bpf_get_prandom_u32() < threshold)
		return count(LOST, XDP_DROP);

	int verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index * slots + slot, XDP_PASS);

	return count(verdict == XDP_REDIRECT ? STEERED : NO_SOCKET, verdict);
}

char _license[] SEC("license") = "Apache-2.0";
