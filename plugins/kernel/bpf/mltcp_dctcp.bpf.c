// SPDX-License-Identifier: GPL-2.0-only
/*
 * mltcp_dctcp: the kernel's DCTCP whose congestion avoidance adds F packets per window instead of one packet.
 *
 * If the peer does not use ECN, the kernel's dctcp_init() would replace the connection's congestion control by the
 * kernel's Reno, and the number of users of mltcp_dctcp would become wrong. So dctcp_init() is not called for such a
 * connection. Instead the connection gets mltcp_reno, or the kernel's Reno if mltcp_reno is not loaded, and its packets
 * do not claim ECN. The kernel may refuse this change, for example if a BPF program has chosen mltcp_dctcp. In that
 * case mltcp_dctcp calls Reno's functions, and packets still claim ECN.
 */
#include "augment.h"

extern void dctcp_init(struct sock* sk) __ksym;
extern u32 dctcp_ssthresh(struct sock* sk) __ksym;
extern void dctcp_update_alpha(struct sock* sk, u32 flags) __ksym;
extern void dctcp_state(struct sock* sk, __u8 new_state) __ksym;
extern void dctcp_cwnd_event(struct sock* sk, enum tcp_ca_event ev) __ksym;
extern u32 dctcp_cwnd_undo(struct sock* sk) __ksym;
extern u32 tcp_reno_ssthresh(struct sock* sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock* sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock* sk) __ksym;

enum { SOL_TCP = 6, TCP_CONGESTION = 13 };

MLTCP_INLINE int becomes_reno(struct sock* sk) {
  char ours[] = "mltcp_reno";
  char own[] = "reno";
  return bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, ours, sizeof(ours) - 1) == 0 ||
         bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, own, sizeof(own) - 1) == 0;
}

/* Returns whether the connection uses ECN for DCTCP. A connection without a struct mltcp_flow does not, because
 * dctcp_init() was not called for it. */
MLTCP_INLINE int uses_ecn(struct sock* sk) {
  const struct mltcp_flow* const flow = mltcp_find_flow(sk);
  return flow && !flow->without_ecn;
}

SEC("struct_ops/mltcp_dctcp_init")
void BPF_PROG(mltcp_dctcp_init, struct sock* sk) {
  const struct tcp_sock* const tp = (struct tcp_sock*)sk;
  const int begins = sk->__sk_common.skc_state != TCP_LISTEN && sk->__sk_common.skc_state != TCP_CLOSE;
  const int without_ecn = begins && !(tp->ecn_flags & TCP_ECN_OK);
  struct mltcp_flow* flow;
  if (without_ecn && becomes_reno(sk)) return;
  flow = mltcp_on_init(sk);
  if (!flow) return;
  flow->without_ecn = without_ecn;
  if (!without_ecn) dctcp_init(sk);
}

SEC("struct_ops/mltcp_dctcp_release")
void BPF_PROG(mltcp_dctcp_release, struct sock* sk) { mltcp_on_release(sk); }

SEC("struct_ops/mltcp_dctcp_ssthresh")
u32 BPF_PROG(mltcp_dctcp_ssthresh, struct sock* sk) {
  return uses_ecn(sk) ? dctcp_ssthresh(sk) : tcp_reno_ssthresh(sk);
}

SEC("struct_ops/mltcp_dctcp_cong_avoid")
void BPF_PROG(mltcp_dctcp_cong_avoid, struct sock* sk, u32 ack, u32 acked) {
  struct mltcp_flow* const flow = mltcp_find_flow(sk);
  MLTCP_INCREASE(sk, ack, acked, flow, tcp_reno_cong_avoid);
}

SEC("struct_ops/mltcp_dctcp_state")
void BPF_PROG(mltcp_dctcp_state, struct sock* sk, __u8 new_state) {
  if (uses_ecn(sk)) dctcp_state(sk, new_state);
}

SEC("struct_ops/mltcp_dctcp_cwnd_event")
void BPF_PROG(mltcp_dctcp_cwnd_event, struct sock* sk, enum tcp_ca_event ev) {
  if (uses_ecn(sk)) dctcp_cwnd_event(sk, ev);
  mltcp_on_event(sk, ev);
}

SEC("struct_ops/mltcp_dctcp_ack")
void BPF_PROG(mltcp_dctcp_ack, struct sock* sk, u32 flags) {
  if (uses_ecn(sk)) dctcp_update_alpha(sk, flags);
}

SEC("struct_ops/mltcp_dctcp_acked")
void BPF_PROG(mltcp_dctcp_acked, struct sock* sk, const struct ack_sample* sample) { mltcp_on_acked(sk); }

SEC("struct_ops/mltcp_dctcp_undo")
u32 BPF_PROG(mltcp_dctcp_undo, struct sock* sk) { return uses_ecn(sk) ? dctcp_cwnd_undo(sk) : tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_dctcp = {
    .init = (void*)mltcp_dctcp_init,
    .release = (void*)mltcp_dctcp_release,
    .ssthresh = (void*)mltcp_dctcp_ssthresh,
    .cong_avoid = (void*)mltcp_dctcp_cong_avoid,
    .set_state = (void*)mltcp_dctcp_state,
    .cwnd_event = (void*)mltcp_dctcp_cwnd_event,
    .in_ack_event = (void*)mltcp_dctcp_ack,
    .pkts_acked = (void*)mltcp_dctcp_acked,
    .undo_cwnd = (void*)mltcp_dctcp_undo,
    .flags = TCP_CONG_NEEDS_ECN,
    .name = "mltcp_dctcp",
};
