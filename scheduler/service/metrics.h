// What the service tells Prometheus: jobs, plans, how long planning took, what was asked and refused, in its text
// format (prometheus.io/docs/instrumenting/exposition_formats). All labels are words of this file, so that nothing has
// to be escaped, and bounded. Any thread may count and ask.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

class ServiceMetrics {
 public:
  /// A request was answered with `status`.
  void count(int status);

  [[nodiscard]] std::string text(const SchedulerService& service) const;

 private:
  /// Those that the API gives; others count as the last.
  static constexpr std::array<int, 8> kStatuses{200, 201, 400, 404, 405, 409, 503, 500};

  std::array<std::atomic<std::uint64_t>, kStatuses.size()> answers_{};
};

}  // namespace mltcp::service
