// A job's specification for whatever executes it: created from experiments and clusters, used by drivers at packet and
// flow level, and sent to hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/worker_hosts.h"
#include "mltcp/transport/types.h"

namespace mltcp::experiment {

struct JobSpec {
  workload::Job job;         ///< packet level needs its rate; at flow level 0 means the rate of its links
  std::uint32_t number = 0;  ///< in data packets; determines ends, ports, paths and random numbers
  /// The sending workers; at least one. On a dumbbell there is exactly one, whose hosts are ignored.
  std::vector<workload::WorkerHosts> workers = std::vector<workload::WorkerHosts>(1);
  std::uint32_t iterations = 0;  ///< number to record, after which the job continues; 0: all
  bool stop_when_done = false;  ///< send nothing after the recorded iterations; packet level only, as all members below
                                ///< except the augmentation
  std::uint64_t seed = 1;
  cc::Augmentation augmentation;
  ConnectionConfig connection;    ///< flow level uses only its congestion control, for the latency of bursts
  bool real_payload = false;      ///< messages carry real bytes, verified on arrival
  bool learn_iterations = false;  ///< by the transport, to which iterations are not reported: the job takes no plan
  Nanos pacing_quantum;           ///< of the job's rate, see JobConfig
  Nanos catch_up;
  /// Ids and tags of connections are the system's random numbers, and not the seed's, which others may guess; so they
  /// also differ from those of earlier runs, whose packets may still be in flight. For real time; ranks only.
  bool unpredictable = false;

  /// The job's configuration for the transport.
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

/// Maximum size of the segments into which messages are cut.
inline constexpr Bytes kSegmentBytes = Bytes{256} * 1024;

/// Pacing quantum of real hosts and of modelled ones: less than a packet of 1500 bytes takes at 1 Gbps. Hosts that
/// sleep gather enough packets anyway, as each sleep ends late; a larger quantum would make flows leave in bursts.
inline constexpr Nanos kRealPacingQuantum{10'000};

/// Settings of a worker's sending and receiving shards with `connections` connections.
inline ShardConfig shard_config(std::uint64_t seed, std::uint32_t number, std::uint32_t worker,
                                std::uint32_t connections) {
  ShardConfig config;
  config.max_connections = connections;
  config.max_jobs = 1;
  config.seed = seed * 1000 + number + (std::uint64_t{worker} << 32);
  return config;
}

}  // namespace mltcp::experiment
