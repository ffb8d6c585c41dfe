// The result file "mltcp.results/1": what `mltcp run` measured under each policy, and its statistics.
//
// The structs mirror the JSON file. Where a member's name differs from the field's, the comment names the field. Fields
// may be added but are never renamed, and readers ignore unknown fields. Fields added after the first version may be
// absent. Readers then derive them or leave their default values. Times are whole nanoseconds relative to the start of
// the run, 0 to 2^60 (36 years). JSON readers represent times below 2^53 ns (104 days) exactly.
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

/// The policy with which all other policies are compared.
inline constexpr std::string_view kBaselinePolicy = "fair";
inline constexpr std::string_view kResultsSchema = "mltcp.results/1";
/// Results of one rank, for the iterations that all ranks of the job have recorded.
struct RankTimes {
  std::uint32_t rank = 0;
  std::optional<std::uint32_t> host{};  ///< number of the host; datapath hosts only
  Nanos mean;           ///< mean_ns: mean iteration time on the rank's own clock; percentiles as in JobResult
  Nanos p50;            ///< p50_ns
  Nanos p99;            ///< p99_ns
  Nanos communication;  ///< communication_ns: like JobResult::communication, for this rank
  bool operator==(const RankTimes&) const = default;
};

struct TimeSpan {
  Nanos from;
  Nanos to;
};

/// A replayed trace compared with its recording.
struct ReplayResult {
  struct Step {
    std::string name;  ///< name in the trace; may be empty
    Nanos recorded;    ///< recorded_ns: length in the trace; 0 if unknown
    Nanos replayed;    ///< replayed_ns: mean length in the replay
    bool operator==(const Step&) const = default;
  };
  struct Collective {
    std::string name;         ///< kind of collective, such as "all-reduce"
    std::uint64_t count = 0;  ///< number per iteration; a collective counts once, not once per rank
    Bytes bytes = 0;          ///< sum of the sizes in the trace
    Nanos recorded;           ///< recorded_ns: mean length in the trace, with waits for other ranks; 0 if unknown
    Nanos replayed;           ///< replayed_ns: mean length in the replay
    /// Mean over collectives and ranks of |replayed - recorded| / recorded; 0 if lengths are unknown.
    double mean_error = 0;
    bool operator==(const Collective&) const = default;
  };
  std::string format;                   ///< format of the trace
  std::vector<std::string> sources;     ///< files of the trace
  std::vector<Step> steps;              ///< steps that an iteration replays, in order
  std::vector<Collective> collectives;  ///< collectives, one entry per kind
  std::vector<std::string> simplified;  ///< what the replay leaves out or simplifies, one line each
};

/// Results of one job of a run.
struct JobResult {
  std::string name;  ///< unique within the run
  /// isolated_ns: iteration time of the job in isolation on the same network, without jitter. Median of up to 6
  /// iterations; 0 if unknown.
  Nanos isolated;
  std::vector<Nanos> starts;      ///< start_ns: start time of each iteration, ascending
  std::vector<Nanos> iterations;  ///< iteration_ns: duration of each iteration; as many as `starts`
  Nanos mean;                     ///< mean_ns: mean of `iterations`; mean and percentiles are 0 without iterations
  Nanos p50;                      ///< p50_ns
  Nanos p99;                      ///< p99_ns
  Nanos time_shift;               ///< time_shift_ns: delay of the job's start by the scheduler; 0 or more
  Bytes bytes = 0;                ///< application bytes delivered in `iterations`
  std::uint64_t retransmitted_packets = 0;  ///< packets retransmitted until the end of the last of `iterations`

  double slowdown = 0;     ///< mean / isolated; 1 if not slowed down; 0 if `mean` or `isolated` is unknown
  Nanos second_half_mean;  ///< second_half_mean_ns: mean of the second half of `iterations`
  Nanos second_half_p99;   ///< second_half_p99_ns
  std::optional<std::uint64_t> interleaved_from;  ///< see interleaved_from() below; null if never
  /// Like interleaved_from, but with a tolerance of 5% instead of 2%, for nearly interleaved jobs. Never later than
  /// interleaved_from.
  std::optional<std::uint64_t> interleaved_from_5pct;
  std::uint64_t verified_messages = 0;  ///< number of messages whose contents were verified on arrival
  std::uint64_t checksum_errors = 0;    ///< number of verified messages that were damaged
  std::string first_error;              ///< first_checksum_error: first damaged message; not written if empty
  Nanos compute;                        ///< compute_ns: compute time per iteration, without jitter
  Bytes bytes_per_iteration = 0;        ///< application bytes per iteration, over all flows
  /// iteration_compute_ns: compute time of each of `iterations`. Empty for a job without jitter, whose compute time is
  /// always `compute`.
  std::vector<Nanos> iteration_compute;
  std::string cc;     ///< congestion control of the job; empty if the job uses the run's congestion control
  Nanos gate_waited;  ///< gate_waited_ns: total time that communication phases waited for slots; not written if 0
  std::uint64_t gate_corrections = 0;  ///< number of times that a drift from the job's slot was corrected
  /// Why the job's plan was dropped: "stale", "misfit" or "removed"; empty if it was not dropped.
  std::string plan_dropped;
  bool unaware = false;  ///< true if no policy was applied to the job; interleaved_from() ignores such jobs
  /// communication_ns: duration of an iteration's collective. It begins when a rank has finished its compute phase and
  /// ends when the rank's part is done, so it includes waits for slower ranks, but not waits for a slot. Mean over
  /// ranks and iterations, as in nccl-tests. This value and the two bandwidths exist only for patterns that are a
  /// single collective (workload::bus_factor()). For other patterns they are 0 and not written.
  Nanos communication{};
  Rate algorithm_bandwidth{};            ///< algorithm_bandwidth_bps: the pattern's size / `communication`
  Rate bus_bandwidth{};                  ///< bus_bandwidth_bps: algorithm_bandwidth * bus_factor()
  std::optional<ReplayResult> replay{};  ///< comparison with the trace, if the job replays one; otherwise not written
  /// For each rank, when each operation of the last Job::timeline iterations began and ended. Not written to files.
  std::vector<std::vector<TimeSpan>> timelines{};
  /// Results by rank if ranks execute iterations separately; otherwise empty and not written.
  std::vector<RankTimes> ranks{};
};

/// Use of the bottleneck over time, in bins of equal width from time 0 on.
struct Usage {
  Nanos bin;  ///< bin_ns: width of a bin; 0 if nothing was recorded
  /// Bytes on the wire per bin, for each job. A list ends at the job's last used bin.
  std::map<std::string, std::vector<Bytes>> jobs;
};

/// The most significant link of the run. In a dumbbell, this is the bottleneck. In a topology, it is the link with the
/// highest utilization among the links used by several jobs, or among all links if jobs share none. In a testbed, it
/// stands for all outputs of switches together.
struct Bottleneck {
  std::string name;        ///< name in `links`; empty, and not written, if the network has a single bottleneck
  double utilization = 0;  ///< bytes carried / capacity of the link during the run; 0 to 1, finite
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< packets lost by faults of the link; counts of faults are not written if 0
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  Nanos contended;  ///< contended_ns: see LinkResult
  Bytes contended_bytes = 0;
  Rate rate;  ///< rate_bps; 0 if unknown
  Usage usage;
};

/// One link of a topology, in one direction.
struct LinkResult {
  std::string name;        ///< name of the link, such as "leaf 0 -> spine 1"
  Rate rate;               ///< rate_bps
  double utilization = 0;  ///< see Bottleneck::utilization
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t pauses = 0;           ///< number of times that the sender was paused (PFC); not written if 0
  std::uint64_t trimmed_packets = 0;  ///< packets trimmed because the buffer was full; not written if 0
  /// contended_ns: time during which several senders together could have exceeded the link's capacity. contended_bytes:
  /// bytes that the link carried during this time. Only datapath flow has these values, in place of ECN marks. Not
  /// written if 0.
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
  std::uint64_t missed_packets = 0;         ///< packets dropped because the port's receive queue was full
  std::uint64_t port_errors = 0;            ///< damaged packets, sent or received, as counted by the port
  std::uint64_t handover_full_packets = 0;  ///< packets dropped between ranks that share the port
  std::uint64_t rejected_packets = 0;       ///< packets that were damaged, or not addressed to the host's ranks
  std::uint64_t unsent_packets = 0;         ///< packets without a route, or whose neighbour's address was not resolved
  // The following numbers are not losses of the host. A number is not written if it is 0.
  std::uint64_t black_holes = 0;  ///< paths that dropped long packets; connections continued there with shorter packets
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
  std::string port;        ///< name of the port as the user gave it, such as "af_xdp:eth0"
  Nanos start;             ///< start_ns: start, relative to the run's time 0
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
  std::uint64_t links = 0;      ///< number of links that several jobs share
  double score = 1;             ///< mean score of the shared links; 1 if fully compatible; may be negative
  double upper_bound = 1;       ///< upper bound of the score for any time shifts
  bool optimal = true;          ///< true if the score is proven to equal upper_bound
  double stretch = 0;           ///< maximum over the jobs of slot period / isolated iteration time - 1
  std::uint64_t replanned = 0;  ///< number of times that new slots were computed because a job missed its old slots
  /// unplanned_jobs: number of jobs that share links but have no slots.
  std::uint64_t unplanned = 0;
  std::vector<Slot> slots;  ///< final slots, in the order of their jobs; absent from older files
  /// Jobs without slots at the end, except unaware jobs. Such a job shares no link, no slots suit it, or it lost its
  /// slots.
  std::vector<std::string> without_slots;
  std::vector<std::string> reasons;  ///< why each job in without_slots has no slots; absent from older files
  /// Number of times that a job's slots were moved because the job had missed its slot.
  std::uint64_t repaired = 0;
  /// True if some slots or repairs were not tried because of the work limit. Not written if false.
  bool cut_off = false;
};

struct Run {
  std::string policy;
  std::string cc;
  /// Parameters of the jobs' algorithms, and of policy `turns`, that differ from the defaults, such as
  /// {"swift.base_target", "40 us"}; not written if empty.
  std::map<std::string, std::string> cc_parameters{};
  std::string datapath;
  std::uint64_t seed = 0;
  std::vector<JobResult> jobs;
  /// True if the links were not measured (datapath hosts). `bottleneck` is then meaningless, and neither `bottleneck`
  /// nor `links` is written.
  bool links_unknown = false;
  Bottleneck bottleneck;
  std::vector<LinkResult> links;            ///< links of a topology; empty, and not written, for a dumbbell
  Nanos duration;                           ///< duration_ns: from the first start to the end of the last iteration
  std::optional<Stalls> stalls;             ///< stalls of the datapath's loop; only for real-time datapaths
  std::optional<ScheduleSummary> schedule;  ///< only for policies that plan slots
  /// clock_uncertainty_ns: maximum error of start times on different hosts relative to each other. Datapath hosts only.
  std::optional<Nanos> clock_uncertainty{};
  std::vector<HostLosses> hosts{};  ///< losses within hosts; only for datapath hosts, otherwise empty and not written
  /// Periods without a link; only for datapath hosts. Not written if there were none.
  std::vector<LinkOutage> link_outages{};
  /// begun_ns is the run's time 0. ended_ns is the time when all hosts had stopped. Both are on CLOCK_MONOTONIC of the
  /// coordinator. Datapath hosts only.
  std::optional<TimeSpan> clock{};
};

struct Results {
  std::string experiment;
  std::vector<Run> runs;
  /// unfinished_policies: requested policies without a run in this file, because of an interruption. Not written if
  /// empty.
  std::vector<std::string> unfinished;
  std::optional<Provenance> provenance;  ///< absent from older files, and from records of sweeps
};

/// Mean and nearest-rank percentiles of iteration times. Percentile p of n values is the ceil(p·n/100)-th smallest
/// value, so it is always a measured value. The second half begins with `times[n/2]`. Times must be 0 or more. Without
/// times, all members are 0.
struct IterationStats {
  Nanos mean;
  Nanos p50;
  Nanos p99;
  Nanos second_half_mean;
  Nanos second_half_p99;
};
IterationStats iteration_stats(std::span<const Nanos> times);

/// Rule that decides whether jobs count as interleaved.
struct InterleaveRule {
  double tolerance = 0.02;         ///< an iteration is slow if it is longer than isolated · (1 + tolerance)
  double outlier_fraction = 0.0;   ///< share of slow iterations that is tolerated as the machine's noise; 0 to 1
  std::size_t min_iterations = 5;  ///< minimum number of iterations that must stay interleaved

  /// Returns the rule for virtual time, which has no noise: no slow iteration is tolerated.
  static constexpr InterleaveRule virtual_time() { return {}; }
  /// Returns the rule for real time, where the operating system preempts threads occasionally: up to 5% of the
  /// iterations may be slow.
  static constexpr InterleaveRule real_time() { return {0.02, 0.05, 5}; }
};

/// Returns for each job the iteration from which on the jobs of a run are interleaved. All values are null if the jobs
/// never interleave, if `jobs` is empty, or if an isolated time is unknown. Deviations of a job's compute time (jitter)
/// are first subtracted from its iterations, since the network does not cause them.
///
/// Jobs with different periods can only be compared in time. The jobs interleave at the earliest time t that meets two
/// conditions. No iteration that starts at t or later is slow. Each job has at least `min_iterations` iterations that
/// start at t or later, or all its iterations do. A job's value is its first iteration that starts at t or later. t is
/// 0 or the end of a slow iteration of some job.
///
/// With an outlier fraction f, slow iterations of a job after t are tolerated if they are at most the share f of its
/// iterations after t. A job's first iteration after t must not be slow, and no slow iteration may directly follow a
/// slow one. The reason is that noise affects single iterations, while jobs that still collide are slow several times
/// in a row.
std::vector<std::optional<std::uint64_t>> interleaved_from(std::span<const JobResult> jobs,
                                                           InterleaveRule rule = InterleaveRule::virtual_time());

/// Computes mean, p50, p99, slowdown, second_half_mean, interleaved_from and interleaved_from_5pct of every job of
/// `run` from its `isolated`, `starts` and `iterations`.
void summarize(Run& run, InterleaveRule rule = InterleaveRule::virtual_time());

/// Returns the share of the link's busy time in [from, to) during which two or more jobs use the link simultaneously, 0
/// to 1.
///
/// A job uses the link in a bin if it sends at least 5% of what it sends in its fullest bin of the run. This excludes
/// control packets and stray retransmissions. A bin is busy if any job uses the link in it. Only bins that start in
/// [from, to) count. The result is empty if nothing was recorded or none of these bins is busy.
std::optional<double> overlap_share(const Usage& usage, Nanos from, Nanos to);
/// Returns the mean number of jobs that use the link in a busy bin, by the rule of overlap_share(); at least 1. Unlike
/// overlap_share(), this mean distinguishes two overlapping jobs from thirty. Empty if overlap_share() is empty.
std::optional<double> mean_users(const Usage& usage, Nanos from, Nanos to);
/// Returns when two or more jobs use the link simultaneously, by the rule of overlap_share(). The spans consist of
/// whole bins, and are ascending, disjoint and not adjacent.
std::vector<TimeSpan> overlap_spans(const Usage& usage, Nanos from, Nanos to);
/// Returns the minimum number of bytes in a bin for which a job counts as using the link. `bins` are all bins of this
/// job in the run.
double min_of_a_burst(std::span<const Bytes> bins);

/// Returns the time during which all jobs of the run are active: from the first start of any job until the first job
/// has finished its last iteration. `from == to` if a job has no iterations.
TimeSpan common_span(const Run& run);

/// Returns whether other work of the machine delayed a real-time run by more than 2%, so that its times are unreliable.
bool disturbed(const Run& run);

/// Writes the results as indented JSON, with each list of numbers on one line. Replaces invalid UTF-8. If writing
/// fails, the stream's state shows the error.
void write_json(const Results& results, std::ostream& out);

/// Reads the file. Throws InputError if the file cannot be read, is not JSON or has another schema. Also throws it if a
/// field of the first version is missing, or if a field has the wrong type or is out of range. The error is one line
/// that names file, position, cause and remedy.
Results read_json(const std::filesystem::path& path);

/// Parses `text` like read_json(). Messages use `name` as the file's name.
Results parse_json(std::string_view text, const std::string& name);

}  // namespace mltcp::experiment
