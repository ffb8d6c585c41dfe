// What the service tells Prometheus: jobs, plans, what was asked and refused, and how long planning took, in its text
// format (prometheus.io/docs/instrumenting/exposition_formats). All labels are words of this file, so that nothing has
// to be escaped, and bounded. Any thread may count and ask.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/service/scheduler_service.h"

namespace mltcp::service {

/// What takes the planner's time.
enum class Planning : std::uint8_t { none, arrive, depart, rank };

class ServiceMetrics {
 public:
  /// A request was answered with `status` in `took`.
  void count(Planning planning, int status, Nanos took);

  [[nodiscard]] std::string text(const SchedulerService& service) const;

 private:
  /// Those that the API gives; others count as the last.
  static constexpr std::array<int, 8> kStatuses{200, 201, 400, 404, 405, 409, 503, 500};
  static constexpr std::array<std::string_view, 3> kPlannings{"arrive", "depart", "rank"};

  struct Planned {
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::int64_t> took_ns{0};
    std::atomic<std::int64_t> longest_ns{0};
  };
  std::array<std::atomic<std::uint64_t>, kStatuses.size()> answers_{};
  std::array<Planned, kPlannings.size()> planned_;
};

}  // namespace mltcp::service
