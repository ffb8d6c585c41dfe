// Networks on which jobs start and end during a run (see cluster_network.h).
#include "mltcp/lab/experiment/cluster/cluster_network.h"

#include <algorithm>
#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/backends/topology_network.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

sim::SwitchedNetworkOptions packet_options() {
  sim::SwitchedNetworkOptions options;
  options.virtual_payload = true;
  return options;
}

class PacketNetwork final : public ClusterNetwork {
 public:
  explicit PacketNetwork(const ClusterNetworkConfig& config)
      : topology_(config.topology), packets_(config.topology, packet_options()) {
    cc::Parameters parameters = config.parameters;
    parameters.fit(
        {topology_.round_trip_delay() + topology_.host_rate().time_for(topology_.mtu) * 2, topology_.host_rate()});
    parameters_ = std::make_shared<const cc::Parameters>(parameters);
  }

  void add(const JobSpec& job) override {
    JobSpec spec = job;
    spec.job.start = Nanos(0);
    spec.stop_when_done = true;
    spec.connection.ecn = topology_.ecn.enabled;
    spec.connection.parameters = parameters_;
    if (cc::find_algorithm(spec.connection.congestion_control).capabilities.rate_based)
      spec.connection.max_rate = spec.job.rate;
    // This round-trip time is assumed before the first measurement. It includes the delay of a full buffer, to avoid
    // spurious timeouts.
    const Bytes buffer = topology_.memory.bytes > 0 ? topology_.memory.bytes : topology_.buffer_bytes;
    spec.connection.initial_rtt =
        std::clamp(topology_.round_trip_delay() + topology_.host_rate().time_for(buffer), Nanos(1_ms), Nanos(60_s));
    packets_.add(spec.number, spec.workers);
    jobs_[spec.number].driver = std::make_unique<JobDriver>(packets_, spec);
  }

  EndedJob remove(std::uint32_t number) override {
    const Running& job = jobs_.at(number);
    EndedJob ended;
    ended.result = job.driver->result();
    ended.marked_packets = job.driver->marked_packets();
    packets_.remove(number);
    jobs_.erase(number);
    return ended;
  }

  void set_plan(std::uint32_t number, const PhasePlan& plan) override { jobs_.at(number).driver->set_plan(plan); }
  void clear_plan(std::uint32_t number) override { jobs_.at(number).driver->clear_plan(); }

  std::vector<std::uint32_t> run(Nanos until) override {
    for (;;) {
      const auto due = [](const auto& entry) {
        const Running& job = entry.second;
        return job.started ? job.driver->done() : job.driver->connected();
      };
      const bool stopped = packets_.run(until, [&] {
        count_event();
        return std::ranges::any_of(jobs_, due);
      });
      std::vector<std::uint32_t> done;
      for (auto& [number, job] : jobs_) {
        if (job.started && job.driver->done()) done.push_back(number);
        if (job.started || !job.driver->connected()) continue;
        job.driver->start(packets_.now());
        job.started = true;
      }
      if (!stopped || !done.empty()) return done;
    }
  }
  [[nodiscard]] Nanos now() const override { return packets_.now(); }

  [[nodiscard]] ClusterTraffic traffic() override {
    const sim::SwitchedNetwork& network = packets_.network();
    ClusterTraffic traffic;
    for (const auto& link : network.links()) {
      const fabric::LinkCounters& counters = network.link_counters(link.id);
      traffic.marked_packets += counters.marked_packets;
      traffic.dropped_packets += counters.dropped_packets;
      const Topology& topology = network.topology();
      if (!topology.is_host(topology.from(link.id))) traffic.packets += counters.sent_packets;
      if (topology.between_switches(link.id)) traffic.bytes += static_cast<double>(counters.sent_bytes);
    }
    return traffic;
  }

 private:
  struct Running {
    std::unique_ptr<JobDriver> driver;
    bool started = false;
  };
  const fabric::SwitchedNetworkConfig topology_;
  TopologyNetwork packets_;
  std::shared_ptr<const cc::Parameters> parameters_;
  std::map<std::uint32_t, Running> jobs_;
};

class FlowLevelNetwork final : public ClusterNetwork {
 public:
  explicit FlowLevelNetwork(const ClusterNetworkConfig& config)
      : topology_(config.topology.topology), cluster_(flow_fabric(config.topology)) {
    cluster_.on_iteration([this](FlowLevelCluster::JobId job, const FlowLevelCluster::Iteration& iteration) {
      if (iteration.last) done_.push_back(numbers_.at(job));
    });
  }

  void add(const JobSpec& job) override {
    JobSpec spec = job;
    spec.job.start = Nanos(0);
    starts_[job.number] = now();
    const FlowLevelCluster::JobId id = cluster_.add_job(std::move(spec));
    ids_[job.number] = id;
    numbers_[id] = job.number;
  }
  EndedJob remove(std::uint32_t number) override {
    const FlowLevelCluster::JobId id = ids_.at(number);
    EndedJob ended;
    ended.result = cluster_.job(id).result();
    for (Nanos& start : ended.result.starts) start -= starts_.at(number);
    cluster_.remove(id);
    ids_.erase(number);
    numbers_.erase(id);
    starts_.erase(number);
    return ended;
  }
  void set_plan(std::uint32_t number, const PhasePlan& plan) override { cluster_.job(ids_.at(number)).set_plan(plan); }
  void clear_plan(std::uint32_t number) override { cluster_.job(ids_.at(number)).clear_plan(); }

  std::vector<std::uint32_t> run(Nanos until) override {
    done_.clear();
    cluster_.run(until, [this] {
      count_event();
      return !done_.empty();
    });
    std::ranges::sort(done_);
    return std::move(done_);
  }
  [[nodiscard]] Nanos now() const override { return cluster_.now(); }

  [[nodiscard]] ClusterTraffic traffic() override {
    ClusterTraffic traffic;
    for (std::uint32_t link = 0; link < topology_->links(); ++link) {
      if (!topology_->between_switches(link)) continue;
      const sim::FlowNetwork::LinkUse use = cluster_.use(link);
      traffic.bytes += use.wire_bytes;
      traffic.contended_bytes += use.contended_wire_bytes;
    }
    return traffic;
  }

 private:
  const std::shared_ptr<const Topology> topology_;
  FlowLevelCluster cluster_;
  std::map<std::uint32_t, FlowLevelCluster::JobId> ids_;
  std::map<FlowLevelCluster::JobId, std::uint32_t> numbers_;
  std::map<std::uint32_t, Nanos> starts_;
  std::vector<std::uint32_t> done_;
};

/// A network that runs each job alone. add() simulates a job from start to end on a dedicated network; run() only
/// advances the time.
class DedicatedNetwork final : public ClusterNetwork {
 public:
  explicit DedicatedNetwork(std::function<std::unique_ptr<ClusterNetwork>()> make) : make_(std::move(make)) {}

  void add(const JobSpec& job) override {
    const std::unique_ptr<ClusterNetwork> network = make_();
    network->add(job);
    if (network->run(Nanos::never()).empty())
      throw RunError(
          "a job alone on the network stopped making progress; give the network a buffer of more than a few packets");
    jobs_[job.number] = {now_ + network->now(), network->remove(job.number)};
    const ClusterTraffic own = network->traffic();
    traffic_.packets += own.packets;
    traffic_.marked_packets += own.marked_packets;
    traffic_.dropped_packets += own.dropped_packets;
    traffic_.bytes += own.bytes;
    traffic_.contended_bytes += own.contended_bytes;
  }
  EndedJob remove(std::uint32_t number) override {
    EndedJob ended = std::move(jobs_.at(number).ended);
    jobs_.erase(number);
    return ended;
  }
  void set_plan(std::uint32_t /*number*/, const PhasePlan& /*plan*/) override {}
  void clear_plan(std::uint32_t /*number*/) override {}
  std::vector<std::uint32_t> run(Nanos until) override {
    for (const auto& [number, job] : jobs_) until = std::min(until, job.end);
    now_ = until;
    std::vector<std::uint32_t> done;
    for (const auto& [number, job] : jobs_)
      if (job.end <= now_) done.push_back(number);
    return done;
  }
  [[nodiscard]] Nanos now() const override { return now_; }
  [[nodiscard]] ClusterTraffic traffic() override { return traffic_; }

 private:
  struct Done {
    Nanos end;
    EndedJob ended;
  };
  std::function<std::unique_ptr<ClusterNetwork>()> make_;
  Nanos now_;
  std::map<std::uint32_t, Done> jobs_;
  ClusterTraffic traffic_;
};

}  // namespace

std::unique_ptr<ClusterNetwork> make_packet_network(const ClusterNetworkConfig& config) {
  return std::make_unique<PacketNetwork>(config);
}

std::unique_ptr<ClusterNetwork> make_flow_network(const ClusterNetworkConfig& config) {
  return std::make_unique<FlowLevelNetwork>(config);
}

std::unique_ptr<ClusterNetwork> make_dedicated_network(std::function<std::unique_ptr<ClusterNetwork>()> make) {
  return std::make_unique<DedicatedNetwork>(std::move(make));
}

}  // namespace mltcp::experiment
