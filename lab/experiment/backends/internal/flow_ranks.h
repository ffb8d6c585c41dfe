// The ranks of a job with programs (lab/workload/rank_program.h) at flow level. Each rank has its own iteration engine,
// its own progress and its own gate, as its driver has at packet level (rank_driver.h); two ranks that exchange data
// have a flow in each direction, on which messages go in the order of the sender's list.
//
// A send is done a round trip after its last byte has left, a receive half of one. Messages that are barriers take a
// byte and a round trip like others. A rank that nothing holds up may be any number of iterations ahead of those that
// it sends to; over packets it waits for them. Not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/flow_fabric.h"
#include "mltcp/lab/experiment/engine/iteration_engine.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/sim/event_queue.h"
#include "mltcp/lab/sim/flow_network.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Of a full packet.
double payload_bytes(std::uint32_t mtu);

/// A burst on a path that has been idle.
struct FlowBurst {
  double rate = 0;  ///< bytes per nanosecond that the path carries
  Nanos round_trip;
  std::size_t connections = 1;
  Bytes bytes = 0;
  Rate limit;  ///< of the sender; 0: none
};
/// Whether a connection begins with slow start again after so long a silence.
bool restarts_after(Nanos silence, Nanos round_trip);
/// What the burst loses in slow start (flow_level.h).
Nanos slow_start_loss(const FlowBurst& burst, std::uint32_t mtu);

class FlowRanks {
 public:
  using Network = sim::FlowNetwork;

  /// Adds its flows to the network. `burst_latency`: see FlowLevelOptions. Throws InputError if it can't be run there.
  FlowRanks(Network& network, const FlowFabric& fabric, std::optional<Nanos> burst_latency, JobSpec spec);
  ~FlowRanks();
  FlowRanks(const FlowRanks&) = delete;
  FlowRanks& operator=(const FlowRanks&) = delete;

  /// Flows of the network, by number of the channel.
  [[nodiscard]] std::vector<Network::FlowId> flows() const;
  /// Links that its data uses.
  [[nodiscard]] const std::set<std::uint32_t>& links() const { return links_; }

  void start(Nanos at);
  /// When advance() must be called.
  [[nodiscard]] Nanos wake() const { return timers_.empty() ? Nanos::never() : timers_.time(); }
  /// Moves all ranks on that are due. Calls `recorded` for each iteration that all ranks have recorded.
  void advance(const std::function<void(std::uint32_t iteration, Nanos start, Nanos length)>& recorded);
  void on_finished(std::uint32_t channel, const Network::Finished& finished);

  PlanState set_plan(const PhasePlan& plan);
  void clear_plan();
  [[nodiscard]] GateStats gate_stats() const;
  [[nodiscard]] JobResult result() const;
  [[nodiscard]] std::size_t recorded() const { return recorded_; }
  [[nodiscard]] bool done() const { return spec_.iterations > 0 && recorded_ >= spec_.iterations; }

 private:
  struct Channel {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Network::FlowId flow = 0;
    double rate = 0;
    Nanos round_trip;
    Nanos last_end;
    std::vector<std::uint32_t> sends;     ///< operations of `from`, in order
    std::vector<std::uint32_t> receives;  ///< of `to`
    std::size_t next = 0;                 ///< of sends, in this iteration
    std::uint64_t arrived = 0;            ///< messages, in all iterations
    std::vector<Nanos> arrivals;          ///< of two iterations, by message
  };
  struct Rank;

  void add_channels();
  void add_flow(Channel& channel, const std::map<std::uint32_t, double>& costs, const FlowPath& path);
  void post(Rank& rank);
  void post(Rank& rank, Channel& channel);
  void schedule(const Rank& rank);

  Network& network_;
  const FlowFabric& fabric_;
  const std::optional<Nanos> burst_latency_;
  const JobSpec spec_;
  const bool slow_start_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Channel> channels_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_of_;  ///< by from and to
  std::set<std::uint32_t> links_;
  sim::EventQueue timers_;                      ///< by rank
  std::vector<std::uint32_t> ranks_done_;       ///< by iteration: number of ranks that have recorded it
  std::vector<std::pair<Nanos, Nanos>> spans_;  ///< by iteration: first start, and latest end
  std::size_t recorded_ = 0;
  std::optional<Nanos> lead_;
};

}  // namespace mltcp::experiment
