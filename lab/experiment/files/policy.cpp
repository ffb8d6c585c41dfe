// The table of policies (see policy.h).
#include "mltcp/lab/experiment/files/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {
namespace {

cc::Augmentation none(const MltcpSettings& /*mltcp*/, const workload::Job& /*job*/) { return {}; }

cc::Augmentation weighted(const MltcpSettings& /*mltcp*/, const workload::Job& job) {
  return cc::Augmentation::constant(job.weight);
}

cc::Augmentation by_progress(const MltcpSettings& mltcp, const workload::Job& /*job*/) {
  cc::Augmentation augmentation = cc::Augmentation::mltcp(mltcp.function);
  augmentation.scale_decrease(mltcp.scale_decrease);
  return augmentation;
}

cc::Augmentation in_turns(const MltcpSettings& mltcp, const workload::Job& /*job*/) {
  cc::Augmentation augmentation = cc::Augmentation::turns(mltcp.function);
  augmentation.scale_decrease(mltcp.scale_decrease);
  return augmentation;
}

constexpr std::array kPolicies{
    Policy{.name = kBaselinePolicy, .summary = "plain congestion control", .augmentation = none},
    Policy{.name = "static", .summary = "constant shares in proportion to the jobs' weights", .augmentation = weighted},
    Policy{.name = "priority",
           .summary = "switches serve the job of the highest priority first",
           .augmentation = none,
           .priorities = true},
    Policy{.name = "mltcp",
           .summary = "the job that is further along in its iteration gets a larger share",
           .augmentation = by_progress,
           .interleaves = true},
    Policy{.name = "turns",
           .summary = "mltcp, and bursts wait while other traffic fills the link",
           .augmentation = in_turns,
           .interleaves = true,
           .turns = true},
    Policy{.name = "schedule",
           .summary = "up phases begin in slots that keep jobs apart",
           .augmentation = none,
           .slots = true},
    Policy{
        .name = "mltcp+schedule", .summary = "both", .augmentation = by_progress, .interleaves = true, .slots = true},
    Policy{.name = "turns+schedule",
           .summary = "both turns and schedule",
           .augmentation = in_turns,
           .interleaves = true,
           .slots = true,
           .turns = true},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  const auto at = std::ranges::find(kPolicies, name, &Policy::name);
  return at == kPolicies.end() ? nullptr : &*at;
}

const Policy& policy_named(std::string_view name) {
  if (const Policy* policy = find_policy(name)) return *policy;
  const auto meant = nearest(std::string(name), policy_names());
  throw InputError(fmt::format("there is no policy {}; {}", in_quotes(name),
                               meant ? fmt::format("did you mean \"{}\"?", *meant)
                                     : fmt::format("there are {}", fmt::join(policy_names(), ", "))));
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Policy& policy : kPolicies) all.emplace_back(policy.name);
    return all;
  }();
  return names;
}

cc::Augmentation augmentation_of(const Policy& policy, const MltcpSettings& mltcp, const workload::Job& job) {
  return job.unaware ? cc::Augmentation() : policy.augmentation(mltcp, job);
}

}  // namespace mltcp::experiment
