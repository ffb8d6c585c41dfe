// Scheduler services for tests: a small network and jobs on it.
#pragma once

#include <string>
#include <vector>

#include "../message_of.h"
#include "../temporary_folder.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service::testing_services {

using namespace literals;

constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;

/// Returns a network of two racks with four hosts each. All links have 10 Gbps and each rack has one uplink, so two
/// jobs that cross racks compete.
inline Topology two_racks() { return Topology::leaf_spine({2, 1, 4, Rate::from_gbps(10), Rate::from_gbps(10)}); }

inline std::vector<std::string> eight_names() { return {"a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"}; }

inline ServiceOptions options_in(const std::filesystem::path& state) {
  ServiceOptions options;
  options.state = state;
  options.host_names = eight_names();
  options.slots_per_host = 4;
  options.epoch_unix_ns = kEpoch;
  options.cluster.threads = 1;
  return options;
}

/// Returns a job that computes first, and then sends at the hosts' rate for the last `busy` of each period.
inline JobRequest job(const std::string& id, Nanos period = 100_ms, Nanos busy = 40_ms, std::uint32_t workers = 2) {
  JobRequest request;
  request.id = id;
  request.name = "name of " + id;
  request.workers = workers;
  request.demand = {period, {{period - busy, period, Rate::from_gbps(10)}}};
  return request;
}

}  // namespace mltcp::service::testing_services
