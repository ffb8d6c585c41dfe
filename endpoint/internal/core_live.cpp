// An endpoint's part of a snapshot (see core.h and live_endpoints.h). The thread that requests the snapshot builds it.
// A shard's driver only copies counters into memory that was allocated before.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "mltcp/endpoint/internal/core.h"
#include "mltcp/endpoint/live/describe.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::endpoint {
namespace {

/// The state of a transport connection, copied by the driver of its shard.
struct Seen {
  Address remote;
  std::uint32_t job = 0;  ///< number of the job's slot plus 1; 0 if none
  ConnectionStats stats;
};

}  // namespace

void Core::show(live::Snapshot& shown) noexcept {
  try {
    if (usable() != Code::ok) return;
    if (shown.name.empty())
      shown.name = config_.datapath.device + " at " + to_text(config_.address);
    else
      shown.name += ", " + to_text(config_.address);
    show_ports(shown);
    show_jobs(shown);
    show_connections(shown);
    show_claims(shown);
  } catch (const std::exception&) {  // without memory, the snapshot stays incomplete
  }
}

void Core::show_ports(live::Snapshot& shown) {
  EndpointReport report;
  if (this->report(report) != Code::ok || !live::has_space(shown.ports, shown)) return;
  live::PortView& port = shown.ports.emplace_back();
  port.name = config_.datapath.device + " " + to_text(config_.address);
  port.is_up = why_link_is_down().empty();
  port.dropped_packets = report.losses.missed + report.losses.handover_full + report.losses.unsent;
  port.bad_packets = report.losses.errors + report.losses.rejected;
  live::add_packets(report.packets, port);
}

void Core::show_jobs(live::Snapshot& shown) {
  struct Known {
    JobHandle handle;
    std::uint32_t number;
  };
  std::vector<Known> known;
  {
    const std::lock_guard lock(set_up_);
    for (std::size_t slot = 0; slot < jobs_.size(); ++slot)
      if (jobs_[slot].used)
        known.push_back({handle_of(0, static_cast<std::uint32_t>(slot), jobs_[slot].generation), jobs_[slot].number});
  }
  for (const auto& [handle, number] : known) {
    JobReport report;
    if (this->report(handle, report) != Code::ok || !live::has_space(shown.jobs, shown)) continue;
    live::JobView& job = shown.jobs.emplace_back();
    job.name = std::to_string(number);
    job.iteration = report.iteration;
    job.bytes_ratio = report.bytes_ratio;
    job.gain = report.gain;
    job.connections = report.connections;
  }
}

void Core::show_connections(live::Snapshot& shown) {
  std::vector<Seen> seen;
  for (const auto& worker : workers_) {
    seen.clear();
    seen.reserve(live::kMaxRows);
    std::uint64_t left_out = 0;
    on_worker(*worker, [&]() noexcept {
      if (!worker->has_shard()) return;
      for (const Link& link : worker->links()) {
        for (const ConnectionId id : link.transport) {
          if (id == 0) continue;
          const auto stats = worker->shard().stats(id);
          if (!stats) continue;
          if (seen.size() == seen.capacity())
            ++left_out;
          else
            seen.push_back({link.remote, link.job.load(std::memory_order_relaxed), *stats});
        }
      }
    });
    shown.left_out += left_out;
    for (const Seen& one : seen) {
      if (!live::has_space(shown.connections, shown)) continue;
      live::ConnectionView& view = shown.connections.emplace_back();
      view.peer = to_text(one.remote);
      if (one.job != 0) view.job = std::to_string(jobs_[one.job - 1].number.load(std::memory_order_relaxed));
      view.transport = one.stats;
    }
  }
}

void Core::show_claims(live::Snapshot& shown) {
  std::vector<JobClaim> claims;
  if (report(claims) == Code::ok) live::add_claims(claims, shown);
}

}  // namespace mltcp::endpoint
