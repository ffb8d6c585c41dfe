// A job as something runs it, whatever that is: what experiments and clusters make of their jobs, what packets and
// flows are driven by, and what hosts are told.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/transport/types.h"
#include "mltcp/workload/job.h"
#include "mltcp/workload/worker_hosts.h"

namespace mltcp::experiment {

struct JobSpec {
  workload::Job job;         ///< packets need its rate; at flow level 0 is as much as its links carry
  std::uint32_t number = 0;  ///< in data packets, of its ends, ports and paths, and of its random numbers
  /// That send; at least one. On a dumbbell there is one, which may say anything.
  std::vector<workload::WorkerHosts> workers = std::vector<workload::WorkerHosts>(1);
  std::uint32_t iterations = 0;  ///< to record; it goes on afterwards; 0: all
  bool stop_when_done = false;   ///< sends nothing more then; packets only, like all that follow but the augmentation
  std::uint64_t seed = 1;
  cc::Augmentation augmentation;
  ConnectionConfig connection;    ///< flow level: how bursts begin follows from its congestion control
  bool real_payload = false;      ///< messages carry bytes, which are verified on arrival
  bool learn_iterations = false;  ///< the transport isn't told where they begin: the job takes no plan
  Nanos pacing_quantum;           ///< of the job's rate, see JobConfig; like the next
  Nanos catch_up;
  /// Of connection ids: other than in earlier runs, where packets of those may still be on their way.
  std::uint64_t salt = 0;

  /// The job as the transport knows it.
  [[nodiscard]] JobConfig job_config() const {
    JobConfig config;
    config.number = number;
    config.augmentation = augmentation;
    config.max_rate = job.rate;
    config.pacing_quantum = pacing_quantum;
    config.catch_up = catch_up;
    config.learn_iterations = learn_iterations;
    return config;
  }
};

/// Messages are cut into pieces of at most so many bytes.
inline constexpr Bytes kSegmentBytes = Bytes{256} * 1024;

/// Paced packets of real hosts, and of modelled ones, are gathered so long: no longer than a packet of 1500 bytes takes
/// at 1 Gbps. Hosts that sleep gather enough as it is, since each sleep ends late; to gather more would have flows
/// leave in bursts.
inline constexpr Nanos kRealPacingQuantum{10'000};

/// The shards of a job's worker, the sending and the receiving one, for `connections`.
inline ShardConfig shard_config(std::uint64_t seed, std::uint32_t number, std::uint32_t worker,
                                std::uint32_t connections) {
  ShardConfig config;
  config.max_connections = connections;
  config.max_jobs = 1;
  config.seed = seed * 1000 + number + (std::uint64_t{worker} << 32);
  return config;
}

}  // namespace mltcp::experiment
