// The result file "mltcp.results/1": what `mltcp run` measured under each policy, and its statistics.
//
// The structs mirror the JSON file; where a member's name differs from the field's, the comment names the field. Fields
// may be added but are never renamed: readers ignore unknown fields, and fields added after the first version may be
// absent (then they are derived or left at their defaults). Times are whole nanoseconds relative to the start of the
// run, 0 to 2^60 (36 years); JSON readers represent those below 2^53 (104 days) exactly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"

namespace mltcp::experiment {

/// The policy with which others are compared.
inline constexpr std::string_view kBaselinePolicy = "fair";
inline constexpr std::string_view kResultsSchema = "mltcp.results/1";
/// Results of one rank, for the iterations that all ranks of the job have recorded.
struct RankTimes {
  std::uint32_t rank = 0;
  std::optional<std::uint32_t> host{};  ///< number of the host; datapath hosts only
  Nanos mean;                           ///< mean_ns of its iterations, on its own clock; percentiles as in JobResult
  Nanos p50;                            ///< p50_ns
  Nanos p99;                            ///< p99_ns
  Nanos communication;                  ///< communication_ns: as in JobResult, for this rank
  bool operator==(const RankTimes&) const = default;
};

struct TimeSpan {
  Nanos from;
  Nanos to;
};

/// A replayed trace compared with its recording.
struct ReplayResult {
  struct Step {
    std::string name;  ///< as recorded; may be empty
    Nanos recorded;    ///< recorded_ns: length; 0 = unknown
    Nanos replayed;    ///< replayed_ns: mean over the latest iterations
    bool operator==(const Step&) const = default;
  };
  struct Collective {
    std::string name;         ///< "all-reduce"
    std::uint64_t count = 0;  ///< per iteration; a collective counts once for all its ranks
    Bytes bytes = 0;          ///< sum of the sizes, as recorded
    Nanos recorded;           ///< recorded_ns: mean over its ranks, with waits for others; 0 = unknown
    Nanos replayed;           ///< replayed_ns
    /// Mean over collectives and ranks of |replayed - recorded| / recorded; 0 if lengths are unknown.
    double mean_error = 0;
    bool operator==(const Collective&) const = default;
  };
  std::string format;                   ///< of the trace
  std::vector<std::string> sources;     ///< its files
  std::vector<Step> steps;              ///< those that an iteration replays, in order
  std::vector<Collective> collectives;  ///< by kind
  std::vector<std::string> simplified;  ///< what was left out or simplified, one line each
};

/// Results of one job of a run.
struct JobResult {
  std::string name;  ///< unique within the run
  /// isolated_ns: iteration time of the same job alone on the same network, without jitter; median of up to 6; 0 =
  /// unknown
  Nanos isolated;
  std::vector<Nanos> starts;                ///< start_ns: start time of each iteration, ascending
  std::vector<Nanos> iterations;            ///< iteration_ns: duration of each iteration; as many as `starts`
  Nanos mean;                               ///< mean_ns of `iterations`; mean and percentiles are 0 if there are none
  Nanos p50;                                ///< p50_ns
  Nanos p99;                                ///< p99_ns
  Nanos time_shift;                         ///< time_shift_ns: delay of the job's start by the scheduler; 0 or more
  Bytes bytes = 0;                          ///< application bytes delivered in `iterations`
  std::uint64_t retransmitted_packets = 0;  ///< up to the end of the last of `iterations`

  double slowdown = 0;                            ///< mean / isolated; 1 = as in isolation; 0 if one of them is unknown
  Nanos second_half_mean;                         ///< second_half_mean_ns: mean of the second half of `iterations`
  Nanos second_half_p99;                          ///< second_half_p99_ns
  std::optional<std::uint64_t> interleaved_from;  ///< see interleaved_from() below; null = never
  /// The same with a tolerance of 5% instead of 2%, for nearly interleaved jobs; never later.
  std::optional<std::uint64_t> interleaved_from_5pct;
  std::uint64_t verified_messages = 0;  ///< number of messages whose contents were verified on arrival
  std::uint64_t checksum_errors = 0;    ///< number of verified messages that were damaged
  std::string first_error;              ///< first_checksum_error: first damaged message; written if any
  Nanos compute;                        ///< compute_ns: per iteration, without jitter
  Bytes bytes_per_iteration = 0;        ///< application bytes per iteration, over all flows
  /// iteration_compute_ns: compute time of each of `iterations`; empty for a job without jitter, for which it is
  /// `compute`.
  std::vector<Nanos> iteration_compute;
  std::string cc;     ///< its congestion control, if different from the run's
  Nanos gate_waited;  ///< gate_waited_ns: total time its communication phases waited for slots; written if not 0
  std::uint64_t gate_corrections = 0;  ///< drifts from its slot that were corrected
  std::string plan_dropped;            ///< why its plan was dropped: "stale", "misfit", "removed"; empty if it was not
  bool unaware = false;                ///< no policy was applied to it; ignored by interleaved_from()
  /// communication_ns: duration of the collective of an iteration, from when a rank has computed until its part is
  /// done, including waits for slower ranks but not for a slot; mean over ranks and iterations, as in nccl-tests. For
  /// patterns that are a single collective (workload::bus_factor()), like the two bandwidths; otherwise 0, and not
  /// written.
  Nanos communication{};
  Rate algorithm_bandwidth{};            ///< algorithm_bandwidth_bps: the pattern's size / `communication`
  Rate bus_bandwidth{};                  ///< bus_bandwidth_bps: algorithm_bandwidth * bus_factor()
  std::optional<ReplayResult> replay{};  ///< of a replayed trace; otherwise not written
  /// By rank: when each operation of the latest iterations began and ended (Job::timeline); in no file.
  std::vector<std::vector<TimeSpan>> timelines{};
  std::vector<RankTimes> ranks{};  ///< of a job whose ranks execute iterations separately; otherwise not written
};

/// Use of the bottleneck over time, in bins of equal width from time 0 on.
struct Usage {
  Nanos bin;                                       ///< bin_ns: width of a bin; 0 = nothing was recorded
  std::map<std::string, std::vector<Bytes>> jobs;  ///< bytes on the wire per bin; ends at the job's last used bin
};

/// The most significant link of the run: of a dumbbell the bottleneck; of a topology the link with the highest
/// utilization among those used by several jobs (or, if there are none, among all); of a testbed, all outputs of
/// switches together.
struct Bottleneck {
  std::string name;        ///< name in `links`; empty, and not written, if the network has a single bottleneck
  double utilization = 0;  ///< bytes carried / capacity of the link during the run; 0 to 1, finite
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< lost by the link's faults; the counts of faults are written if not 0
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  Nanos contended;  ///< contended_ns: see LinkResult
  Bytes contended_bytes = 0;
  Rate rate;  ///< rate_bps; 0 = unknown
  Usage usage;
};

/// One link of a topology, in one direction.
struct LinkResult {
  std::string name;        ///< "leaf 0 -> spine 1"
  Rate rate;               ///< rate_bps
  double utilization = 0;  ///< as for the bottleneck
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t pauses = 0;  ///< number of times that its sender was paused (PFC); written if not 0
  /// contended_ns: time during which several senders could together have exceeded its capacity; contended_bytes: what
  /// it carried meanwhile. Datapath flow only, instead of ECN marks; written if not 0.
  Nanos contended{};
  Bytes contended_bytes = 0;
};

/// Delays of a real-time datapath's loop caused by other work of the machine.
struct Stalls {
  Nanos longest;  ///< longest_ns
  Nanos total;    ///< total_ns
};

/// Packets of a run that were lost within a host, not in the network.
struct HostLosses {
  std::uint32_t host = 0;                   ///< number of the host
  std::uint64_t missed_packets = 0;         ///< dropped since the port's receive queue was full
  std::uint64_t port_errors = 0;            ///< damaged packets, sent or received, as reported by the port
  std::uint64_t handover_full_packets = 0;  ///< dropped between ranks that share the port
  std::uint64_t rejected_packets = 0;       ///< not addressed to its ranks, or damaged
  std::uint64_t unsent_packets = 0;         ///< no route, or an unresolved neighbour
  // The following are not losses of the host; each is written if not 0.
  std::uint64_t black_holes = 0;  ///< paths that dropped long packets; their connections continued with shorter ones
  std::uint64_t size_probes_sent = 0;  ///< packets that probed the path MTU
  std::uint64_t size_probes_lost = 0;

  [[nodiscard]] std::uint64_t all() const {
    return missed_packets + port_errors + handover_full_packets + rejected_packets + unsent_packets;
  }
  bool operator==(const HostLosses&) const = default;
};

/// A period during which a host's port had no link.
struct LinkOutage {
  std::uint32_t host = 0;  ///< number of the host
  std::string port;        ///< port name as given: "af_xdp:eth0"
  Nanos start;             ///< start_ns: relative to the run's time 0
  Nanos duration;          ///< duration_ns
  bool operator==(const LinkOutage&) const = default;
};

/// Summary of a run's schedule.
struct ScheduleSummary {
  struct Slot {
    std::string job;
    Nanos period;        ///< period_ns: time between slots
    Nanos offset;        ///< offset_ns: start of a communication phase relative to the run's time 0, below the period
    Nanos time_shift;    ///< time_shift_ns: delay of the job's start for the slot
    double stretch = 0;  ///< slot period / isolated iteration time - 1
    bool operator==(const Slot&) const = default;
  };
  std::uint64_t links = 0;      ///< number of links shared by jobs
  double score = 1;             ///< mean over these links; 1 = fully compatible, may be negative
  double upper_bound = 1;       ///< no shifts have a higher score
  bool optimal = true;          ///< score == upper_bound, proven
  double stretch = 0;           ///< maximum of slot period / own period - 1
  std::uint64_t replanned = 0;  ///< number of times that new slots were computed because a job missed its old ones
  /// `unplanned_jobs`: number without slots, since no slots within the limit on stretch suit them.
  std::uint64_t unplanned = 0;
  std::vector<Slot> slots;  ///< final slots, in the order of their jobs; absent from older files
  /// Jobs without slots at the end, except unaware ones: they share no link, no slots suit them, or they lost them.
  std::vector<std::string> without_slots;
  std::vector<std::string> reasons;  ///< reasons, by index in without_slots; absent from older files
  std::uint64_t repaired = 0;        ///< number of times that slots were moved for a job that had missed its own
  /// cut_off: some slots or repairs were not tried because of the work limit; written if so.
  bool cut_off = false;
};

struct Run {
  std::string policy;
  std::string cc;
  /// Parameters of the jobs' algorithms that differ from the defaults, such as {"swift.base_target", "40 us"}; not
  /// written if empty.
  std::map<std::string, std::string> cc_parameters{};
  std::string datapath;
  std::uint64_t seed = 0;
  std::vector<JobResult> jobs;
  /// The links were not measured (datapath hosts): `bottleneck` is meaningless; neither it nor `links` is written.
  bool links_unknown = false;
  Bottleneck bottleneck;
  std::vector<LinkResult> links;            ///< of a topology; empty, and not written, for a dumbbell
  Nanos duration;                           ///< duration_ns: from the first start to the end of the last iteration
  std::optional<Stalls> stalls;             ///< real-time datapaths only
  std::optional<ScheduleSummary> schedule;  ///< policies that schedule
  /// clock_uncertainty_ns: maximum error of start times on different hosts relative to each other. Datapath hosts only.
  std::optional<Nanos> clock_uncertainty{};
  std::vector<HostLosses> hosts{};         ///< datapath hosts only; empty, and not written, elsewhere
  std::vector<LinkOutage> link_outages{};  ///< datapath hosts only; not written if there were none
  /// begun_ns, ended_ns: the run's time 0, and when all hosts had stopped, on CLOCK_MONOTONIC of the coordinator.
  /// Datapath hosts only.
  std::optional<TimeSpan> clock{};
};

struct Results {
  std::string experiment;
  std::vector<Run> runs;
  /// unfinished_policies: requested policies without a run here, because of an interruption; not written if empty.
  std::vector<std::string> unfinished;
  std::optional<Provenance> provenance;  ///< absent from older files, and from records of sweeps
};

/// Mean and nearest-rank percentiles of iteration times: percentile p of n values is the ceil(p·n/100)-th smallest, so
/// always a measured value. The second half is `times[n/2]` and on. Times are 0 or more; without times all are 0.
struct IterationStats {
  Nanos mean;
  Nanos p50;
  Nanos p99;
  Nanos second_half_mean;
  Nanos second_half_p99;
};
IterationStats iteration_stats(std::span<const Nanos> times);

/// When jobs count as interleaved.
struct InterleaveRule {
  double tolerance = 0.02;         ///< an iteration is slow if it is longer than isolated · (1 + tolerance)
  double outlier_fraction = 0.0;   ///< share of slow iterations that is tolerated as the machine's noise; 0 to 1
  std::size_t min_iterations = 5;  ///< minimum number of iterations that must stay interleaved

  /// Virtual time has no noise: no slow iteration is tolerated.
  static constexpr InterleaveRule virtual_time() { return {}; }
  /// In real time the operating system preempts threads occasionally: up to 5% of the iterations may be slow.
  static constexpr InterleaveRule real_time() { return {0.02, 0.05, 5}; }
};

/// From which iteration on the jobs of a run are interleaved, by job. Deviations of a job's compute time (jitter) are
/// subtracted from its iterations first, since they are not caused by the network.
///
/// Jobs of different periods can only be compared in time. So the jobs interleave at the earliest time t such that no
/// iteration that starts at t or later is slow, and each job has at least `min_iterations` of these (or they are all it
/// has). Each job's answer is its first iteration that starts at t or later. t is 0 or the end of a slow iteration of
/// some job.
/// With an outlier fraction f, a job may have slow iterations after t if they are at most f of its iterations there
/// and none of them is its first or follows another slow one: noise hits single iterations, while jobs that are
/// still colliding are slow several times in a row.
/// All null when there is no such time, when `jobs` is empty, or when an isolated time is unknown.
std::vector<std::optional<std::uint64_t>> interleaved_from(std::span<const JobResult> jobs,
                                                           InterleaveRule rule = InterleaveRule::virtual_time());

/// Computes mean, p50, p99, slowdown, second_half_mean, interleaved_from and interleaved_from_5pct of every job of
/// `run` from its `isolated`, `starts` and `iterations`.
void summarize(Run& run, InterleaveRule rule = InterleaveRule::virtual_time());

/// The share of the link's busy time in [from, to) during which two or more jobs use it simultaneously, 0 to 1.
///
/// A job uses the link in a bin if it sends at least 5% of what it sends in its fullest bin of the run (which excludes
/// control packets and stray retransmissions); a bin is busy if any job uses it. Bins count if they start in [from,
/// to). Empty if nothing was recorded or no such bin is busy.
std::optional<double> overlap_share(const Usage& usage, Nanos from, Nanos to);
/// Mean number of jobs that use the link in a busy bin, by the same rule: 1 or more. Unlike overlap_share() it
/// distinguishes two overlapping jobs from thirty. Empty if overlap_share() is.
std::optional<double> mean_users(const Usage& usage, Nanos from, Nanos to);
/// When two or more jobs use it simultaneously, by the same rule: whole bins, ascending, disjoint and not adjacent.
std::vector<TimeSpan> overlap_spans(const Usage& usage, Nanos from, Nanos to);
/// Minimum bytes in a bin for the job to count as using the link; `bins` are all bins of the job in the run.
double min_of_a_burst(std::span<const Bytes> bins);

/// The time during which all jobs of the run are active: from the first start of any job until the first job has
/// finished its last iteration. `from == to` if a job has no iterations.
TimeSpan common_span(const Run& run);

/// Whether other work of the machine delayed a real-time run by more than 2%, so that its times are unreliable.
bool disturbed(const Run& run);

/// Writes the file, indented, with lists of numbers on one line each. Invalid UTF-8 is replaced. Errors are left in the
/// stream's state.
void write_json(const Results& results, std::ostream& out);

/// Reads the file. Throws InputError with one line that names file, position, cause and cure, if the file cannot be
/// read, is not JSON, has another schema, lacks or mistypes a field of the first version, or has a value that is out of
/// range.
Results read_json(const std::filesystem::path& path);

/// The same from text; `name` is used as the file's name in messages.
Results parse_json(std::string_view text, const std::string& name);

}  // namespace mltcp::experiment
