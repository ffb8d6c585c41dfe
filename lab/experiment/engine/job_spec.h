// A job's specification. Experiments and clusters create it; packet level and flow level use it; coordinators send it
// to hosts.
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
  /// The job. At packet level, its rate must be set. At flow level, rate 0 means the rate of the job's links.
  workload::Job job;
  std::uint32_t number = 0;  ///< number of the job in data packets; selects its hosts, ports, paths and random numbers
  /// The workers, at least one, with the hosts of their senders and receivers. On a dumbbell there is exactly one
  /// worker, whose hosts are ignored.
  std::vector<workload::WorkerHosts> workers = std::vector<workload::WorkerHosts>(1);
  /// Number of iterations to record, after which the job continues unrecorded; 0 to record all.
  std::uint32_t iterations = 0;
  bool stop_when_done = false;  ///< whether the job stops after the recorded iterations
  std::uint64_t seed = 1;
  cc::Augmentation augmentation;
  /// Settings of connections. At flow level, only the congestion control algorithm has an effect, on the latency of
  /// bursts. All fields below `connection` have no effect at flow level.
  ConnectionConfig connection;
  bool real_payload = false;  ///< whether messages carry real bytes that receivers verify
  /// Whether the transport detects iterations; the job then reports no iterations and accepts no plan.
  bool learn_iterations = false;
  Nanos pacing_quantum;  ///< pacing quantum for the job's rate limit, see JobConfig
  Nanos catch_up;
  /// Whether connection ids and tags are random numbers of the operating system. Outsiders could guess numbers drawn
  /// from the seed. Random ids also differ from the ids of earlier runs, whose packets may still be in flight. For
  /// ranks in real time only.
  bool unpredictable = false;

  /// Returns the job's configuration for the transport.
  [[nodiscard]] JobConfig job_config() const {
    JobConfig config;
    config.number = number;
    config.augmentation = augmentation;
    config.max_rate = job.rate;
    config.pacing_quantum = pacing_quantum;
    config.catch_up = catch_up;
    config.learn_iterations = learn_iterations;
    config.parameters = connection.parameters;
    return config;
  }
};

/// Maximum size of a segment in bytes. Messages are divided into segments.
inline constexpr Bytes kSegmentBytes = Bytes{256} * 1024;

/// Pacing quantum of real and modelled hosts: less than the transmission time of a 1500-byte packet at 1 Gbit/s. A
/// larger quantum would make flows send bursts. Hosts whose threads sleep send several packets at a time anyway,
/// because each sleep ends late.
inline constexpr Nanos kRealPacingQuantum{10'000};

/// Returns the settings of the shards of a worker's sender and receiver.
inline ShardConfig shard_config(std::uint64_t seed, std::uint32_t number, std::uint32_t worker,
                                std::uint32_t connections) {
  ShardConfig config;
  config.max_connections = connections;
  config.max_jobs = 1;
  config.seed = seed * 1000 + number + (std::uint64_t{worker} << 32);
  return config;
}

}  // namespace mltcp::experiment
