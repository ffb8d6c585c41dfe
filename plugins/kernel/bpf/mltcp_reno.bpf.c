// SPDX-License-Identifier: GPL-2.0-only
/* mltcp_reno: the kernel's Reno whose congestion avoidance adds F packets per window instead of one packet. F is the
 * gain of the connection's job. */
#include "augment.h"

extern u32 tcp_reno_ssthresh(struct sock* sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock* sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock* sk) __ksym;

SEC("struct_ops/mltcp_reno_init")
void BPF_PROG(mltcp_reno_init, struct sock* sk) { mltcp_on_init(sk); }

SEC("struct_ops/mltcp_reno_release")
void BPF_PROG(mltcp_reno_release, struct sock* sk) { mltcp_on_release(sk); }

SEC("struct_ops/mltcp_reno_ssthresh")
u32 BPF_PROG(mltcp_reno_ssthresh, struct sock* sk) { return tcp_reno_ssthresh(sk); }

SEC("struct_ops/mltcp_reno_cong_avoid")
void BPF_PROG(mltcp_reno_cong_avoid, struct sock* sk, u32 ack, u32 acked) {
  struct mltcp_flow* const flow = mltcp_find_flow(sk);
  MLTCP_INCREASE(sk, ack, acked, flow, tcp_reno_cong_avoid);
}

SEC("struct_ops/mltcp_reno_cwnd_event")
void BPF_PROG(mltcp_reno_cwnd_event, struct sock* sk, enum tcp_ca_event ev) { mltcp_on_event(sk, ev); }

SEC("struct_ops/mltcp_reno_acked")
void BPF_PROG(mltcp_reno_acked, struct sock* sk, const struct ack_sample* sample) { mltcp_on_acked(sk); }

SEC("struct_ops/mltcp_reno_undo")
u32 BPF_PROG(mltcp_reno_undo, struct sock* sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_reno = {
    .init = (void*)mltcp_reno_init,
    .release = (void*)mltcp_reno_release,
    .ssthresh = (void*)mltcp_reno_ssthresh,
    .cong_avoid = (void*)mltcp_reno_cong_avoid,
    .cwnd_event = (void*)mltcp_reno_cwnd_event,
    .pkts_acked = (void*)mltcp_reno_acked,
    .undo_cwnd = (void*)mltcp_reno_undo,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = "mltcp_reno",
};
