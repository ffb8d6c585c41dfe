// Assigns the ranks of an experiment to hosts (see host_layout.h).
#include "mltcp/lab/experiment/hosts/host_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::experiment {

std::vector<HostLayout::Rank> HostLayout::ranks_of(std::uint32_t host) const {
  std::vector<Rank> result;
  for (std::uint32_t job = 0; job < jobs.size(); ++job)
    for (std::uint32_t rank = 0; rank < jobs[job].size(); ++rank)
      if (jobs[job][rank] == host) result.push_back({job, rank});
  return result;
}

HostLayout host_layout(const Experiment& experiment) {
  HostLayout layout;
  const auto receiver = static_cast<std::uint32_t>(experiment.jobs.size());
  const auto placements = experiment.topology ? workload::place(experiment.jobs, experiment.topology->hosts())
                                              : std::vector<workload::Placement>();
  for (std::uint32_t job = 0; job < experiment.jobs.size(); ++job) {
    if (!experiment.jobs[job].hosts.empty())
      layout.jobs.push_back(experiment.jobs[job].hosts);
    else if (experiment.topology)
      layout.jobs.push_back({placements[job].workers.front().from, placements[job].workers.front().to});
    else
      layout.jobs.push_back({job, receiver});
    layout.hosts.insert(layout.hosts.end(), layout.jobs.back().begin(), layout.jobs.back().end());
  }
  std::ranges::sort(layout.hosts);
  layout.hosts.erase(std::unique(layout.hosts.begin(), layout.hosts.end()), layout.hosts.end());
  return layout;
}

std::string roles_of(const Experiment& experiment, const HostLayout& layout, std::uint32_t host) {
  constexpr std::size_t max = 4;
  const std::vector<HostLayout::Rank> ranks = layout.ranks_of(host);
  std::vector<std::string> roles;
  for (std::size_t i = 0; i < std::min(max, ranks.size()); ++i) {
    const workload::Job& job = experiment.jobs[ranks[i].job];
    roles.push_back(job.hosts.empty()
                        ? fmt::format("{} {}", ranks[i].rank == 0 ? "sends for" : "receives for", in_quotes(job.name))
                        : fmt::format("rank {} of {}", ranks[i].rank, in_quotes(job.name)));
  }
  if (ranks.size() > max) roles.push_back(fmt::format("{} more", ranks.size() - max));
  return fmt::format("{}", fmt::join(roles, ", "));
}

std::string describe_host(const Experiment& experiment, const HostLayout& layout, std::uint32_t host) {
  return fmt::format("host {} ({})", host, roles_of(experiment, layout, host));
}

}  // namespace mltcp::experiment
