// The part of the C interface for jobs, reports and memory; see c_interface.cpp.
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "c_reports.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/endpoint/internal/c_support.h"
#include "mltcp/transport/counters.h"

namespace mltcp::endpoint::c {
namespace {

static_assert(static_cast<int>(PlanState::none) == MLTCP_PLAN_NONE &&
              static_cast<int>(PlanState::active) == MLTCP_PLAN_ACTIVE &&
              static_cast<int>(PlanState::unknown_job) == MLTCP_PLAN_UNKNOWN_JOB);
static_assert(static_cast<int>(PhasePlan::Correction::gradual) == MLTCP_CORRECT_GRADUALLY);

JobOptions job_options(const mltcp_job_options& given) {
  JobOptions options;
  options.number = given.number;
  if (given.learn_iterations > 1) throw InputError("learn_iterations is 0 or 1; give one of the two");
  options.learn_iterations = given.learn_iterations != 0;
  options.max_rate = Rate(given.max_rate_bps);
  if (given.function != nullptr && given.weight != 0)
    throw InputError("function and weight are both given; leave out one of the two");
  if (given.function != nullptr) {
    options.augmentation = cc::Augmentation::read(given.function);
  } else if (given.weight != 0) {
    options.augmentation = cc::Augmentation::constant(given.weight);
  }
  return options;
}

/// Gets a report by `ask`, converts it by `fill`, and writes the result to `out`.
template <typename Own, typename Report, typename Ask, typename Fill>
mltcp_code report(mltcp_endpoint* endpoint, Report* out, Ask ask, Fill fill) noexcept {
  if (const mltcp_code code = check_out(out, "the report"); code != MLTCP_OK) return code;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    Own from;
    if (const Code code = ask(one, from); code != Code::ok) return keep_error(*endpoint, code);
    Report own;
    std::memset(&own, 0, sizeof own);
    fill(from, own);
    write_struct(out, out->struct_size, own);
    return MLTCP_OK;
  });
}

void fill_job(const JobReport& from, mltcp_job_report& out) {
  out.connections = from.connections;
  out.iteration = from.iteration;
  out.bytes_sent = from.bytes_sent;
  out.bytes_per_iteration = from.bytes_per_iteration;
  out.bytes_ratio = from.bytes_ratio;
  out.gain = from.gain;
  out.between_iterations = from.between_iterations ? 1 : 0;
  out.plan_state = static_cast<std::int32_t>(from.plan);
  out.on_slot = from.on_slot;
  out.corrections = from.corrections;
  out.cwnd_bytes = from.cwnd_bytes;
  out.pacing_rate_bps = from.pacing_rate.bits_per_second;
  out.delivery_rate_bps = from.delivery_rate.bits_per_second;
  out.smoothed_rtt_ns = from.smoothed_rtt.count;
  out.min_rtt_ns = from.min_rtt.count;
  out.packets_sent = from.packets_sent;
  out.marked_packets = from.marked_packets;
  out.lost_packets = from.lost_packets;
  out.retransmitted_packets = from.retransmitted_packets;
}

std::uint64_t number_of(Rate rate) { return rate.bits_per_second; }
std::int64_t number_of(Nanos time) { return time.count; }
template <typename Number>
Number number_of(Number number) {
  return number;
}

/// Calls `visit` with each counter of the transport and the report's member of the same name.
template <typename Stats, typename Report, typename Visit>
constexpr void for_each_common(Visit&& visit) {
  for_each_field<Stats>([&](const auto& counter) {
    for_each_field<Report>([&](const auto& entry) {
      if (std::string_view(entry.name) == counter.name) visit(counter, entry);
    });
  });
}

/// Fills all members that have the name of a counter. `others` is the number of all other members, which the caller
/// fills.
template <std::size_t others, typename Stats, typename Report>
void fill_counters(const Stats& from, Report& out) {
  static_assert(
      [] {
        std::size_t left = count_members<Report>();
        for_each_common<Stats, Report>([&](const auto&...) { --left; });
        return left == others;
      }(),
      "a member of this report is neither a counter nor filled; give it the name of a counter, or fill it");
  for_each_common<Stats, Report>([&](const auto& counter, const auto& entry) {
    using Member = std::remove_cvref_t<decltype(out.*entry.member)>;
    out.*entry.member = static_cast<Member>(number_of(from.*counter.member));
  });
}

void fill_connection(const ConnectionReport& from, mltcp_connection_report& out) {
  fill_counters<8>(from.transport, out);
  out.kind = static_cast<std::int32_t>(from.kind);
  out.open = from.open ? 1 : 0;
  out.shard = from.shard;
  out.unexpected_messages = from.unexpected_messages;
  out.held_back = from.held_back;
  out.has_ended = from.has_ended ? 1 : 0;
  out.end_code = static_cast<mltcp_code>(from.end_code);
}

void fill_endpoint(const EndpointReport& from, mltcp_endpoint_report& out) {
  fill_counters<10>(from.packets, out);
  out.operations = from.operations;
  out.posts_in_place = from.posts_in_place;
  out.connections = from.connections;
  out.broken_protocols = from.broken_protocols;
  out.unintroduced = from.unintroduced;
  out.wakeups = from.wakeups;
  out.rejected_packets = from.packets.rejected_packets();
  out.missed_packets = from.losses.missed;
  out.unsent_packets = from.losses.unsent;
  out.forged_packets = from.packets.forged_packets + from.packets.forged_resets;
}

}  // namespace
}  // namespace mltcp::endpoint::c

using namespace mltcp::endpoint;     // NOLINT(google-build-using-namespace): the rest is the C interface
using namespace mltcp::endpoint::c;  // NOLINT(google-build-using-namespace)
using mltcp::Nanos;
using mltcp::Rate;

// ---- Jobs ----

mltcp_code mltcp_job_create(mltcp_endpoint* endpoint, const mltcp_job_options* options, mltcp_job* job) {
  if (job == nullptr) return refuse_null("job");
  *job = 0;
  mltcp_job_options own;
  mltcp_job_options_init(&own);
  if (const mltcp_code code = read_struct(options, own, "mltcp_job_options"); code != MLTCP_OK) return code;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    return keep_error(*endpoint, one.create_job(job_options(own), *job));
  });
}
mltcp_code mltcp_job_remove(mltcp_endpoint* endpoint, mltcp_job job) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.remove_job(job)); });
}
mltcp_code mltcp_job_attach(mltcp_endpoint* endpoint, mltcp_job job, mltcp_connection connection) {
  return with(endpoint,
              [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.attach(connection, job)); });
}
mltcp_code mltcp_job_begin_iteration(mltcp_endpoint* endpoint, mltcp_job job, uint64_t bytes) {
  return with(endpoint,
              [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.begin_iteration(job, bytes)); });
}
mltcp_code mltcp_job_end_iteration(mltcp_endpoint* endpoint, mltcp_job job) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.end_iteration(job)); });
}

mltcp_code mltcp_job_set_plan(mltcp_endpoint* endpoint, mltcp_job job, const mltcp_job_plan* plan, int32_t* state) {
  if (state != nullptr) *state = MLTCP_PLAN_NONE;
  if (plan == nullptr) return refuse_null("plan");
  mltcp_job_plan own;
  mltcp_job_plan_init(&own);
  if (const mltcp_code code = read_struct(plan, own, "mltcp_job_plan"); code != MLTCP_OK) return code;
  if (own.correction != MLTCP_CORRECT_AT_ONCE && own.correction != MLTCP_CORRECT_GRADUALLY)
    return fail(Code::invalid, "correction is 0 or 1; give one of the two");
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    mltcp::PhasePlan given;
    given.slot = Nanos(own.slot_ns);
    given.period = Nanos(own.period_ns);
    given.tolerance = own.tolerance;
    given.correction = static_cast<mltcp::PhasePlan::Correction>(own.correction);
    given.gradual_step = own.gradual_step;
    given.valid_until = Nanos(own.valid_until_ns);
    given.clock_bound = Nanos(own.clock_bound_ns);
    if (const std::string wrong = mltcp::objection_to(given); !wrong.empty()) return fail(Code::invalid, wrong);
    mltcp::PlanState became = mltcp::PlanState::none;
    const Code code = one.set_plan(job, given, became);
    if (state != nullptr) *state = static_cast<std::int32_t>(became);
    return keep_error(*endpoint, code);
  });
}
mltcp_code mltcp_plan_from_environment(mltcp_endpoint* endpoint, mltcp_job_plan* plan) {
  if (const mltcp_code code = check_out(plan, "plan"); code != MLTCP_OK) return code;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    const auto found = mltcp::endpoint::read_plan(&mltcp::endpoint::process_variable);
    if (!found) return MLTCP_NOTHING;
    const mltcp::PhasePlan here = mltcp::endpoint::on_clock_of(one, *found);
    mltcp_job_plan filled;
    mltcp_job_plan_init(&filled);
    filled.slot_ns = here.slot.count;
    filled.period_ns = here.period.count;
    filled.clock_bound_ns = here.clock_bound.count;
    write_struct(plan, plan->struct_size, filled);
    return MLTCP_OK;
  });
}
mltcp_code mltcp_job_clear_plan(mltcp_endpoint* endpoint, mltcp_job job) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.clear_plan(job)); });
}
mltcp_code mltcp_job_set_rate(mltcp_endpoint* endpoint, mltcp_job job, uint64_t max_rate_bps) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    return keep_error(*endpoint, one.set_job_rate(job, Rate(max_rate_bps)));
  });
}

// ---- Reports ----

mltcp_code mltcp_report_job(mltcp_endpoint* endpoint, mltcp_job job, mltcp_job_report* out) {
  return report<JobReport>(
      endpoint, out, [&](Endpoint& one, JobReport& from) { return one.report(JobHandle{job}, from); }, fill_job);
}
mltcp_code mltcp_report_connection(mltcp_endpoint* endpoint, mltcp_connection connection,
                                   mltcp_connection_report* out) {
  return report<ConnectionReport>(
      endpoint, out, [&](Endpoint& one, ConnectionReport& from) { return one.report(connection, from); },
      fill_connection);
}
mltcp_code mltcp_report_endpoint(mltcp_endpoint* endpoint, mltcp_endpoint_report* out) {
  return report<EndpointReport>(
      endpoint, out, [&](Endpoint& one, EndpointReport& from) { return one.report(from); }, fill_endpoint);
}

// ---- Memory ----

mltcp_code mltcp_memory_register(mltcp_endpoint* endpoint, void* memory, size_t size, mltcp_memory* handle) {
  if (memory == nullptr || handle == nullptr) return refuse_null(memory == nullptr ? "memory" : "handle");
  *handle = 0;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    const Code code = one.register_memory({static_cast<std::byte*>(memory), size}, *handle);
    if (code == Code::invalid)
      if (const std::string why = one.failure(); !why.empty()) return fail(code, why);
    return keep_error(*endpoint, code);
  });
}
mltcp_code mltcp_memory_unregister(mltcp_endpoint* endpoint, mltcp_memory handle) {
  return with(endpoint,
              [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.unregister_memory(handle)); });
}
