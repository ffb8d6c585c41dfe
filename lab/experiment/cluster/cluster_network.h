// Interface of a network on which the jobs of a cluster start and end, at packet level or flow level.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Results of a job that has ended.
struct EndedJob {
  JobResult result;  ///< result without statistics; times of iterations are relative to the job's start
  std::uint64_t marked_packets = 0;
};

/// Traffic of a network since its creation.
struct ClusterTraffic {
  std::uint64_t packets = 0;  ///< packets through switch queues; 0 at flow level
  std::uint64_t marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  double bytes = 0;  ///< wire bytes sent on links between switches
  /// The part of `bytes` that was sent on saturated links while several jobs used the link; 0 at packet level.
  double contended_bytes = 0;
};

class ClusterNetwork {
 public:
  virtual ~ClusterNetwork() = default;

  /// Starts a job at now(). The job is done after `spec.iterations` iterations, which must be at least one. No earlier
  /// job may have used its number. The network replaces all settings in `spec.connection` except the congestion control
  /// algorithm.
  virtual void add(const JobSpec& spec) = 0;
  /// Removes a job and returns its results. The job need not be done.
  virtual EndedJob remove(std::uint32_t number) = 0;
  /// Sets the plan of job `number` at once. The plan's times are on the clock of now().
  virtual void set_plan(std::uint32_t number, const PhasePlan& plan) = 0;
  virtual void clear_plan(std::uint32_t number) = 0;
  /// Runs until `until`, or until at least one job is done. Returns the numbers of the jobs that are done, in ascending
  /// order. Throws RunError if a job fails.
  virtual std::vector<std::uint32_t> run(Nanos until) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;
  [[nodiscard]] virtual ClusterTraffic traffic() = 0;

  /// Sets a callback for progress displays, which run() calls every 4096 events. The callback may call only now().
  void on_work(std::function<void()> callback) { on_work_ = std::move(callback); }

 protected:
  void count_event() {
    constexpr std::uint64_t every = 4096;
    if (++events_ % every == 0 && on_work_) on_work_();
  }

 private:
  std::function<void()> on_work_;
  std::uint64_t events_ = 0;
};

/// Settings that all jobs share.
struct ClusterNetworkConfig {
  fabric::SwitchedNetworkConfig topology;
  cc::Parameters parameters;
};

/// Creates a network at packet level or at flow level. Throws InputError for an invalid configuration.
std::unique_ptr<ClusterNetwork> make_packet_network(const ClusterNetworkConfig& config);
std::unique_ptr<ClusterNetwork> make_flow_network(const ClusterNetworkConfig& config);
/// Creates a network that runs each job alone on a dedicated network, which `make` creates.
std::unique_ptr<ClusterNetwork> make_dedicated_network(std::function<std::unique_ptr<ClusterNetwork>()> make);

}  // namespace mltcp::experiment
