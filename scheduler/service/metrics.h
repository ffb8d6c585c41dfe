// Exports metrics of the service in the text format of Prometheus
// (prometheus.io/docs/instrumenting/exposition_formats): jobs, plans, time of planning, and requests by status. All
// labels are constants, so their number is limited and they need no escapes. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

class ServiceMetrics {
 public:
  /// Counts a request that was answered with the HTTP status `status`.
  void count(int status);

  [[nodiscard]] std::string text(const SchedulerService& service) const;

 private:
  /// The HTTP statuses that are counted. All other statuses count as the last one.
  static constexpr std::array<int, 8> kStatuses{200, 201, 400, 404, 405, 409, 503, 500};

  std::array<std::atomic<std::uint64_t>, kStatuses.size()> answers_{};
};

}  // namespace mltcp::service
