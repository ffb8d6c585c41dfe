// A job's specification: created from experiments and clusters, used at packet and flow level, and sent to hosts.
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
  bool stop_when_done = false;   ///< send nothing after the recorded iterations
  std::uint64_t seed = 1;
  cc::Augmentation augmentation;
  /// Flow level uses only its congestion control, for the latency of bursts, and none of the members below.
  ConnectionConfig connection;
  bool real_payload = false;      ///< messages carry real bytes, verified on arrival
  bool learn_iterations = false;  ///< the transport learns iterations, the job reports none and takes no plan
  Nanos pacing_quantum;           ///< for the job's rate, see JobConfig
  Nanos catch_up;
  /// Connection ids and tags are random numbers of the system, not of the seed, which others may guess. They also
  /// differ from those of earlier runs, whose packets may still be in flight. For real time; ranks only.
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

/// Pacing quantum of real and modelled hosts: less than the time of a 1500-byte packet at 1 Gbps. A larger quantum
/// would make flows send bursts. Hosts that sleep send several packets at a time anyway, as each sleep ends late.
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
