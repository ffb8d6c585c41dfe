// Metrics of the service in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats): jobs, plans,
// time of planning, answered and refused requests. All labels are constants of this file, so they are bounded and need
// no escapes. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

class ServiceMetrics {
 public:
  /// Counts a request answered with `status`.
  void count(int status);

  [[nodiscard]] std::string text(const SchedulerService& service) const;

 private:
  /// Statuses of the API; others count as the last.
  static constexpr std::array<int, 8> kStatuses{200, 201, 400, 404, 405, 409, 503, 500};

  std::array<std::atomic<std::uint64_t>, kStatuses.size()> answers_{};
};

}  // namespace mltcp::service
