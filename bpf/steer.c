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
const volatile __u16 family;    /* of the destination address: 4, 6, or 0 for any of both */
/* Destination besides groups, network byte order; of IPv4 in the first word. */
const volatile __u32 address[4];
const volatile __u16 vlan;     /* VLAN that all is for; 0: frames without a tag */
const volatile __u16 stripped; /* with vlan: take frames without a tag, too */

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

struct headers6 {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct udphdr udp;
} __attribute__((packed));

struct tagged {
	struct ethhdr eth; /* proto is that of the tag */
	__be16 tci;
	__be16 proto;
} __attribute__((packed));

#define TAG_LEN (sizeof(struct tagged) - sizeof(struct ethhdr))
#define NOT_OURS -1u

/* The bytes of the tag in a frame: 0 if there is none, NOT_OURS if it is not for us. */
static __always_inline __u32 tag_of(const struct tagged *t, const void *end)
{
	if (!vlan)
		return 0;
	if ((const void *)(t + 1) > end)
		return NOT_OURS;
	if (t->eth.proto != bpf_htons(ETH_P_8021Q))
		return stripped ? 0 : NOT_OURS;
	return (t->tci & bpf_htons(VLAN_VID_MASK)) == bpf_htons(vlan) ? TAG_LEN : NOT_OURS;
}

/* Takes the tag off, so that what sockets get looks the same wherever it was done. */
static __always_inline long untag(struct xdp_md *ctx)
{
	struct tagged *t = (void *)(long)ctx->data;
	struct ethhdr to;

	if ((void *)(t + 1) > (void *)(long)ctx->data_end)
		return -1;
	__builtin_memcpy(&to, &t->eth, 2 * sizeof(to.dest));
	__builtin_memcpy((__u8 *)t + TAG_LEN, &to, 2 * sizeof(to.dest));
	return bpf_xdp_adjust_head(ctx, TAG_LEN);
}

/* What of a packet decides where it goes. */
struct packet {
	__u8 protocol;
	__u8 ours;      /* sent to our address, or ours is any */
	__u8 multicast; /* sent to a group */
	__u32 len;      /* bytes behind the IP header */
	const struct udphdr *udp; /* a TCP header begins with the ports as well */
};

/*
 * Multicast to our ports is ours whatever the group: endpoints know which groups
 * they have joined, and the device knows those of the host. Packets with IP
 * options, extension headers and fragments are the kernel's: endpoints send none.
 */
static __always_inline int parse4(const struct headers *h, struct packet *p)
{
	if (family == 6 || h->ip.version_ihl != 0x45 || h->ip.frag_off & bpf_htons(IP_MF_OR_OFFSET))
		return 0;
	p->protocol = h->ip.protocol;
	p->ours = !family || h->ip.daddr == address[0];
	p->multicast = (h->ip.daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000); /* 224.0.0.0/4 */
	p->len = (__u32)bpf_ntohs(h->ip.tot_len) - sizeof(h->ip);
	p->udp = &h->udp;
	return 1;
}

static __always_inline int parse6(const struct headers6 *h, struct packet *p)
{
	if (family == 4 || h->ip.version >> 4 != 6)
		return 0;
	p->protocol = h->ip.nexthdr;
	p->ours = !family || (h->ip.daddr[0] == address[0] && h->ip.daddr[1] == address[1] &&
			      h->ip.daddr[2] == address[2] && h->ip.daddr[3] == address[3]);
	p->multicast = (h->ip.daddr[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000); /* ff00::/8 */
	p->len = bpf_ntohs(h->ip.payload_len);
	p->udp = &h->udp;
	return 1;
}

/* The slot that a packet is for, or a huge number. */
static __always_inline __u32 slot_of(const struct packet *p)
{
	__u32 port = bpf_ntohs(p->udp->dest);

	if (p->protocol == IPPROTO_UDP && (p->ours || p->multicast))
		return port - port_base; /* below base: huge */
	if (p->protocol == IPPROTO_TCP && p->ours && tcp_ports)
		return (port - tcp_base) / tcp_ports;
	return -1;
}

SEC("xdp.frags")
int steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 tag = tag_of(data, end);

	if (tag == NOT_OURS)
		return count(PASSED, XDP_PASS);

	/* With a tag the Ethernet type and what follows are behind it. */
	struct headers *h = data + tag;
	struct headers6 *h6 = data + tag;
	struct packet p;

	/* 42 bytes is also the length of an ARP packet: nothing shorter is ours. */
	if ((void *)(h + 1) > end)
		return count(PASSED, XDP_PASS);
	if (h->eth.proto == bpf_htons(ETH_P_IP)) {
		if (!parse4(h, &p))
			return count(PASSED, XDP_PASS);
	} else if (h->eth.proto == bpf_htons(ETH_P_IPV6) && (void *)(h6 + 1) <= end) {
		if (!parse6(h6, &p))
			return count(PASSED, XDP_PASS);
	} else {
		return count(PASSED, XDP_PASS);
	}

	__u32 slot = slot_of(&p);

	if (slot >= slots)
		return count(PASSED, XDP_PASS);
	if (p.protocol == IPPROTO_UDP) {
		__u32 len = bpf_ntohs(p.udp->len);

		if (len < sizeof(*p.udp) || len != p.len)
			return count(MALFORMED, XDP_PASS);
	}

	__u32 threshold = loss_threshold;

	if (threshold && bpf_get_prandom_u32() < threshold)
		return count(LOST, XDP_DROP);

	int verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index * slots + slot, XDP_PASS);

	if (tag && verdict == XDP_REDIRECT && untag(ctx))
		return count(MALFORMED, XDP_DROP); /* no kernel refuses that */
	return count(verdict == XDP_REDIRECT ? STEERED : NO_SOCKET, verdict);
}

char _license[] SEC("license") = "Apache-2.0";
