// The result file "mltcp.results/1": what `mltcp run` measured, once per policy, and how it is summed up.
//
// The structs mirror the JSON file; where a member's name differs from the field's, the field stands in the
// comment. Fields are added freely and never renamed: a reader skips fields it does not know, and the fields that
// came after the first version may be absent from a file (they are then derived, or left at their defaults).
// Times are whole nanoseconds, in the file too, counted from the start of the run; 0 to 2^60 (36 years), of which every
// JSON reader gets those below 2^53 (104 days) exactly.
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

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/provenance.h"

namespace mltcp::experiment {

/// The policy that others are compared with.
inline constexpr std::string_view kBaselinePolicy = "fair";
inline constexpr std::string_view kResultsSchema = "mltcp.results/1";
/// Far more than a run reaches, and far enough from 2^63 that sums and small multiples don't wrap.
inline constexpr Nanos kMostTime(std::int64_t{1} << 60);

/// What one rank of a job did in the iterations that all of its ranks have recorded.
struct RankTimes {
  std::uint32_t rank = 0;
  std::optional<std::uint32_t> host{};  ///< its number; datapath hosts only
  Nanos mean;                           ///< mean_ns of its iterations, by its own clock; like the next two, see p50
  Nanos p50;                            ///< p50_ns
  Nanos p99;                            ///< p99_ns
  Nanos communication;                  ///< communication_ns: see JobResult; of this rank
  bool operator==(const RankTimes&) const = default;
};

/// What one job of a run did.
struct JobResult {
  std::string name;  ///< unique within the run
  /// isolated_ns: an iteration of the same job alone on the same network, without jitter; median of up to 6; 0 =
  /// unknown
  Nanos isolated;
  std::vector<Nanos> starts;                ///< start_ns: when each iteration started, ascending
  std::vector<Nanos> iterations;            ///< iteration_ns: how long each took; as many as `starts`
  Nanos mean;                               ///< mean_ns of `iterations`; 0 when there are none, as with the next ones
  Nanos p50;                                ///< p50_ns
  Nanos p99;                                ///< p99_ns
  Nanos time_shift;                         ///< time_shift_ns: by how much the scheduler delayed the job; 0 or more
  Bytes bytes = 0;                          ///< application bytes delivered in `iterations`
  std::uint64_t retransmitted_packets = 0;  ///< until the end of the last of `iterations`

  double slowdown = 0;                            ///< mean / isolated, 1 = as if alone; 0 when one of them is unknown
  Nanos second_half_mean;                         ///< second_half_mean_ns: mean of the later half of `iterations`
  Nanos second_half_p99;                          ///< second_half_p99_ns
  std::optional<std::uint64_t> interleaved_from;  ///< see interleaved_from() below; null = never
  /// The same with a tolerance of 5% in place of 2%, for jobs that come close; never later than that.
  std::optional<std::uint64_t> interleaved_from_5pct;
  std::uint64_t verified_messages = 0;  ///< messages whose content was checked on arrival
  std::uint64_t checksum_errors = 0;    ///< those of them that arrived damaged
  std::string first_error;              ///< first_checksum_error: what was damaged first; written if so
  Nanos compute;                        ///< compute_ns: of one iteration, without jitter
  Bytes bytes_per_iteration = 0;        ///< application bytes of one iteration, all flows together
  /// iteration_compute_ns: what each of `iterations` computed; empty for a job without jitter, which computes
  /// `compute`.
  std::vector<Nanos> iteration_compute;
  std::string cc;     ///< its congestion control, where it is not the run's
  Nanos gate_waited;  ///< gate_waited_ns: what its up phases waited for their slots; written, like the next two, if so
  std::uint64_t gate_corrections = 0;  ///< up phases that had drifted from their slot
  std::string plan_dropped;  ///< why it had no plan in the end, although it had one: "stale", "misfit", "removed"
  bool unaware = false;      ///< no policy applied to it; left out of interleaved_from()
  /// communication_ns: how long the collective of an iteration took, from when a rank had computed until its part was
  /// done, waits for slower ranks included and waits for a slot not: mean over ranks and iterations, as nccl-tests
  /// report it. Of patterns that are one collective (workload::bus_factor()), like the next two; 0, and not written,
  /// otherwise.
  Nanos communication{};
  Rate algorithm_bandwidth{};      ///< algorithm_bandwidth_bps: the pattern's size by `communication`
  Rate bus_bandwidth{};            ///< bus_bandwidth_bps: that times bus_factor()
  std::vector<RankTimes> ranks{};  ///< of a job whose ranks go through iterations on their own; else not written
};

/// Who used the bottleneck when, in bins of equal width from time 0 on.
struct Usage {
  Nanos bin;                                       ///< bin_ns: width of a bin; 0 = nothing was recorded
  std::map<std::string, std::vector<Bytes>> jobs;  ///< bytes on the wire per bin; ends at the job's last used bin
};

struct TimeSpan {
  Nanos from;
  Nanos to;
};

/// The link that says most about the run: the bottleneck of a dumbbell; on a topology, of the links that several jobs
/// have used (if there are none, of all) the one with the highest utilization; in a testbed, of all switches' outputs.
struct Bottleneck {
  std::string name;        ///< of `links`; empty, and not written, where the network has one bottleneck
  double utilization = 0;  ///< bytes carried / bytes the link could have carried during the run; 0 to 1, finite
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< by the link's faults, like the next three, written when there are some
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  Nanos contended;  ///< contended_ns: see LinkResult, like the next
  Bytes contended_bytes = 0;
  Rate rate;  ///< rate_bps; 0 = unknown
  Usage usage;
};

/// One link of a topology, in one direction.
struct LinkResult {
  std::string name;        ///< "leaf 0 -> spine 1"
  Rate rate;               ///< rate_bps
  double utilization = 0;  ///< as of the bottleneck
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;
  Bytes max_queue_bytes = 0;
  std::uint64_t pauses = 0;  ///< times that its sender was told to pause (PFC); written when there are some
  /// contended_ns: for how long several senders could together have sent more than it carries, and in contended_bytes
  /// what it carried meanwhile. Datapath flow only, in place of marks; written when there is some.
  Nanos contended{};
  Bytes contended_bytes = 0;
};

/// How long the driver of a real-time datapath was late because the machine did something else.
struct Stalls {
  Nanos longest;  ///< longest_ns
  Nanos total;    ///< total_ns
};

/// What a run's packets met on a host: they are gone there, whatever the network did.
struct HostLosses {
  std::uint32_t host = 0;                   ///< its number
  std::uint64_t missed_packets = 0;         ///< the port had no room: nobody took them in time
  std::uint64_t port_errors = 0;            ///< the port says that they were damaged, sent or received
  std::uint64_t handover_full_packets = 0;  ///< between ranks that share the port
  std::uint64_t rejected_packets = 0;       ///< not for its ranks, or damaged
  std::uint64_t unsent_packets = 0;         ///< no way there, or a neighbour that does not answer

  [[nodiscard]] std::uint64_t all() const {
    return missed_packets + port_errors + handover_full_packets + rejected_packets + unsent_packets;
  }
  bool operator==(const HostLosses&) const = default;
};

/// A time in which a host's port had no link.
struct LinkOutage {
  std::uint32_t host = 0;  ///< its number
  std::string port;        ///< as its user wrote it: "af_xdp:eth0"
  Nanos start;             ///< start_ns: since the run's time 0
  Nanos duration;          ///< duration_ns
  bool operator==(const LinkOutage&) const = default;
};

/// What the scheduler made of a run's jobs.
struct ScheduleSummary {
  struct Slot {
    std::string job;
    Nanos period;        ///< period_ns: from slot to slot
    Nanos offset;        ///< offset_ns: of an up phase from the run's time 0, below the period
    Nanos time_shift;    ///< time_shift_ns: by how much the job started later for it
    double stretch = 0;  ///< how much longer the slot is than an iteration of the job alone, as a share of that
    bool operator==(const Slot&) const = default;
  };
  std::uint64_t links = 0;      ///< on which jobs meet
  double score = 1;             ///< mean over these links; 1 = fully compatible, may be negative
  double upper_bound = 1;       ///< no shifts have a higher score
  bool optimal = true;          ///< score == upper_bound, proven
  double stretch = 0;           ///< how much longer slots are than the jobs' own periods, as a share, at most
  std::uint64_t replanned = 0;  ///< times that a job fell out of its slots and new ones were looked for
  std::uint64_t unplanned = 0;  ///< unplanned_jobs: without slots, as none within the limit on stretch suit them
  std::vector<Slot> slots;      ///< in the end, in the order of the jobs that have some; absent from older files
  /// The jobs that aren't unaware and have none in the end: they meet no other, none suit them, or they lost them.
  std::vector<std::string> without_slots;
  std::vector<std::string> reasons;  ///< by place in without_slots: why; absent from older files
  std::uint64_t repaired = 0;        ///< times that slots were moved for a job that had missed its own
  /// cut_off: not all slots or repairs were looked at, as that would have been too much work; written if so.
  bool cut_off = false;
};

struct Run {
  std::string policy;
  std::string cc;
  /// Of the algorithms that jobs use, those that are not at their defaults, as {"swift.base_target", "40 us"}; empty,
  /// and not written, if all are.
  std::map<std::string, std::string> cc_parameters{};
  std::string datapath;
  std::uint64_t seed = 0;
  std::vector<JobResult> jobs;
  /// Nobody has measured the links (datapath hosts): `bottleneck` says nothing, and neither it nor `links` is written.
  bool links_unknown = false;
  Bottleneck bottleneck;
  std::vector<LinkResult> links;            ///< of a topology; empty, and not written, for a dumbbell
  Nanos duration;                           ///< duration_ns: from the first start to the end of the last iteration
  std::optional<Stalls> stalls;             ///< real-time datapaths only
  std::optional<ScheduleSummary> schedule;  ///< policies that schedule
  /// clock_uncertainty_ns: starts that were measured on different hosts are that right to each other, or better.
  /// Datapath hosts only.
  std::optional<Nanos> clock_uncertainty{};
  std::vector<HostLosses> hosts{};         ///< datapath hosts only; empty, and not written, elsewhere
  std::vector<LinkOutage> link_outages{};  ///< datapath hosts only; not written if there were none
  /// begun_ns, ended_ns: the run's time 0, and when all hosts had stopped, by CLOCK_MONOTONIC of the coordinator's
  /// machine. Datapath hosts only.
  std::optional<TimeSpan> clock{};
};

struct Results {
  std::string experiment;
  std::vector<Run> runs;
  /// unfinished_policies: those that the experiment asks for and that have no run here, as it was ended before; empty,
  /// and not written, when all is done.
  std::vector<std::string> unfinished;
  std::optional<Provenance> provenance;  ///< absent from files of before, and from records of sweeps
};

/// Mean and nearest-rank percentiles of iteration times: percentile p of n values is the ceil(p·n/100)-th smallest,
/// so it is always a value that was measured. The later half is `times[n/2]` and on. Times are 0 or more; no times give
/// 0.
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
  double tolerance = 0.02;           ///< an iteration is slow when it is longer than isolated · (1 + tolerance)
  double outlier_fraction = 0.0;     ///< share of slow iterations that is put down to noise of the machine; 0 to 1
  std::size_t least_iterations = 5;  ///< that a job must stay so, or a lucky last one would do

  /// Virtual time has no noise: one slow iteration is one too many.
  static constexpr InterleaveRule virtual_time() { return {}; }
  /// In real time the operating system takes a core away now and then; up to 5% of the iterations may be hit.
  static constexpr InterleaveRule real_time() { return {0.02, 0.05, 5}; }
};

/// From which iteration on the jobs of a run are interleaved, per job in the order of `jobs`. What a job computed
/// longer or shorter than usual (jitter) is taken off its iterations first: it is not the network's doing.
///
/// Jobs of different periods can only be compared in time. So the jobs interleave at the earliest time t such that
/// of the iterations that start at t or later none is slow, and each job has at least `least_iterations` of them (or
/// these are all it has); each job's answer is its first iteration that starts at t or later. t is 0 or the end of a
/// slow iteration of some job.
/// With an outlier fraction f, a job may have slow iterations after t if they are at most f of its iterations there
/// and none of them is its first or follows another slow one: noise hits single iterations, while jobs that are
/// still colliding are slow several times in a row.
/// All null when there is no such time, when `jobs` is empty, or when an isolated time is unknown.
std::vector<std::optional<std::uint64_t>> interleaved_from(std::span<const JobResult> jobs,
                                                           InterleaveRule rule = InterleaveRule::virtual_time());

/// Fills mean, p50, p99, slowdown, second_half_mean, interleaved_from and interleaved_from_5pct of every job of `run`
/// from its `isolated`, `starts` and `iterations`.
void summarize(Run& run, InterleaveRule rule = InterleaveRule::virtual_time());

/// The share of the link's busy time in [from, to) during which two or more jobs use it at once, 0 to 1.
///
/// A job uses the link in a bin when it moves at least 5% of what it moves in its fullest bin of the run (control
/// packets and stray retransmissions don't make a burst); a bin is busy when any job uses it. Bins count when they
/// start in [from, to). Empty when nothing was recorded or no such bin is busy.
std::optional<double> overlap_share(const Usage& usage, Nanos from, Nanos to);
/// How many jobs use the link in a busy bin, by the same rule, on average: 1 or more. Unlike the share above it tells
/// two jobs that meet from thirty that do. Empty where overlap_share() is.
std::optional<double> mean_users(const Usage& usage, Nanos from, Nanos to);
/// When two or more jobs use it at once, by the same rule: whole bins, ascending and apart from each other.
std::vector<TimeSpan> overlap_spans(const Usage& usage, Nanos from, Nanos to);
/// What a job moves at least in a bin when it uses the link, of what it moves in all bins of the run.
double least_of_a_burst(std::span<const Bytes> bins);

/// The time during which all jobs of the run are at work: from the first start of any job until the first job has
/// finished its last iteration (after that the others have the link to themselves). `from == to` when a job has no
/// iterations.
TimeSpan common_span(const Run& run);

/// Whether the machine held a real-time run up for so long (2% of it) that its times say little about the network.
bool disturbed(const Run& run);

/// Writes the file, indented, lists of numbers on one line each. Text that is not UTF-8 has its bad bytes replaced.
/// Errors of the stream are left in its state.
void write_json(const Results& results, std::ostream& out);

/// Reads the file. Throws InputError, in one line that names file, place, what is wrong and the cure, for a file
/// that can't be read, is not JSON, has another schema, lacks or mistypes a field of the first version, or holds a
/// number that no run gives.
Results read_json(const std::filesystem::path& path);

/// The same from text; `name` stands for the file in messages.
Results parse_json(std::string_view text, const std::string& name);

}  // namespace mltcp::experiment
