#include "mltcp/endpoint/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::endpoint {

const char* process_variable(const char* name) { return std::getenv(name); }
const char* trusted_variable(const char* name) { return secure_getenv(name); }

std::string_view variable(ReadVariable read, const char* name) {
  const char* const value = read(name);
  return value == nullptr ? std::string_view() : trimmed(value);
}

std::uint64_t number_variable(ReadVariable read, const char* name, std::uint64_t otherwise, std::uint64_t min,
                              std::uint64_t max) {
  const std::string_view text = variable(read, name);
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    throw InputError(fmt::format("{} is {}; give a number from {} to {}", name, in_quotes(text), min, max));
  return value;
}

bool flag_variable(ReadVariable read, const char* name) {
  const std::string_view text = variable(read, name);
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  throw InputError(fmt::format("{} is {}; give 0 or 1", name, in_quotes(text)));
}

PhasePlan SharedClockPlan::on(std::int64_t unix_now_ns, Nanos now) const noexcept {
  // Find the next slot after `now`. Use the difference of times, because one clock begins at boot and the other in
  // 1970.
  std::int64_t until = (slot_unix_ns - unix_now_ns) % period.count;
  if (until < 0) until += period.count;
  PhasePlan plan;
  plan.slot = now + Nanos(until);
  plan.period = period;
  plan.clock_bound = clock_bound;
  return plan;
}

std::optional<SharedClockPlan> read_plan(ReadVariable read) {
  constexpr std::uint64_t max_ns = std::uint64_t{1} << 62;
  constexpr std::uint64_t hour_ns = 3'600'000'000'000;
  const bool slot = !variable(read, "MLTCP_SLOT_UNIX_NS").empty();
  const bool period = !variable(read, "MLTCP_SLOT_PERIOD_NS").empty();
  if (!slot && !period) {
    (void)number_variable(read, "MLTCP_CLOCK_BOUND_NS", 0, 0, hour_ns / 20);  // checks the value, although it is unused
    return std::nullopt;
  }
  if (slot != period)
    throw InputError(fmt::format("{} is set and {} is not; set both, or neither",
                                 slot ? "MLTCP_SLOT_UNIX_NS" : "MLTCP_SLOT_PERIOD_NS",
                                 slot ? "MLTCP_SLOT_PERIOD_NS" : "MLTCP_SLOT_UNIX_NS"));
  SharedClockPlan plan;
  plan.slot_unix_ns = static_cast<std::int64_t>(number_variable(read, "MLTCP_SLOT_UNIX_NS", 0, 0, max_ns));
  const std::uint64_t period_ns = number_variable(read, "MLTCP_SLOT_PERIOD_NS", 0, 1000, hour_ns);
  plan.period = Nanos(static_cast<std::int64_t>(period_ns));
  const std::uint64_t bound = std::min<std::uint64_t>(1'000'000, period_ns / 100);
  plan.clock_bound = Nanos(static_cast<std::int64_t>(
      number_variable(read, "MLTCP_CLOCK_BOUND_NS", bound, 0, period_ns / 20)));  // the limit of PhasePlan::clock_bound
  return plan;
}

PhasePlan on_clock_of(const Endpoint& endpoint, const SharedClockPlan& plan) noexcept {
  timespec unix_now{};
  clock_gettime(CLOCK_REALTIME, &unix_now);
  return plan.on(std::int64_t{unix_now.tv_sec} * 1'000'000'000 + unix_now.tv_nsec, endpoint.now());
}

std::optional<security::JobKey> read_key(ReadVariable read) {
  constexpr const char* name = "MLTCP_KEY_FILE";
  const std::string source(variable(read, name));
  if (source.empty()) return std::nullopt;
  static std::mutex guard;
  static std::map<std::string, security::JobKey> kept;
  const std::lock_guard lock(guard);
  try {
    const auto found = kept.find(source);
    const security::JobKey key = found != kept.end() ? found->second : security::JobKey::from_source(source);
    if (source.starts_with("fd:")) kept.emplace(source, key);
    return key;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

bool read_authenticate(ReadVariable read) {
  const bool authenticate = flag_variable(read, "MLTCP_AUTHENTICATE");
  if (authenticate && variable(read, "MLTCP_KEY_FILE").empty())
    throw InputError("MLTCP_AUTHENTICATE is 1 and MLTCP_KEY_FILE is not set; set both, or neither");
  return authenticate;
}

Environment read_environment(ReadVariable read) {
  Environment found;
  found.device = variable(read, "MLTCP_DEVICE");
  found.address = variable(read, "MLTCP_ADDRESS");
  if (const std::string_view text = variable(read, "MLTCP_CC"); !text.empty()) found.cc = text;
  found.job = static_cast<std::uint32_t>(number_variable(read, "MLTCP_JOB", 0, 0, 0xFFFF'FFFF));
  if (const std::string_view text = variable(read, "MLTCP_JOB_FUNCTION"); !text.empty()) found.job_function = text;
  try {
    found.augmentation = cc::Augmentation::read(found.job_function);
  } catch (const InputError& error) {
    throw InputError(fmt::format("MLTCP_JOB_FUNCTION: {}", error.what()));
  }
  const std::uint64_t milliseconds = number_variable(read, "MLTCP_PEER_TIMEOUT_MS", 10'000, 10, 3'600'000);
  found.peer_timeout = Nanos(static_cast<std::int64_t>(milliseconds) * 1'000'000);
  found.spin = Nanos(static_cast<std::int64_t>(number_variable(read, "MLTCP_SPIN_US", 0, 0, 1'000'000)) * 1'000);
  found.plan = read_plan(read);
  found.key = read_key(read);
  found.authenticate = read_authenticate(read);
  return found;
}

}  // namespace mltcp::endpoint
