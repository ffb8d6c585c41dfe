// A network on which the jobs of a cluster come and go, at packet level or at flow level, behind one interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// What a job has done.
struct EndedJob {
  JobResult result;  ///< starts relative to the job's start; no statistics
  std::uint64_t marked_packets = 0;
};

/// What a network has carried so far.
struct ClusterTraffic {
  std::uint64_t packets = 0;  ///< that passed a queue of a switch; 0 at flow level, like the next two
  std::uint64_t marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  double bytes = 0;            ///< over links between switches, on the wire
  double contended_bytes = 0;  ///< of those, while several jobs were on a link that they filled; 0 at packet level
};

class ClusterNetwork {
 public:
  virtual ~ClusterNetwork() = default;

  /// The job starts now, and ends after its iterations, of which there are some. Its number is not given again. What
  /// the network decides (ConnectionConfig but for its congestion control) it sets itself.
  virtual void add(const JobSpec& spec) = 0;
  /// A job that is done or not leaves; its number is no longer known.
  virtual EndedJob remove(std::uint32_t number) = 0;
  /// From now on; times of plans are those of now().
  virtual void set_plan(std::uint32_t number, const PhasePlan& plan) = 0;
  virtual void clear_plan(std::uint32_t number) = 0;
  /// Runs until `until`, or until jobs are done; returns those, in the order of their numbers. Throws RunError when a
  /// job fails.
  virtual std::vector<std::uint32_t> run(Nanos until) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;
  [[nodiscard]] virtual ClusterTraffic traffic() = 0;

  /// Called every few thousand events of run(), to tell how far it is; may ask for now() and nothing else.
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

/// What is alike for all jobs.
struct ClusterNetworkConfig {
  sim::SwitchedNetworkConfig topology;
  cc::Parameters parameters;
};

/// Throws InputError for a configuration that can't be built.
std::unique_ptr<ClusterNetwork> make_packet_network(const ClusterNetworkConfig& config);
std::unique_ptr<ClusterNetwork> make_flow_network(const ClusterNetworkConfig& config);
/// A dedicated network: each job runs on one of its own, which `make` makes.
std::unique_ptr<ClusterNetwork> make_dedicated_network(std::function<std::unique_ptr<ClusterNetwork>()> make);

}  // namespace mltcp::experiment
