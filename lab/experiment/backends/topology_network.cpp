// A network of switches for jobs (see topology_network.h).
#include "mltcp/lab/experiment/backends/topology_network.h"

namespace mltcp::experiment {

void TopologyNetwork::add(std::uint32_t job, std::span<const workload::WorkerHosts> workers) {
  Ends& ends = jobs_[job];
  for (const workload::WorkerHosts& worker : workers) {
    ends.senders.push_back(&network_.add_port(worker.from, sender_port(job)));
    ends.receivers.push_back(&network_.add_port(worker.to, receiver_port(job)));
  }
}

void TopologyNetwork::remove(std::uint32_t job) {
  const Ends& ends = jobs_.at(job);
  for (const auto& hosts : {ends.senders, ends.receivers})
    for (sim::Host* host : hosts) network_.detach(*host);
  jobs_.erase(job);
}

std::vector<JobNetwork::LinkView> TopologyNetwork::links() const {
  std::vector<LinkView> views;
  for (const sim::SwitchedNetwork::NamedLink& link : network_.links())
    views.push_back({link.name, &network_.link_config(link.id), &network_.link_counters(link.id), link.usage});
  return views;
}

sim::Host& TopologyNetwork::at(const End& end) {
  const Ends& ends = jobs_.at(end.job);
  return *(end.side == Side::sender ? ends.senders : ends.receivers)[end.worker];
}

}  // namespace mltcp::experiment
