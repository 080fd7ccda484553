/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our XDP programs need to know of the kernel, and no more. With this
 * file they compile from clang and libbpf's headers alone, to the same object
 * on every distribution and architecture.
 */
#ifndef XWARP_KERNEL_H
#define XWARP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;

/* linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_XSKMAP = 17,
	BPF_MAP_TYPE_DEVMAP_HASH = 25,
};

enum xdp_action {
	XDP_ABORTED = 0,
	XDP_DROP,
	XDP_PASS,
	XDP_TX,
	XDP_REDIRECT,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* linux/if_ether.h, linux/if_vlan.h, linux/ip.h, linux/ipv6.h, linux/udp.h, linux/in.h */
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define VLAN_VID_MASK 0x0fff
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IP_MF_OR_OFFSET 0x3fff

struct ethhdr {
	__u8 dest[6];
	__u8 source[6];
	__be16 proto;
} __attribute__((packed));

struct iphdr {
	__u8 version_ihl;
	__u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	__u8 ttl;
	__u8 protocol;
	__be16 check;
	__be32 saddr;
	__be32 daddr;
} __attribute__((packed));

struct ipv6hdr {
	__u8 version; /* in the upper half; traffic class and flow label follow */
	__u8 flow[3];
	__be16 payload_len;
	__u8 nexthdr;
	__u8 hop_limit;
	__be32 saddr[4];
	__be32 daddr[4];
} __attribute__((packed));

struct udphdr {
	__be16 source;
	__be16 dest;
	__be16 len;
	__be16 check;
} __attribute__((packed));

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#endif
