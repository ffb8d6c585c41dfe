// What clusters did under each scheme, summed up, as a table, and as the file "mltcp.cluster/1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/estimate.h"
#include "mltcp/experiment/results/provenance.h"
#include "mltcp/experiment/results/table.h"

namespace mltcp::experiment {

inline constexpr std::string_view kClusterSchema = "mltcp.cluster/1";

/// What one job did under one scheme. Times from the arrival of the first job on.
struct ClusterJobResult {
  std::uint32_t number = 0;  ///< in the order of arrival
  std::string type;
  std::uint32_t workers = 0;
  std::uint32_t batch = 0;  ///< 0: the default
  std::uint32_t iterations = 0;
  std::vector<std::uint32_t> hosts;  ///< of its workers
  Nanos arrival;
  Nanos start;     ///< when it got its hosts
  Nanos end;       ///< of its last iteration
  Nanos isolated;  ///< one iteration alone, without jitter
  Nanos mean;      ///< of its iterations, like the next
  Nanos p50;
  Nanos p99;
  std::uint64_t marked_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t corrections = 0;  ///< of drift from its slots
  std::string plan_dropped;       ///< why it had no slots in the end, although it had had some; empty: it had, or never
  std::uint32_t moves = 0;        ///< times that another one's arrival gave it other slots

  [[nodiscard]] Nanos completion() const { return end - arrival; }
};

/// One scheme with one seed.
struct ClusterRun {
  std::string scheme;
  std::uint64_t seed = 0;
  std::vector<ClusterJobResult> jobs;  ///< all that arrived, by number
  std::vector<float> slowdowns;        ///< of all iterations of all jobs: length / isolated; ascending
  Nanos makespan;                      ///< until the last job has ended
  std::uint64_t marked_packets = 0;    ///< at all links; 0 at flow level, like the next
  std::uint64_t dropped_packets = 0;
  std::uint64_t packets = 0;  ///< that passed a queue of a switch
  double contended = 0;       ///< flow level: share of the bytes between switches that were sent while several jobs
                              ///< shared a full link
  double mean_score = 1;      ///< of the links that jobs competed for, over time; 1 where no scheduler ran
  double competed_links = 0;  ///< how many there were on average; 0 where no scheduler ran
  double busy_hosts = 0;      ///< share of hosts that ran a job, on average over the makespan
};

struct ClusterResults {
  std::string name;
  std::string level;
  std::string cc;
  double time_scale = 1;
  double rate_scale = 1;
  std::uint32_t hosts = 0;
  double oversubscription = 1;
  std::vector<ClusterRun> runs;  ///< by scheme, then by seed
  /// Runs that were asked for and aren't among these, as they were ended before; not written if there are none.
  struct Unfinished {
    std::string scheme;
    std::uint64_t seed = 0;
    bool operator==(const Unfinished&) const = default;
  };
  std::vector<Unfinished> unfinished;
  std::optional<Provenance> provenance;
};

/// Of all jobs and iterations of a scheme, seeds pooled.
struct SchemeSummary {
  std::string scheme;
  std::size_t jobs = 0;
  std::size_t iterations = 0;
  double completion_mean = 0;  ///< s, from arrival to end, like the next
  double completion_p95 = 0;
  double completion_p99 = 0;
  double running_mean = 0;   ///< s, from start to end
  double slowdown_mean = 0;  ///< iteration time over that of the job alone, like the next
  double slowdown_p95 = 0;
  double slowdown_p99 = 0;
  double marks_per_iteration = 0;
  double contended = 0;
  double makespan = 0;  ///< s, mean over the seeds, like all that follow
  double score = 1;
  double competed_links = 0;
  double busy_hosts = 0;
  double moves = 0;
  double corrections = 0;
};
/// In the order of the runs.
std::vector<SchemeSummary> summarize(const ClusterResults& results);

/// What was run, one line for people.
std::string headline(const ClusterResults& results);

/// A row a scheme. Gains, as in "1.6x", are over scheme "locality", or the first one where that wasn't run.
Cells cells_of(const ClusterResults& results);

/// The file "mltcp.cluster/1": fields are named as above, times in nanoseconds with _ns.
std::string to_json(const ClusterResults& results);

}  // namespace mltcp::experiment
