// The fields of the result file (see base/fields.h), in the file's order.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/base/json/in_json.h"
#include "mltcp/base/json/provenance_fields.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

inline constexpr double kMaxSlowdown = 1e9;  ///< upper bound of plausible values; limits the width of table columns
inline constexpr InJson kShare{.min = 0, .max = 1};
inline constexpr InJson kScore{.min = -kMaxSlowdown, .max = 1};

constexpr auto fields_of(const RankTimes* /*type*/) {
  using T = RankTimes;
  return list_of<T>(field("rank", &T::rank), field("host", &T::host, kIfSet), field("mean_ns", &T::mean),
                    field("p50_ns", &T::p50), field("p99_ns", &T::p99),
                    field("communication_ns", &T::communication, kIfSet));
}

constexpr auto fields_of(const ReplayResult::Step* /*type*/) {
  using T = ReplayResult::Step;
  return list_of<T>(field("name", &T::name), field("recorded_ns", &T::recorded), field("replayed_ns", &T::replayed));
}

constexpr auto fields_of(const ReplayResult::Collective* /*type*/) {
  using T = ReplayResult::Collective;
  return list_of<T>(field("name", &T::name), field("count", &T::count), field("bytes", &T::bytes),
                    field("recorded_ns", &T::recorded), field("replayed_ns", &T::replayed),
                    field("mean_error", &T::mean_error, InJson{.min = 0, .max = kMaxSlowdown}));
}

constexpr auto fields_of(const ReplayResult* /*type*/) {
  using T = ReplayResult;
  return list_of<T>(field("format", &T::format), field("sources", &T::sources), field("steps", &T::steps),
                    field("collectives", &T::collectives), field("simplified", &T::simplified));
}

constexpr auto fields_of(const JobResult* /*type*/) {
  using T = JobResult;
  return list_of<T>(
      field("name", &T::name), field("isolated_ns", &T::isolated), field("start_ns", &T::starts),
      field("iteration_ns", &T::iterations), field("mean_ns", &T::mean), field("p50_ns", &T::p50),
      field("p99_ns", &T::p99), field("second_half_mean_ns", &T::second_half_mean, kLater),
      field("second_half_p99_ns", &T::second_half_p99, kLater),
      field("slowdown", &T::slowdown, InJson{Presence::later, 0, kMaxSlowdown}),
      field("interleaved_from", &T::interleaved_from, kLater),
      field("interleaved_from_5pct", &T::interleaved_from_5pct, kLater), field("time_shift_ns", &T::time_shift),
      field("bytes", &T::bytes), field("retransmitted_packets", &T::retransmitted_packets),
      field("verified_messages", &T::verified_messages, kLater), field("checksum_errors", &T::checksum_errors, kLater),
      field("first_checksum_error", &T::first_error, kIfSet), field("compute_ns", &T::compute, kLater),
      field("bytes_per_iteration", &T::bytes_per_iteration, kLater),
      field("iteration_compute_ns", &T::iteration_compute, kIfSet), field("cc", &T::cc, kIfSet),
      field("gate_waited_ns", &T::gate_waited, kIfSet), field("gate_corrections", &T::gate_corrections, kIfSet),
      field("plan_dropped", &T::plan_dropped, kIfSet), field("unaware", &T::unaware, kIfSet),
      field("communication_ns", &T::communication, kIfSet),
      field("algorithm_bandwidth_bps", &T::algorithm_bandwidth, WrittenWith{&T::communication}),
      field("bus_bandwidth_bps", &T::bus_bandwidth, WrittenWith{&T::communication}),
      field("replay", &T::replay, kIfSet),
      left_out(&T::timelines),  // long
      field("ranks", &T::ranks, kIfSet));
}

constexpr auto fields_of(const Usage* /*type*/) {
  return list_of<Usage>(field("bin_ns", &Usage::bin), field("jobs", &Usage::jobs));
}

constexpr auto fields_of(const Bottleneck* /*type*/) {
  using T = Bottleneck;
  return list_of<T>(field("name", &T::name, kIfSet), field("utilization", &T::utilization, kShare),
                    field("ecn_marked_packets", &T::ecn_marked_packets), field("dropped_packets", &T::dropped_packets),
                    field("max_queue_bytes", &T::max_queue_bytes), field("lost_packets", &T::lost_packets, kIfSet),
                    field("duplicated_packets", &T::duplicated_packets, kIfSet),
                    field("corrupted_packets", &T::corrupted_packets, kIfSet),
                    field("reordered_packets", &T::reordered_packets, kIfSet),
                    field("contended_ns", &T::contended, kIfSet),
                    field("contended_bytes", &T::contended_bytes, WrittenWith{&T::contended}),
                    field("rate_bps", &T::rate, kLater), field("usage", &T::usage, kLater));
}

constexpr auto fields_of(const LinkResult* /*type*/) {
  using T = LinkResult;
  return list_of<T>(field("name", &T::name), field("rate_bps", &T::rate), field("utilization", &T::utilization, kShare),
                    field("ecn_marked_packets", &T::ecn_marked_packets), field("dropped_packets", &T::dropped_packets),
                    field("max_queue_bytes", &T::max_queue_bytes), field("pauses", &T::pauses, kIfSet),
                    field("trimmed_packets", &T::trimmed_packets, kIfSet), field("contended_ns", &T::contended, kIfSet),
                    field("contended_bytes", &T::contended_bytes, WrittenWith{&T::contended}));
}

constexpr auto fields_of(const Stalls* /*type*/) {
  return list_of<Stalls>(field("longest_ns", &Stalls::longest), field("total_ns", &Stalls::total));
}

constexpr auto fields_of(const HostLosses* /*type*/) {
  using T = HostLosses;
  return list_of<T>(
      field("host", &T::host), field("missed_packets", &T::missed_packets), field("port_errors", &T::port_errors),
      field("handover_full_packets", &T::handover_full_packets), field("rejected_packets", &T::rejected_packets),
      field("unsent_packets", &T::unsent_packets), field("black_holes", &T::black_holes, kIfSet),
      field("size_probes_sent", &T::size_probes_sent, kIfSet), field("size_probes_lost", &T::size_probes_lost, kIfSet));
}

constexpr auto fields_of(const LinkOutage* /*type*/) {
  using T = LinkOutage;
  return list_of<T>(field("host", &T::host), field("port", &T::port), field("start_ns", &T::start),
                    field("duration_ns", &T::duration));
}

constexpr auto fields_of(const ScheduleSummary::Slot* /*type*/) {
  using T = ScheduleSummary::Slot;
  return list_of<T>(field("job", &T::job), field("period_ns", &T::period), field("offset_ns", &T::offset),
                    field("time_shift_ns", &T::time_shift),
                    field("stretch", &T::stretch, InJson{.min = -1, .max = kMaxSlowdown}));
}

constexpr auto fields_of(const ScheduleSummary* /*type*/) {
  using T = ScheduleSummary;
  return list_of<T>(field("links", &T::links), field("score", &T::score, kScore),
                    field("upper_bound", &T::upper_bound, kScore), field("optimal", &T::optimal),
                    field("stretch", &T::stretch, InJson{.min = 0, .max = kMaxSlowdown}),
                    field("replanned", &T::replanned), field("repaired", &T::repaired, kLater),
                    field("unplanned_jobs", &T::unplanned), field("slots", &T::slots, kLater),
                    field("without_slots", &T::without_slots, kLater), field("reasons", &T::reasons, kLater),
                    field("cut_off", &T::cut_off, kIfSet));
}

/// Run::clock.
constexpr auto fields_of(const TimeSpan* /*type*/) {
  return list_of<TimeSpan>(field("begun_ns", &TimeSpan::from), field("ended_ns", &TimeSpan::to));
}

constexpr auto fields_of(const Run* /*type*/) {
  using T = Run;
  return list_of<T>(
      field("policy", &T::policy), field("cc", &T::cc), field("cc_parameters", &T::cc_parameters, kIfSet),
      field("datapath", &T::datapath), field("seed", &T::seed), field("duration_ns", &T::duration, kLater),
      field("jobs", &T::jobs), left_out(&T::links_unknown),  // implied by a missing bottleneck
      field("bottleneck", &T::bottleneck, WrittenUnless{&T::links_unknown}), field("links", &T::links, kIfSet),
      field("schedule", &T::schedule, kIfSet), field("stalls", &T::stalls, kIfSet),
      field("clock_uncertainty_ns", &T::clock_uncertainty, kIfSet), field("hosts", &T::hosts, kIfSet),
      field("link_outages", &T::link_outages, kIfSet), field("begun_ns", &T::clock, Spread{}));
}

constexpr auto fields_of(const Results* /*type*/) {
  using T = Results;
  return list_of<T>(field("experiment", &T::experiment), field("runs", &T::runs),
                    field("unfinished_policies", &T::unfinished, kIfSet), field("provenance", &T::provenance, kIfSet));
}

}  // namespace mltcp::experiment
