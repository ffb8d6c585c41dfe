/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MLTCP for the kernel's congestion controls (arXiv 2402.09589; HotNets'24, doi 10.1145/3696348.3696878).
 *
 * Each congestion control (struct_ops) calls the kernel's own functions. But it passes a scaled number of acknowledged
 * packets to the increase step: the real number times the gain of the connection's job. With gain 1 the result is
 * exactly the kernel's algorithm. Slow start is not scaled.
 *
 * The kernel calls pkts_acked() for every acknowledgement, including those in recovery, and before cong_avoid(). So the
 * job's bytes are counted in pkts_acked(), and the gain in cong_avoid() already includes the bytes of this
 * acknowledgement. The kernel reports CA_EVENT_TX_START when it sends a packet while no packet is in flight.
 */
#ifndef MLTCP_KERNEL_BPF_AUGMENT_H
#define MLTCP_KERNEL_BPF_AUGMENT_H

#include <asm-generic/errno-base.h>

#include "tcp.h"
/* The headers of BPF need the types of tcp.h. */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../iterations.h"

/* Maps that the algorithms share. The algorithms are separate objects, which find the maps pinned by these names. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MLTCP_MAX_JOBS);
  __type(key, struct mltcp_job_key);
  __type(value, struct mltcp_job);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} mltcp_jobs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MLTCP_MAX_JOBS);
  __type(key, struct mltcp_job_key);
  __type(value, struct mltcp_settings);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} mltcp_settings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct mltcp_common);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} mltcp_common SEC(".maps");

/* Number of connections that use this algorithm. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} mltcp_users SEC(".maps");

struct mltcp_flow {
  struct mltcp_job_key job; /* job of the connection; kind 0 if the connection has no job */
  u64 counted;              /* acknowledged bytes already added to the job */
  u64 gain;
  u64 carry; /* fraction of a packet not yet passed to the increase step */
  u32 mark;
  u32 generation;
  __u8 user;        /* 1 if the connection is counted in mltcp_users */
  __u8 sending;     /* 1 if data is in flight */
  __u8 without_ecn; /* 1 for a DCTCP connection that must act as Reno */
  __u8 no_room;     /* 1 if there was no room for the connection's job; `retry_ns` is the time of the next attempt */
  __u8 timeouts;    /* consecutive timeouts without an acknowledgement */
  __u8 ignored;     /* 1 after too many timeouts: the connection's data in flight does not count */
  __u8 zero[2];
  u64 retry_ns;
  /* CUBIC: time of the latest update of its clock, and the part of a tick that is not yet applied to the clock. */
  u64 clock_ns;
  s64 clock_carry_ns;
};

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct mltcp_flow);
} mltcp_flows SEC(".maps");

char _license[] SEC("license") = "GPL";

MLTCP_INLINE struct mltcp_common* mltcp_find_common(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&mltcp_common, &zero);
}

MLTCP_INLINE struct mltcp_flow* mltcp_find_flow(struct sock* sk) { return bpf_sk_storage_get(&mltcp_flows, sk, 0, 0); }

/* Copies a member of the struct at `pointer` to `to`. Because the macro copies, `pointer` may be the result of a
 * computation. */
#define MLTCP_READ(to, type, member, pointer) \
  (bpf_probe_read_kernel(to, sizeof(*(to)), (char*)(pointer) + bpf_core_field_offset(type, member)) == 0)

/* Finds the job of a socket. A socket in the root cgroup has no job unless its mark names one. */
MLTCP_INLINE void mltcp_name_job(struct sock* sk, const struct mltcp_common* common, struct mltcp_job_key* key) {
  const u32 mark = sk->sk_mark & common->mark_mask;
  u64 own = 0;
  u64 own_id = 0;
  u64 node = 0;
  u32 own_level = 0;
  u32 level;
  key->id = 0;
  key->kind = MLTCP_JOB_NONE;
  key->zero = 0;
  if (mark != 0) {
    key->kind = MLTCP_JOB_MARK;
    key->id = mark;
    return;
  }
  if (bpf_probe_read_kernel(&own, sizeof(own), &sk->sk_cgrp_data.cgroup) != 0 || own == 0 ||
      !MLTCP_READ(&own_level, struct cgroup, level, own) || own_level == 0 ||
      !MLTCP_READ(&node, struct cgroup, kn, own) || !MLTCP_READ(&own_id, struct kernfs_node, id, node))
    return;
  key->kind = MLTCP_JOB_CGROUP;
  /* Find the nearest cgroup that has settings, from the socket's own cgroup upwards. */
  for (level = MLTCP_MAX_LEVELS; level > 0; --level) {
    u64 above = 0;
    if (level > own_level || !MLTCP_READ(&above, struct cgroup, ancestors, own + level * sizeof(above)) ||
        !MLTCP_READ(&node, struct cgroup, kn, above) || !MLTCP_READ(&key->id, struct kernfs_node, id, node))
      continue;
    if (bpf_map_lookup_elem(&mltcp_settings, key)) return;
  }
  key->id = own_id;
}

#define MLTCP_EVICT_AFTER_NS 60000000000ULL
#define MLTCP_RETRY_NS 1000000000ULL
/* Value of a job's number of connections while the job is evicted: no connection can join it any more. */
#define MLTCP_EVICTED 0xffffffffU
/* A connection with this many consecutive timeouts has probably lost its peer. From then on, the connection no longer
 * prevents new iterations of its job. */
#define MLTCP_TIMEOUTS_TO_IGNORE 3

struct bpf_map;
struct mltcp_eviction {
  u64 before_ns;
  int done;
};

MLTCP_INLINE int mltcp_is_old(const struct mltcp_job* job, const struct mltcp_eviction* eviction) {
  return job->iterations.connections == 0 && job->iterations.delivered_ns <= eviction->before_ns &&
         job->iterations.joined_ns <= eviction->before_ns;
}

/* Deletes a job that has no connections and was silent for long. If a connection joins meanwhile, either the job stays
 * or the connection is refused. */
static long mltcp_evict(struct bpf_map* map, const void* key, struct mltcp_job* seen, struct mltcp_eviction* eviction) {
  struct mltcp_job* job;
  int old;
  if (!mltcp_is_old(seen, eviction)) return 0;
  /* Looks up `seen` again, because Linux 6.1 can lock only a value that was looked up. */
  job = bpf_map_lookup_elem(&mltcp_jobs, key);
  if (!job) return 0;
  bpf_spin_lock(&job->lock);
  old = mltcp_is_old(job, eviction);
  if (old) job->iterations.connections = MLTCP_EVICTED;
  bpf_spin_unlock(&job->lock);
  if (!old) return 0;
  if (bpf_map_delete_elem(&mltcp_jobs, key) == 0) {
    eviction->done = 1;
    return 1;
  }
  bpf_spin_lock(&job->lock);
  job->iterations.connections = 0;
  bpf_spin_unlock(&job->lock);
  return 0;
}

/* Adds the connection to its job. If there is no room for the job, the connection has no job and gain 1. */
MLTCP_INLINE void mltcp_join(struct sock* sk, struct mltcp_flow* flow) {
  const struct mltcp_common* const common = mltcp_find_common();
  struct mltcp_job_key key = {};
  struct mltcp_job* job;
  int evicted;
  u64 now;
  if (!common) return;
  mltcp_name_job(sk, common, &key);
  flow->mark = sk->sk_mark;
  flow->generation = common->generation;
  flow->job = key;
  flow->gain = MLTCP_GAIN_ONE;
  flow->counted = ((struct tcp_sock*)sk)->bytes_acked;
  flow->no_room = 0;
  flow->ignored = 0;
  if (key.kind == MLTCP_JOB_NONE) return;
  now = bpf_ktime_get_ns();
  job = bpf_map_lookup_elem(&mltcp_jobs, &key);
  if (!job) {
    struct mltcp_job fresh = {};
    fresh.iterations.joined_ns = now; /* prevents eviction before the job has a connection */
    /* The cast to int is needed: before Linux 6.4, errors of inlined calls lack their sign in the upper half. */
    if ((int)bpf_map_update_elem(&mltcp_jobs, &key, &fresh, BPF_NOEXIST) == -E2BIG) {
      struct mltcp_eviction eviction = {now > MLTCP_EVICT_AFTER_NS ? now - MLTCP_EVICT_AFTER_NS : 0, 0};
      bpf_for_each_map_elem(&mltcp_jobs, mltcp_evict, &eviction, 0);
      if (eviction.done) bpf_map_update_elem(&mltcp_jobs, &key, &fresh, BPF_NOEXIST);
    }
    job = bpf_map_lookup_elem(&mltcp_jobs, &key);
  }
  if (job) {
    bpf_spin_lock(&job->lock);
    evicted = job->iterations.connections == MLTCP_EVICTED;
    if (!evicted) {
      ++job->iterations.connections;
      job->iterations.joined_ns = now;
    }
    bpf_spin_unlock(&job->lock);
    if (!evicted) {
      /* Another processor may have evicted this job before the count was raised. The memory may now belong to a
       * different job, and this code then raised the count of that job. */
      if (bpf_map_lookup_elem(&mltcp_jobs, &key) == job) return;
      bpf_spin_lock(&job->lock);
      --job->iterations.connections;
      bpf_spin_unlock(&job->lock);
    }
  }
  flow->job.kind = MLTCP_JOB_NONE;
  flow->no_room = 1;
  flow->retry_ns = now + MLTCP_RETRY_NS;
}

MLTCP_INLINE void mltcp_leave(struct mltcp_flow* flow) {
  struct mltcp_job* job;
  if (flow->job.kind == MLTCP_JOB_NONE) return;
  job = bpf_map_lookup_elem(&mltcp_jobs, &flow->job);
  if (job) {
    bpf_spin_lock(&job->lock);
    if (job->iterations.connections > 0) --job->iterations.connections;
    if (flow->sending && job->iterations.sending > 0) --job->iterations.sending;
    bpf_spin_unlock(&job->lock);
  }
  flow->job.kind = MLTCP_JOB_NONE;
  flow->sending = 0;
}

MLTCP_INLINE const struct mltcp_settings* mltcp_settings_of(const struct mltcp_flow* flow) {
  const struct mltcp_settings* const own = bpf_map_lookup_elem(&mltcp_settings, &flow->job);
  struct mltcp_common* common;
  if (own) return own;
  common = mltcp_find_common();
  return common ? &common->settings : 0;
}

/* Called when a connection sends data while it had none in flight. */
MLTCP_INLINE void mltcp_begin_sending(struct mltcp_flow* flow) {
  const struct mltcp_settings* settings;
  struct mltcp_job* job;
  u64 now;
  if (flow->job.kind == MLTCP_JOB_NONE || flow->sending) return;
  settings = mltcp_settings_of(flow);
  job = bpf_map_lookup_elem(&mltcp_jobs, &flow->job);
  if (!settings || !job) return;
  flow->sending = 1;
  now = bpf_ktime_get_ns();
  bpf_spin_lock(&job->lock);
  if (job->iterations.sending == 0) mltcp_on_burst(&job->iterations, settings, now);
  ++job->iterations.sending;
  bpf_spin_unlock(&job->lock);
}

/* Stops counting the connection's data in flight. */
MLTCP_INLINE void mltcp_ignore(struct mltcp_flow* flow) {
  struct mltcp_job* const job = bpf_map_lookup_elem(&mltcp_jobs, &flow->job);
  flow->sending = 0;
  flow->ignored = 1;
  if (!job) return;
  bpf_spin_lock(&job->lock);
  if (job->iterations.sending > 0) --job->iterations.sending;
  bpf_spin_unlock(&job->lock);
}

/* Called when a connection begins, or changes to this algorithm. */
MLTCP_INLINE struct mltcp_flow* mltcp_on_init(struct sock* sk) {
  const struct tcp_sock* const tp = (struct tcp_sock*)sk;
  struct mltcp_flow* const flow = bpf_sk_storage_get(&mltcp_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
  u32 zero = 0;
  u64* users;
  if (!flow) return 0;
  mltcp_leave(flow);
  users = bpf_map_lookup_elem(&mltcp_users, &zero);
  if (users && !flow->user) {
    __sync_fetch_and_add(users, 1);
    flow->user = 1;
  }
  flow->carry = 0;
  flow->without_ecn = 0;
  flow->timeouts = 0;
  flow->clock_ns = 0;
  flow->clock_carry_ns = 0;
  mltcp_join(sk, flow);
  if (tp->packets_out > 0) mltcp_begin_sending(flow);
  return flow;
}

MLTCP_INLINE void mltcp_on_release(struct sock* sk) {
  struct mltcp_flow* const flow = mltcp_find_flow(sk);
  u32 zero = 0;
  u64* users;
  if (!flow) return;
  mltcp_leave(flow);
  users = bpf_map_lookup_elem(&mltcp_users, &zero);
  if (users && flow->user) __sync_fetch_and_add(users, -1);
  flow->user = 0;
}

MLTCP_INLINE void mltcp_on_event(struct sock* sk, enum tcp_ca_event ev) {
  const struct tcp_sock* const tp = (struct tcp_sock*)sk;
  struct mltcp_flow* flow;
  const struct mltcp_common* common;
  if (ev != CA_EVENT_TX_START) return;
  flow = mltcp_find_flow(sk);
  common = mltcp_find_common();
  if (!flow || !common) return;
  flow->clock_ns = 0;
  if (tp->packets_out > 0) { /* a timeout: data in flight is sent again */
    if (flow->sending && ++flow->timeouts >= MLTCP_TIMEOUTS_TO_IGNORE) mltcp_ignore(flow);
    return;
  }
  flow->ignored = 0;
  /* The name of the connection's job may have changed, or there may now be room for the job. */
  if (flow->sending || flow->mark != sk->sk_mark || flow->generation != common->generation ||
      (flow->no_room && bpf_ktime_get_ns() > flow->retry_ns)) {
    mltcp_leave(flow);
    mltcp_join(sk, flow);
  }
  mltcp_begin_sending(flow);
}

MLTCP_INLINE void mltcp_on_acked(struct sock* sk) {
  const struct tcp_sock* const tp = (struct tcp_sock*)sk;
  struct mltcp_flow* const flow = mltcp_find_flow(sk);
  const struct mltcp_settings* settings;
  struct mltcp_job* job;
  u64 bytes;
  u64 sent;
  u64 size;
  u64 now;
  int returns;
  int counts;
  int ended;
  if (!flow || flow->job.kind == MLTCP_JOB_NONE) return;
  bytes = tp->bytes_acked - flow->counted;
  flow->counted += bytes;
  if (bytes > 0) flow->timeouts = 0;
  settings = mltcp_settings_of(flow);
  job = bpf_map_lookup_elem(&mltcp_jobs, &flow->job);
  if (!settings || !job) {
    flow->gain = MLTCP_GAIN_ONE;
    return;
  }
  /* An ignored connection had data in flight all the time. So its acknowledgement continues the iteration and begins no
   * burst. Any other acknowledgement without data in flight is for a FIN, and does not end a silence. */
  returns = flow->ignored && bytes > 0;
  counts = returns || (flow->sending && bytes > 0);
  ended = flow->sending && tp->packets_out == 0;
  if (ended) flow->sending = 0;
  if (returns) {
    flow->ignored = 0;
    flow->sending = tp->packets_out > 0;
  }
  now = bpf_ktime_get_ns();
  bpf_spin_lock(&job->lock);
  if (counts) mltcp_on_delivered(&job->iterations, bytes, now);
  if (returns && flow->sending) ++job->iterations.sending;
  if (ended && job->iterations.sending > 0) --job->iterations.sending;
  sent = mltcp_sent(&job->iterations);
  size = mltcp_known_size(&job->iterations, settings);
  bpf_spin_unlock(&job->lock);
  flow->gain = mltcp_gain_after(settings, sent, size);
}

/*
 * Splits `acked` into the packets that slow start uses, and the rest for congestion avoidance. Only the rest is scaled.
 * `increase` is the kernel's cong_avoid().
 */
#define MLTCP_INCREASE(sk, ack, acked, flow, increase)                                                      \
  do {                                                                                                      \
    const struct tcp_sock* const tp_ = (struct tcp_sock*)(sk);                                              \
    const u32 below_threshold_ = tp_->snd_cwnd < tp_->snd_ssthresh ? tp_->snd_ssthresh - tp_->snd_cwnd : 0; \
    u64 scaled_;                                                                                            \
    if (!(flow) || (flow)->gain == MLTCP_GAIN_ONE || (acked) <= below_threshold_) {                         \
      increase(sk, ack, acked);                                                                             \
      break;                                                                                                \
    }                                                                                                       \
    if (below_threshold_ > 0) increase(sk, ack, below_threshold_);                                          \
    scaled_ = mltcp_scaled((acked)-below_threshold_, (flow)->gain, &(flow)->carry);                         \
    if (scaled_ > 0) increase(sk, ack, (u32)scaled_);                                                       \
  } while (0)

#endif
