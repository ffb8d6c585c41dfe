// A network of switches in virtual time, for jobs. The sender and the receiver of each worker have UDP ports derived
// from the job's number. A job's flows therefore take the same paths whether the job runs alone or with others. Jobs
// can be added and removed at any time.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::experiment {

/// Return the UDP port of a job's senders, or of its receivers.
constexpr std::uint16_t sender_port(std::uint32_t job) { return static_cast<std::uint16_t>(4793 + 2 * job); }
constexpr std::uint16_t receiver_port(std::uint32_t job) { return static_cast<std::uint16_t>(sender_port(job) + 1); }

class TopologyNetwork final : public JobNetwork {
 public:
  /// Throws InputError for an invalid configuration. If `options.meters` is false, the links in links() have no usage
  /// meters.
  TopologyNetwork(const fabric::SwitchedNetworkConfig& config, const sim::SwitchedNetworkOptions& options)
      : network_(config, options) {}

  /// Creates the ports of a job, once per job. Throws InputError if a host does not exist.
  void add(std::uint32_t job, std::span<const workload::WorkerHosts> workers);
  /// Detaches the job's ports from the network. The objects attached to them may be destroyed afterwards.
  void remove(std::uint32_t job);
  [[nodiscard]] const sim::SwitchedNetwork& network() const { return network_; }

  PacketIo& host(const End& end) override { return at(end); }
  const Address& address(const End& end) override { return at(end).address(); }
  void attach(const End& end, Pollable& pollable) override { network_.attach(at(end), pollable); }
  void wake(const End& end) override { network_.wake(at(end)); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override;
  [[nodiscard]] Bytes queue_bytes(std::size_t link) const override {
    return network_.queue_bytes(network_.links()[link].id);
  }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return std::nullopt; }

 private:
  struct Ends {  // indexed by worker
    std::vector<sim::Host*> senders;
    std::vector<sim::Host*> receivers;
  };
  sim::Host& at(const End& end);

  sim::SwitchedNetwork network_;
  std::map<std::uint32_t, Ends> jobs_;
};

}  // namespace mltcp::experiment
