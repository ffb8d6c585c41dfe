/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types, with the members that the BPF programs use. The offsets of the members are set when a program is
 * loaded, from the type information of the running kernel (CO-RE). So a build needs no kernel headers.
 */
#ifndef MLTCP_KERNEL_BPF_TCP_H
#define MLTCP_KERNEL_BPF_TCP_H

#include <linux/types.h>

#define OF_THE_KERNEL __attribute__((preserve_access_index))

typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

struct kernfs_node {
  u64 id;
} OF_THE_KERNEL;

struct cgroup {
  struct kernfs_node* kn;
  int level;
  struct cgroup* ancestors[1];
} OF_THE_KERNEL;

struct sock_cgroup_data {
  struct cgroup* cgroup;
} OF_THE_KERNEL;

struct sock_common {
  unsigned char skc_state;
} OF_THE_KERNEL;

struct sock {
  struct sock_common __sk_common;
  __u32 sk_mark;
  struct sock_cgroup_data sk_cgrp_data;
} OF_THE_KERNEL;

struct inet_connection_sock {
  u64 icsk_ca_priv[13];
} OF_THE_KERNEL;

struct tcp_sock {
  struct inet_connection_sock inet_conn;
  u64 bytes_acked;
  u32 packets_out;
  u32 snd_cwnd;
  u32 snd_ssthresh;
  u32 srtt_us; /* eight times the smoothed round-trip time, in microseconds */
  __u8 ecn_flags;
} OF_THE_KERNEL;

/* Private state of the kernel's CUBIC. */
struct bictcp {
  u32 epoch_start; /* beginning of the epoch in ticks; 0 if there is no epoch */
} OF_THE_KERNEL;

enum { TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum { TCP_ECN_OK = 1 };
enum tcp_ca_event { CA_EVENT_TX_START };

/* Needed only as a type of function arguments, which libbpf compares. */
struct ack_sample {
  u32 pkts_acked;
} OF_THE_KERNEL;

#define TCP_CA_NAME_MAX 16
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };

/* libbpf matches members by their names. */
struct tcp_congestion_ops {
  void (*init)(struct sock* sk);
  void (*release)(struct sock* sk);
  u32 (*ssthresh)(struct sock* sk);
  void (*cong_avoid)(struct sock* sk, u32 ack, u32 acked);
  void (*set_state)(struct sock* sk, __u8 new_state);
  void (*cwnd_event)(struct sock* sk, enum tcp_ca_event ev);
  void (*in_ack_event)(struct sock* sk, u32 flags);
  void (*pkts_acked)(struct sock* sk, const struct ack_sample* sample);
  u32 (*undo_cwnd)(struct sock* sk);
  u32 flags;
  char name[TCP_CA_NAME_MAX];
};

#endif
