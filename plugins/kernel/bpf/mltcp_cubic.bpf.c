// SPDX-License-Identifier: GPL-2.0-only
/*
 * mltcp_cubic: the kernel's CUBIC with a window that grows F times as fast, in the Reno-friendly and the cubic mode.
 *
 * The Reno-friendly estimate and the step toward the target count acknowledged packets, and this count is scaled. The
 * cubic curve is a function of time, so a scaled step has no effect once the window has reached the curve. Therefore
 * the curve's clock runs F times as fast: the beginning of the epoch is moved into the past by F - 1 times the time
 * since the last acknowledgement. If F is below 1, the beginning is moved toward the present. Any time beyond a round
 * trip without an acknowledgement is idle time, which the kernel itself subtracts.
 */
#include "augment.h"

extern void cubictcp_init(struct sock* sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock* sk) __ksym;
extern void cubictcp_cong_avoid(struct sock* sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock* sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock* sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock* sk, const struct ack_sample* sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock* sk) __ksym;

MLTCP_INLINE u32* epoch_start_of(struct sock* sk) {
  struct inet_connection_sock* const icsk = (struct inet_connection_sock*)sk;
  struct bictcp* const ca = (struct bictcp*)icsk->icsk_ca_priv;
  return &ca->epoch_start;
}

/* Advances the clock of the cubic curve by `gain` times the time that has passed. */
MLTCP_INLINE void run_clock(struct sock* sk, struct mltcp_flow* flow) {
  const struct mltcp_common* const common = mltcp_find_common();
  const struct tcp_sock* const tp = (struct tcp_sock*)sk;
  u32* const epoch_start = epoch_start_of(sk);
  const u64 now = bpf_ktime_get_ns();
  const u64 round_trip = (u64)(tp->srtt_us >> 3) * 1000;
  u64 passed = now - flow->clock_ns;
  const int known = flow->clock_ns != 0;
  u32 begin = *epoch_start;
  s64 ticks;
  flow->clock_ns = now;
  if (begin == 0) flow->clock_carry_ns = 0;
  if (!common || common->tick_ns == 0 || !known || begin == 0 || flow->gain == MLTCP_GAIN_ONE) return;
  if (passed > round_trip) passed = round_trip;
  if (passed > 1000000000) passed = 1000000000;
  /* The product fits 64 bits: `passed` is below 2^30, and a gain in fixed point below 2^32. */
  if (flow->gain > MLTCP_GAIN_ONE) {
    flow->clock_carry_ns += (s64)((passed * (flow->gain - MLTCP_GAIN_ONE)) >> MLTCP_GAIN_BITS);
    if (flow->clock_carry_ns < (s64)common->tick_ns) return;
    ticks = (s64)((u64)flow->clock_carry_ns / common->tick_ns);
  } else {
    flow->clock_carry_ns -= (s64)((passed * (MLTCP_GAIN_ONE - flow->gain)) >> MLTCP_GAIN_BITS);
    if (flow->clock_carry_ns > -(s64)common->tick_ns) return;
    ticks = -(s64)((u64)-flow->clock_carry_ns / common->tick_ns);
  }
  flow->clock_carry_ns -= ticks * (s64)common->tick_ns;
  begin -= (u32)ticks;
  /* The beginning must not be in the future. It must not be 0, because 0 means that there is no epoch. */
  if ((__s32)((u32)bpf_jiffies64() - begin) < 0) begin = (u32)bpf_jiffies64();
  *epoch_start = begin == 0 ? 1 : begin;
}

SEC("struct_ops/mltcp_cubic_init")
void BPF_PROG(mltcp_cubic_init, struct sock* sk) {
  cubictcp_init(sk);
  mltcp_on_init(sk);
}

SEC("struct_ops/mltcp_cubic_release")
void BPF_PROG(mltcp_cubic_release, struct sock* sk) { mltcp_on_release(sk); }

SEC("struct_ops/mltcp_cubic_ssthresh")
u32 BPF_PROG(mltcp_cubic_ssthresh, struct sock* sk) { return cubictcp_recalc_ssthresh(sk); }

SEC("struct_ops/mltcp_cubic_cong_avoid")
void BPF_PROG(mltcp_cubic_cong_avoid, struct sock* sk, u32 ack, u32 acked) {
  struct mltcp_flow* const flow = mltcp_find_flow(sk);
  if (flow) run_clock(sk, flow);
  MLTCP_INCREASE(sk, ack, acked, flow, cubictcp_cong_avoid);
}

SEC("struct_ops/mltcp_cubic_state")
void BPF_PROG(mltcp_cubic_state, struct sock* sk, __u8 new_state) { cubictcp_state(sk, new_state); }

SEC("struct_ops/mltcp_cubic_cwnd_event")
void BPF_PROG(mltcp_cubic_cwnd_event, struct sock* sk, enum tcp_ca_event ev) {
  cubictcp_cwnd_event(sk, ev);
  mltcp_on_event(sk, ev);
}

SEC("struct_ops/mltcp_cubic_acked")
void BPF_PROG(mltcp_cubic_acked, struct sock* sk, const struct ack_sample* sample) {
  cubictcp_acked(sk, sample);
  mltcp_on_acked(sk);
}

SEC("struct_ops/mltcp_cubic_undo")
u32 BPF_PROG(mltcp_cubic_undo, struct sock* sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_cubic = {
    .init = (void*)mltcp_cubic_init,
    .release = (void*)mltcp_cubic_release,
    .ssthresh = (void*)mltcp_cubic_ssthresh,
    .cong_avoid = (void*)mltcp_cubic_cong_avoid,
    .set_state = (void*)mltcp_cubic_state,
    .cwnd_event = (void*)mltcp_cubic_cwnd_event,
    .pkts_acked = (void*)mltcp_cubic_acked,
    .undo_cwnd = (void*)mltcp_cubic_undo,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = "mltcp_cubic",
};
