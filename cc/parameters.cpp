// Ranges of the algorithms' parameters (see parameters.h).
#include "mltcp/cc/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mltcp/base/error.h"

namespace mltcp::cc {
namespace {

void require(bool holds, std::string_view name, double value, std::string_view range) {
  if (!holds || !std::isfinite(value))
    throw InputError(fmt::format("{} of {} is out of range; give a value {}", name, value, range));
}

void require_time(bool holds, std::string_view name, Nanos value, std::string_view range) {
  constexpr Nanos most(1'000'000'000'000);
  if (!holds || value > most)
    throw InputError(fmt::format("{} of {} is out of range; give a time {}, and at most {}", name, to_text(value),
                                 range, to_text(most)));
}

void validate(const CubicParameters& p) {
  require(p.c > 0 && p.c <= 1e9, "cubic c", p.c, "above 0 and at most 1e9");
  require(p.beta >= 0.5 && p.beta < 1, "cubic beta", p.beta, "from 0.5 to below 1: what is left of the window");
}

void validate(const DctcpParameters& p) {
  require(p.g > 0 && p.g <= 1, "dctcp g", p.g, "above 0 and at most 1");
  require(p.initial_alpha >= 0 && p.initial_alpha <= 1, "dctcp initial_alpha", p.initial_alpha, "from 0 to 1");
}

void validate(const DcqcnParameters& p) {
  require(p.g > 0 && p.g <= 1, "dcqcn g", p.g, "above 0 and at most 1");
  require_time(p.notification_interval > Nanos(0), "dcqcn notification_interval", p.notification_interval, "above 0");
  require_time(p.alpha_interval > p.notification_interval, "dcqcn alpha_interval", p.alpha_interval,
               "above the notification_interval, or alpha falls while notifications come in");
  // Steps that are more frequent than acknowledgements would be back at line rate before any mark is heard of.
  require_time(p.increase_interval >= Nanos(1'000), "dcqcn increase_interval", p.increase_interval, "of 1 us or more");
  require(p.increase_bytes == 0 || p.increase_bytes >= 1'000, "dcqcn increase_bytes",
          static_cast<double>(p.increase_bytes),
          "of 1 kB or more, which a packet takes, or 0 for 2 ms of the job's rate");
  require(p.fast_recovery_steps > 0, "dcqcn fast_recovery_steps", p.fast_recovery_steps, "of 1 or more");
  if (!p.hyper_increase.is_zero() && p.hyper_increase < p.additive_increase)
    throw InputError(
        fmt::format("dcqcn hyper_increase of {} is out of range; give a rate of additive_increase, {}, or more",
                    to_text(p.hyper_increase), to_text(p.additive_increase)));
}

void validate(const SwiftParameters& p) {
  require_time(p.base_target >= Nanos(0), "swift base_target", p.base_target, "of 0 or more");
  require_time(p.per_hop >= Nanos(0), "swift per_hop", p.per_hop, "of 0 or more");
  require_time(p.flow_scaling >= Nanos(0), "swift flow_scaling", p.flow_scaling, "of 0 or more");
  require(p.flow_min_window > 0, "swift flow_min_window", p.flow_min_window, "above 0");
  require(p.flow_max_window > p.flow_min_window, "swift flow_max_window", p.flow_max_window, "above flow_min_window");
  require_time(p.endpoint_target > Nanos(0), "swift endpoint_target", p.endpoint_target, "above 0");
  require(p.additive_increase > 0, "swift additive_increase", p.additive_increase, "above 0");
  require(p.beta > 0 && p.beta <= 1, "swift beta", p.beta, "above 0 and at most 1");
  require(p.max_decrease > 0 && p.max_decrease < 1, "swift max_decrease", p.max_decrease, "above 0 and below 1");
  require(p.min_window > 0, "swift min_window", p.min_window, "above 0");
  require(p.max_window >= std::max(1.0, p.min_window) && p.max_window <= 1e9, "swift max_window", p.max_window,
          "of 1 and min_window or more, and at most 1e9");
}

}  // namespace

void Parameters::validate(std::string_view name) const {
  if (name == "cubic") cc::validate(cubic);
  if (name == "dctcp") cc::validate(dctcp);
  if (name == "dcqcn") cc::validate(dcqcn);
  if (name == "swift") cc::validate(swift);
}

}  // namespace mltcp::cc
