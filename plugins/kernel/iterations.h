/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Iterations of a job and the gain of its connections, in integers, for the BPF programs and the command `mltcp
 * kernel`. This is plain C, compiled for the kernel's BPF machine and, for status and tests, for the host.
 *
 * All connections of a job on this machine share one count of acknowledged bytes. A burst begins when a connection
 * sends while no connection of the job has data in flight. The silence since the last acknowledgement before the burst
 * is a gap; a long enough gap separates iterations. After three timeouts a connection's data no longer counts as in
 * flight. If this data is acknowledged later, its iteration continues.
 *
 *   threshold   Gap that separates iterations: given, or half of the usual gap. The usual gap is the longest gap that
 *               keeps recurring. Three gaps close together, each more than twice as long as the usual gap, replace the
 *               usual gap. If no gap separates iterations for 16 times the usual gap, the usual gap is halved. Until a
 *               usual gap has recurred, each gap shorter than half of it halves it. Congestion cannot close a compute
 *               gap, because the application cannot continue before its gradients have arrived.
 *   control     Bursts below 1/256 of a large burst (heartbeats) do not end a silence.
 *   size        Bytes per iteration, given or learned. A learned size is known after three iterations in a row that
 *               are equal within 1/32. A given size is ignored after two iterations in a row that differ from it by
 *               more than a quarter, until an iteration fits. If the given size is a multiple of the true size, the
 *               error is not noticed, because gaps do not count before the given number of bytes has been sent.
 *   prediction  With a known size, a quarter of the usual gap is enough near the predicted end of an iteration.
 *   failure     The gain is 1 once an iteration exceeds a learned size by more than 1/32, or a given size by half. The
 *               gain is also 1 after an iteration that differs from the learned size. A learned size that held for
 *               eight iterations is used again at the first match; four misfits in a row discard it.
 *
 * This is a simpler form of cc/iteration_learner.h, which remembers 128 gaps and needs no threshold.
 */
#ifndef MLTCP_KERNEL_ITERATIONS_H
#define MLTCP_KERNEL_ITERATIONS_H

#include <linux/bpf.h>
#include <linux/types.h>

enum {
  MLTCP_GAIN_BITS = 16,      /* number of fraction bits of a gain in fixed point; 1 is 1 << 16 */
  MLTCP_GAIN_SEGMENTS = 128, /* segments of the piecewise linear function F over bytes_ratio; a power of two */
  MLTCP_MAX_JOBS = 1024,
  MLTCP_MAX_LEVELS = 16, /* maximum depth of cgroups below the root */
  MLTCP_FUNCTION_TEXT = 256,
  MLTCP_LAYOUT = 1, /* version of the maps' contents: add 1 with each change of the structs below */
};

/* A job is all sockets with the same mark, or all sockets of a cgroup and of the cgroups below it. */
enum { MLTCP_JOB_NONE = 0, MLTCP_JOB_MARK = 1, MLTCP_JOB_CGROUP = 2 };

struct mltcp_job_key {
  __u64 id; /* the mark, or the cgroup's inode number */
  __u32 kind;
  __u32 zero;
};

struct mltcp_settings {
  __u64 gap_ns;                        /* silence that separates iterations; 0 if it is learned */
  __u64 iteration_bytes;               /* bytes per iteration; 0 if they are learned */
  __u32 gain[MLTCP_GAIN_SEGMENTS + 1]; /* F at bytes_ratio 0, 1/128, ... 1, all above 0 */
  __u32 iteration_aware;               /* 0 if gain[0] always applies */
  char function[MLTCP_FUNCTION_TEXT];  /* text from which the function was made, for people */
};

/* Settings common to all jobs. This is the only value of its map. */
struct mltcp_common {
  __u32 layout; /* MLTCP_LAYOUT of the program that loaded the algorithm */
  __u32 zero;
  struct mltcp_settings settings; /* settings of jobs that have none of their own */
  __u64 tick_ns;                  /* length of the kernel's tick, 1 / HZ */
  __u32 mark_mask;                /* bits of a socket's mark that hold the number of a job; 0 if marks are ignored */
  __u32 generation;               /* incremented when the naming of jobs changes */
};

struct mltcp_iterations {
  __u64 position;      /* bytes that were acknowledged on all connections */
  __u64 begin;         /* position at which the iteration began */
  __u64 begun_ns;      /* time at which the iteration began */
  __u64 size;          /* bytes per iteration; 0 if none is known yet */
  __u64 iterations;    /* number of iterations that have begun */
  __u64 delivered_ns;  /* time of the latest acknowledgement */
  __u64 gap_ns;        /* usual silence between iterations; 0 if none is known yet */
  __u64 burst_begin;   /* position at which the latest burst of data began */
  __u64 burst_gap_ns;  /* silence before the latest burst */
  __u64 burst_ns;      /* time at which the latest burst began */
  __u64 joined_ns;     /* time at which the latest connection joined the job */
  __u64 largest_burst; /* bytes of the largest recent burst; decreases slowly */
  __u64 longer_ns;     /* shortest of the latest longer gaps: those of more than twice the usual gap */
  __u64 longer_at_ns;  /* time at which the latest longer gap ended */
  __u64 longer_at;     /* number of the iteration that began after the latest longer gap */
  __u32 longer;        /* number of longer gaps that came close together */
  __u32 alike;         /* consecutive iterations of about `size` bytes */
  __u32 misfits;       /* consecutive iterations whose bytes differed from `size` */
  __u32 connections;   /* open connections of the job */
  __u32 sending;       /* open connections with data in flight */
  __u32 trusted;       /* 1 if gap_ns has recurred */
  __u32 off;           /* consecutive iterations that differed much from the given size */
  __u32 zero;
};

struct mltcp_job {
  struct bpf_spin_lock lock;
  __u32 zero;
  struct mltcp_iterations iterations;
};

/* The layout is checked, because different compilers build the BPF programs and the command. */
#ifdef __cplusplus
#define MLTCP_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "layout")
#else
#define MLTCP_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "layout")
#endif
MLTCP_ASSERT_SIZE(struct mltcp_settings, 792);
MLTCP_ASSERT_SIZE(struct mltcp_common, 816);
MLTCP_ASSERT_SIZE(struct mltcp_job, 160);

#define MLTCP_GAIN_ONE (1ULL << MLTCP_GAIN_BITS)
/* An iteration of at most a few initial windows ends before congestion control has any effect. */
#define MLTCP_SMALLEST_ITERATION 16384ULL
#define MLTCP_MIN_GAP_NS 1000000ULL
#define MLTCP_FORGET_AFTER_GAPS 16ULL
#define MLTCP_LONGER_TO_BELIEVE 3U
#define MLTCP_MAX_BUCKETS 64U
#define MLTCP_ALIKE_TO_KNOW 3U
#define MLTCP_ALIKE_TO_TRUST 8U
#define MLTCP_MISFITS_TO_FORGET 4U
#define MLTCP_OFF_TO_DOUBT 2U

#define MLTCP_INLINE static inline __attribute__((always_inline))

MLTCP_INLINE __u64 mltcp_tolerance(__u64 size) { return size / 32; }

MLTCP_INLINE __u64 mltcp_distance(__u64 a, __u64 b) { return a > b ? a - b : b - a; }

/* Returns the bytes that were acknowledged in this iteration. */
MLTCP_INLINE __u64 mltcp_sent(const struct mltcp_iterations* job) { return job->position - job->begin; }

/* Returns the bytes per iteration. Returns 0 if they are not known, or if the current iteration has exceeded them. */
MLTCP_INLINE __u64 mltcp_known_size(const struct mltcp_iterations* job, const struct mltcp_settings* settings) {
  if (job->iterations == 0) return 0;
  if (settings->iteration_bytes > 0) {
    const __u64 given = settings->iteration_bytes;
    return job->off < MLTCP_OFF_TO_DOUBT && mltcp_sent(job) <= given + given / 2 ? given : 0;
  }
  if (job->alike < MLTCP_ALIKE_TO_KNOW || job->misfits > 0 || job->size < MLTCP_SMALLEST_ITERATION) return 0;
  return mltcp_sent(job) <= job->size + mltcp_tolerance(job->size) ? job->size : 0;
}

/* Returns whether a silence of `gap_ns` before the burst that begins now separates two iterations. */
MLTCP_INLINE int mltcp_separates(const struct mltcp_iterations* job, const struct mltcp_settings* settings,
                                 __u64 gap_ns) {
  const __u64 threshold = settings->gap_ns > 0 ? settings->gap_ns : job->gap_ns / 2;
  const __u64 sent = mltcp_sent(job);
  const __u64 given = settings->iteration_bytes;
  const __u64 size = given > 0 ? given : mltcp_known_size(job, settings);
  if (gap_ns < MLTCP_MIN_GAP_NS && settings->gap_ns == 0) return 0;
  if (size > 0 && mltcp_distance(sent, size) <= mltcp_tolerance(size) && gap_ns >= threshold / 2) return 1;
  /* If a size is given, gaps before the iteration has sent this many bytes are gaps between buckets. */
  if (given > 0 && job->iterations > 0 && sent < given) return 0;
  return gap_ns >= threshold;
}

/* Learns from an iteration of `sent` bytes that has just ended. */
MLTCP_INLINE void mltcp_learn_size(struct mltcp_iterations* job, __u64 sent) {
  if (job->size > 0 && mltcp_distance(sent, job->size) <= mltcp_tolerance(job->size)) {
    job->size = job->size - job->size / 4 + sent / 4;
    if (job->alike < MLTCP_ALIKE_TO_TRUST) ++job->alike;
    job->misfits = 0;
  } else if (job->alike >= MLTCP_ALIKE_TO_TRUST && job->misfits + 1 < MLTCP_MISFITS_TO_FORGET) {
    ++job->misfits;
  } else {
    job->size = sent;
    job->alike = 1;
    job->misfits = 0;
  }
}

/* Compares an iteration of `sent` bytes that has ended with the given size; `given` is 0 if no size is given. */
MLTCP_INLINE void mltcp_compare_given(struct mltcp_iterations* job, __u64 sent, __u64 given) {
  if (given == 0 || mltcp_distance(sent, given) <= given / 4)
    job->off = 0;
  else if (job->off < MLTCP_OFF_TO_DOUBT)
    ++job->off;
}

/* Learns from a gap of `gap_ns` between two iterations. */
MLTCP_INLINE void mltcp_learn_gap(struct mltcp_iterations* job, __u64 gap_ns, __u64 now) {
  int close;
  if (gap_ns <= job->gap_ns) {
    job->gap_ns -= (job->gap_ns - gap_ns) / 4;
    return;
  }
  if (gap_ns <= 2 * job->gap_ns || job->gap_ns == 0) {
    job->gap_ns = gap_ns;
    return;
  }
  /* A gap much longer than the usual one comes from a straggler or a pause, unless it recurs. If it recurs, it is the
   * true gap between iterations, and the shorter gaps were gaps between buckets. */
  close = job->longer > 0 && now - job->longer_at_ns <= MLTCP_FORGET_AFTER_GAPS * gap_ns &&
          job->iterations - job->longer_at <= MLTCP_MAX_BUCKETS && gap_ns / 4 <= job->longer_ns &&
          job->longer_ns / 4 <= gap_ns;
  if (!close) {
    job->longer = 0;
    job->longer_ns = gap_ns;
  }
  ++job->longer;
  if (gap_ns < job->longer_ns) job->longer_ns = gap_ns;
  if (job->longer >= MLTCP_LONGER_TO_BELIEVE) {
    if (job->iterations - job->longer_at > 1) job->alike = 0;
    job->gap_ns = job->longer_ns;
    job->trusted = 1;
    job->longer = 0;
  }
  job->longer_at_ns = now;
  job->longer_at = job->iterations;
}

/* Called when data is sent while no data was in flight. */
MLTCP_INLINE void mltcp_on_burst(struct mltcp_iterations* job, const struct mltcp_settings* settings, __u64 now) {
  const int first = job->delivered_ns == 0;
  const __u64 burst = job->position - job->burst_begin;
  /* If nothing of the latest burst has been acknowledged, burst_gap_ns already contains the silence before it. */
  const __u64 since = job->burst_ns > job->delivered_ns ? job->burst_ns : job->delivered_ns;
  __u64 gap = now > since ? now - since : 0;
  __u64 patience;
  if (first) {
    job->burst_begin = job->begin = job->position;
    job->begun_ns = job->burst_ns = now;
    return; /* neither the silence before this iteration nor its size is known */
  }
  if (burst == 0 || burst < job->largest_burst / 256) {
    gap += job->burst_gap_ns;
  } else {
    const __u64 faded = job->largest_burst - job->largest_burst / 16;
    job->largest_burst = burst > faded ? burst : faded;
    job->burst_begin = job->position;
  }
  job->burst_gap_ns = gap;
  job->burst_ns = now;
  patience = job->trusted || job->alike >= MLTCP_ALIKE_TO_KNOW ? MLTCP_FORGET_AFTER_GAPS : 0;
  if (gap >= MLTCP_MIN_GAP_NS && gap < job->gap_ns / 2 && now - job->begun_ns > patience * job->gap_ns) {
    job->gap_ns /= 2;
    job->trusted = 0;
  }
  if (!mltcp_separates(job, settings, gap)) return;
  mltcp_learn_gap(job, gap, now);
  /* The data since the beginning of this iteration was only a heartbeat, so the iteration goes on. */
  if (job->iterations > 0 && job->burst_begin == job->begin) return;
  if (job->iterations > 0) {
    mltcp_compare_given(job, job->burst_begin - job->begin, settings->iteration_bytes);
    mltcp_learn_size(job, job->burst_begin - job->begin);
  }
  job->begin = job->burst_begin;
  job->begun_ns = now;
  ++job->iterations;
}

/* Called when `bytes` were acknowledged for the first time. */
MLTCP_INLINE void mltcp_on_delivered(struct mltcp_iterations* job, __u64 bytes, __u64 now) {
  job->position += bytes;
  job->delivered_ns = now;
}

/* Returns F at sent / size. `size` must be above 0, and `sent` at most `size`. */
MLTCP_INLINE __u64 mltcp_gain_at(const struct mltcp_settings* settings, __u64 sent, __u64 size) {
  __u64 at;
  __u64 segment;
  if (size >> 40 > 0) {
    sent >>= 20;
    size >>= 20;
  }
  at = sent * MLTCP_GAIN_SEGMENTS * MLTCP_GAIN_ONE / size;
  segment = at >> MLTCP_GAIN_BITS;
  if (segment >= MLTCP_GAIN_SEGMENTS) return settings->gain[MLTCP_GAIN_SEGMENTS];
  segment &= MLTCP_GAIN_SEGMENTS - 1; /* limits `segment` in a way that BPF's verifier understands */
  at &= MLTCP_GAIN_ONE - 1;
  return (settings->gain[segment] * (MLTCP_GAIN_ONE - at) + settings->gain[segment + 1] * at) >> MLTCP_GAIN_BITS;
}

/* Returns the factor of an increase step after `sent` of `size` bytes. The factor is 1 if `size` is 0, which means that
 * it is not known. */
MLTCP_INLINE __u64 mltcp_gain_after(const struct mltcp_settings* settings, __u64 sent, __u64 size) {
  if (!settings->iteration_aware) return settings->gain[0];
  if (size == 0) return MLTCP_GAIN_ONE;
  return mltcp_gain_at(settings, sent < size ? sent : size, size);
}

MLTCP_INLINE __u64 mltcp_gain(const struct mltcp_iterations* job, const struct mltcp_settings* settings) {
  return mltcp_gain_after(settings, mltcp_sent(job), mltcp_known_size(job, settings));
}

/* Returns the product of `acked` and `gain` in whole packets. Stores the remainder in `carry`. */
MLTCP_INLINE __u64 mltcp_scaled(__u64 acked, __u64 gain, __u64* carry) {
  const __u64 exact = acked * gain + *carry;
  *carry = exact & (MLTCP_GAIN_ONE - 1);
  return exact >> MLTCP_GAIN_BITS;
}

#endif
