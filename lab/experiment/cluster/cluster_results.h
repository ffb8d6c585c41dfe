// Results of a cluster's runs under each scheme: summaries, table, and the file "mltcp.cluster/1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/results/estimate.h"
#include "mltcp/lab/experiment/results/table.h"

namespace mltcp::experiment {

inline constexpr std::string_view kClusterSchema = "mltcp.cluster/1";
inline constexpr std::size_t kPercentiles = 101;  ///< number of percentiles of slow-downs in a file: 0 to 100

/// Results of one job under one scheme. Times are relative to the arrival of the first job.
struct ClusterJobResult {
  std::uint32_t number = 0;  ///< by order of arrival
  std::string type;
  std::uint32_t workers = 0;  ///< number of hosts; with one, the job uses no network and has no iterations
  std::uint32_t gpus = 0;     ///< of all workers together
  std::uint32_t batch = 0;    ///< 0: the default
  std::uint32_t iterations = 0;
  std::vector<std::uint32_t> hosts;  ///< by worker
  Nanos arrival;
  Nanos start;     ///< when it was placed
  Nanos end;       ///< end of its last iteration
  Nanos isolated;  ///< duration of an iteration in isolation, without jitter
  Nanos mean;      ///< mean duration of its iterations
  Nanos p50;
  Nanos p99;
  std::uint64_t marked_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t corrections = 0;  ///< corrections of drift from its slots
  std::string plan_dropped;       ///< why its plan was dropped; empty if it still had one at the end, or never had one
  std::uint32_t moves = 0;        ///< number of times that another job's arrival or end moved its slots

  [[nodiscard]] Nanos completion() const { return end - arrival; }
};

/// Results of one scheme with one seed.
struct ClusterRun {
  std::string scheme;
  std::uint64_t seed = 0;
  std::vector<ClusterJobResult> jobs;  ///< all jobs that arrived, by number
  std::vector<float> slowdowns;        ///< length / isolated of all iterations of all jobs; ascending
  Nanos makespan;                      ///< end of the last job
  std::uint64_t marked_packets = 0;    ///< on all links; 0 at flow level
  std::uint64_t dropped_packets = 0;
  std::uint64_t packets = 0;  ///< packets through switch queues; 0 at flow level
  double contended = 0;   ///< flow level: share of the bytes between switches sent on saturated links with several jobs
  double mean_score = 1;  ///< mean score of links with competing jobs over time; 1 if there is no scheduler
  double competed_links = 0;  ///< mean number of such links over time; 0 if there is no scheduler
  double busy_hosts = 0;      ///< mean share of all GPUs that are used by jobs, over the makespan
};

struct ClusterResults {
  std::string name;
  std::string level;
  std::string cc;
  double time_scale = 1;
  double rate_scale = 1;
  std::uint32_t hosts = 0;
  std::uint32_t gpus_per_host = 1;
  double oversubscription = 1;
  std::vector<ClusterRun> runs;  ///< by scheme, then by seed
  /// Requested runs that are missing because of an interruption; not written if there are none.
  struct Unfinished {
    std::string scheme;
    std::uint64_t seed = 0;
    bool operator==(const Unfinished&) const = default;
  };
  std::vector<Unfinished> unfinished;
  std::optional<Provenance> provenance;
};

/// Summary of all jobs and iterations of a scheme, with all seeds pooled.
struct SchemeSummary {
  std::string scheme;
  std::size_t jobs = 0;
  std::size_t iterations = 0;
  double completion_mean = 0;  ///< in seconds, from arrival to end
  double completion_p95 = 0;
  double completion_p99 = 0;
  double running_mean = 0;   ///< in seconds, from start to end
  double slowdown_mean = 0;  ///< iteration time relative to isolation
  double slowdown_p95 = 0;
  double slowdown_p99 = 0;
  double marks_per_iteration = 0;
  double contended = 0;  ///< mean over the seeds, like all members below
  double makespan = 0;   ///< in seconds
  double score = 1;
  double competed_links = 0;
  double busy_hosts = 0;
  double moves = 0;
  double corrections = 0;
};
/// One summary per scheme, in the order of the runs.
std::vector<SchemeSummary> summarize(const ClusterResults& results);

/// One line for people about what was run.
std::string headline(const ClusterResults& results);

/// One row per scheme. Gains ("1.6x") are relative to scheme "locality", or to the first scheme if that was not run.
Cells cells_of(const ClusterResults& results);

/// The file "mltcp.cluster/1": fields are named as the members, times in nanoseconds with suffix _ns.
std::string to_json(const ClusterResults& results);

}  // namespace mltcp::experiment
