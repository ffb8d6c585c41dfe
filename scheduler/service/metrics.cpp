// Writes the metrics of the service as text (see metrics.h).
#include "mltcp/scheduler/service/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string_view>
#include <vector>

namespace mltcp::service {
namespace {

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    out_ += fmt::format("# HELP mltcp_scheduler_{0} {2}\n# TYPE mltcp_scheduler_{0} {1}\n", name, type, help);
  }
  /// Writes one sample. `labels` includes the braces, or is empty.
  template <typename Value>
  void sample(std::string_view name, std::string_view labels, Value value) {
    out_ += fmt::format("mltcp_scheduler_{}{} {}\n", name, labels, value);
  }
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    family(name, "gauge", help);
    sample(name, "", value);
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Labels of the kinds of planning, in the order of enum Planning.
constexpr std::array<std::string_view, 3> kPlannings{"arrive", "depart", "rank"};

}  // namespace

void ServiceMetrics::count(int status) {
  const auto* const found = std::ranges::find(kStatuses, status);
  const auto which = static_cast<std::size_t>(found == kStatuses.end() ? kStatuses.size() - 1
                                                                       : std::size_t(found - kStatuses.begin()));
  answers_[which].fetch_add(1, std::memory_order_relaxed);
}

std::string ServiceMetrics::text(const SchedulerService& service) const {
  const std::vector<JobPlan> plans = service.plans();
  const auto with_slots = std::ranges::count_if(plans, [](const JobPlan& plan) { return plan.slots; });
  const std::vector<std::uint32_t> free = service.free_slots();
  std::array<PlanningStats, kPlannings.size()> planned;
  for (std::size_t i = 0; i < planned.size(); ++i) planned[i] = service.planning(static_cast<Planning>(i));
  Text out;
  out.gauge("jobs", "Running jobs.", plans.size());
  out.gauge("jobs_with_slots", "Running jobs that have time slots.", with_slots);
  out.gauge("hosts", "Hosts of the topology.", free.size());
  out.gauge("free_slots", "Slots of all hosts without a worker.",
            std::accumulate(free.begin(), free.end(), std::uint64_t{0}));
  out.gauge("revision", "Revision of the plans; it continues after restarts.", service.revision());
  out.family("plans_total", "counter", "Plans made, for jobs that arrived or departed and for ranked placements.");
  for (std::size_t i = 0; i < kPlannings.size(); ++i)
    out.sample("plans_total", fmt::format("{{operation=\"{}\"}}", kPlannings[i]), planned[i].done);
  out.family("planning_seconds_total", "counter", "Time to make the plans, including the wait for other plans.");
  for (std::size_t i = 0; i < kPlannings.size(); ++i)
    out.sample("planning_seconds_total", fmt::format("{{operation=\"{}\"}}", kPlannings[i]), planned[i].took.seconds());
  out.family("longest_planning_seconds", "gauge", "The longest time to make a plan since the service started.");
  for (std::size_t i = 0; i < kPlannings.size(); ++i)
    out.sample("longest_planning_seconds", fmt::format("{{operation=\"{}\"}}", kPlannings[i]),
               planned[i].longest.seconds());
  out.family("requests_total", "counter", "Requests by the status of their answer; those from 400 on were refused.");
  for (std::size_t i = 0; i < kStatuses.size(); ++i)
    out.sample("requests_total", fmt::format("{{status=\"{}\"}}", kStatuses[i]), answers_[i].load());
  return out.take();
}

}  // namespace mltcp::service
