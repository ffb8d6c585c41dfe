// Results of a cluster's runs under each scheme: summaries, the table for people, and the file "mltcp.cluster/1".
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
inline constexpr std::size_t kPercentiles = 101;  ///< number of percentiles of slow-downs in a file, for 0 % to 100 %

/// Results of one job under one scheme. Times are relative to the arrival of the first job.
struct ClusterJobResult {
  std::uint32_t number = 0;  ///< number of the job in order of arrival, from 0
  std::string type;
  std::uint32_t workers = 0;  ///< number of hosts; a job with one host sends nothing and has no iterations
  std::uint32_t gpus = 0;     ///< number of GPUs of all workers together
  std::uint32_t batch = 0;    ///< batch size; 0 if the default applies
  std::uint32_t iterations = 0;
  std::vector<std::uint32_t> hosts;  ///< host of each worker
  Nanos arrival;
  Nanos start;     ///< time at which the job was placed
  Nanos end;       ///< end of the job's last iteration
  Nanos isolated;  ///< duration of an iteration in isolation, without jitter
  Nanos mean;      ///< mean duration of the job's iterations
  Nanos p50;
  Nanos p99;
  std::uint64_t marked_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t corrections = 0;  ///< number of corrections after the job drifted from its slots
  std::string plan_dropped;       ///< reason why the job's plan was dropped; empty if no plan was dropped
  std::uint32_t moves = 0;        ///< number of times that another job's arrival or end moved this job's slots

  [[nodiscard]] Nanos completion() const { return end - arrival; }
};

/// Results of one scheme with one seed.
struct ClusterRun {
  std::string scheme;
  std::uint64_t seed = 0;
  std::vector<ClusterJobResult> jobs;  ///< all jobs that arrived, in order of their numbers
  std::vector<float> slowdowns;        ///< duration / isolated duration of all iterations of all jobs; ascending
  Nanos makespan;                      ///< time at which the last job ends
  std::uint64_t marked_packets = 0;    ///< number of packets marked on all links; 0 at flow level
  std::uint64_t dropped_packets = 0;
  std::uint64_t packets = 0;  ///< packets through switch queues; 0 at flow level
  /// At flow level: fraction of the bytes between switches that were sent on saturated links with several jobs.
  double contended = 0;
  double mean_score = 1;      ///< mean score over time of links with competing jobs; 1 if there is no scheduler
  double competed_links = 0;  ///< mean number over time of links with competing jobs; 0 if there is no scheduler
  double busy_hosts = 0;      ///< mean fraction of all GPUs in use until the makespan
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
  std::vector<ClusterRun> runs;  ///< ordered by scheme, then by seed
  /// A requested run that is missing because of an interruption. If no run is missing, the file omits the list of such
  /// runs.
  struct Unfinished {
    std::string scheme;
    std::uint64_t seed = 0;
    bool operator==(const Unfinished&) const = default;
  };
  std::vector<Unfinished> unfinished;
  std::optional<Provenance> provenance;
};

/// Summary of all jobs and iterations of a scheme; pools all seeds.
struct SchemeSummary {
  std::string scheme;
  std::size_t jobs = 0;
  std::size_t iterations = 0;
  double completion_mean = 0;  ///< seconds from arrival to end of a job
  double completion_p95 = 0;
  double completion_p99 = 0;
  double running_mean = 0;   ///< seconds from start to end of a job
  double slowdown_mean = 0;  ///< iteration time / iteration time in isolation
  double slowdown_p95 = 0;
  double slowdown_p99 = 0;
  double marks_per_iteration = 0;
  double contended = 0;  ///< mean over all seeds, as are all fields below
  double makespan = 0;   ///< in seconds
  double score = 1;
  double competed_links = 0;
  double busy_hosts = 0;
  double moves = 0;
  double corrections = 0;
};
/// Returns one summary per scheme, in the order of the runs.
std::vector<SchemeSummary> summarize(const ClusterResults& results);

/// Returns one line for people about what was run.
std::string headline(const ClusterResults& results);

/// Returns a table with one row per scheme. Gains such as "1.6x" are relative to scheme "locality", or to the first
/// scheme if locality was not run.
Cells cells_of(const ClusterResults& results);

/// Returns the content of a file "mltcp.cluster/1". Fields have the names of the members; times are in nanoseconds and
/// have suffix _ns.
std::string to_json(const ClusterResults& results);

}  // namespace mltcp::experiment
