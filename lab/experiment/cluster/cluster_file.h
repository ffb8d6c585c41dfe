// Reader of cluster files: TOML that describes a cluster, the stream of jobs arriving at it, and the schemes by which
// they are placed and driven. All keys with units, defaults and ranges: docs/reference/cluster-file.md. Errors are as
// in experiment files (experiment_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/lab/workload/arrivals.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

/// A scheme: how jobs are placed and driven. Written "PLACEMENT[+schedule][+mltcp]" with names of policies, or "ideal".
struct Scheme {
  enum class Placement : std::uint8_t {
    random,
    locality,
    compatible,  ///< of several candidates, the one whose jobs are most compatible on shared links
    ideal,       ///< a dedicated network for each job, as in isolation
  };
  std::string name;
  Placement placement = Placement::locality;
  const Policy* policy = nullptr;  ///< the policy that drives the jobs; not null
};

/// "cause; cure" if `text` is not a valid scheme; empty if it is.
std::string objection_to_scheme(std::string_view text);
/// Requires a valid scheme.
Scheme scheme_from(std::string_view text);
/// The schemes of a file that names none.
const std::vector<std::string>& default_schemes();

/// A type of job.
struct JobType {
  std::string name;    ///< unique
  std::string source;  ///< where it comes from, for people: "model VGG16", "trace a.txt", "phases"
  workload::TypeChoices choices;
  std::string cc;  ///< congestion control; empty: the file's
  /// The time-scaled job without name, start and iterations, by number of workers and batch size. Contains all jobs
  /// that may arrive.
  std::map<std::pair<std::uint32_t, std::uint32_t>, workload::Job> jobs;
};

struct ClusterExperiment {
  enum class Level : std::uint8_t { packet, flow };

  std::string name;
  std::string file;  ///< path as given
  Level level = Level::packet;
  std::uint64_t seed = 1;
  std::uint32_t seeds = 1;  ///< number of seeds to run, from `seed` on
  double time_scale = 1;    ///< factor of compute times, bytes and arrival times; above 0, at most 1
  double rate_scale = 1;    ///< factor of link rates and, in addition, bytes; above 0, at most 1
  std::string cc = "dctcp";
  std::vector<Scheme> schemes;  ///< without duplicates, at least one
  MltcpSettings mltcp;
  cc::Parameters parameters;
  fabric::SwitchedNetworkConfig topology;  ///< its seed is set for each run
  std::vector<JobType> types;              ///< at least one; types that occur only in the arrivals file come last

  /// If arrivals are random:
  std::uint32_t arriving = 0;  ///< number of arriving jobs; 0 = from a file
  std::uint32_t at_start = 0;  ///< number of those that arrive at time 0
  double load = 0;             ///< 0 = `gap` was given
  Nanos gap;                   ///< mean time between arrivals, scaled
  /// If arrivals are from a file: the jobs, scaled. Jobs from a table of jobs have a length instead of a type, and
  /// arrivals_of() draws the type.
  std::vector<workload::Arrival> listed;
  bool types_are_drawn = false;
  std::uint32_t gpus_per_host = 1;

  std::uint32_t candidates = 10;  ///< number of placements compared per job
  ScheduleSettings schedule;
  double max_slot_stretch = 0.25;  ///< maximum stretch of slots if it improves scores, see scheduler::ClusterOptions
  double min_score = 0.98;         ///< jobs get slots if all links that connect them reach this score; 0 to 1

  std::vector<std::string> warnings;  ///< as for Experiment
};

/// The jobs that arrive with this seed; they are the same for all schemes. Types are indices of `types`.
std::vector<workload::Arrival> arrivals_of(const ClusterExperiment& experiment, std::uint64_t seed);

/// "packet", "flow".
std::string_view to_text(ClusterExperiment::Level level);

/// Settings of the command line that override the file's.
struct ClusterFileOptions {
  std::optional<ClusterExperiment::Level> level;
  std::vector<std::string> schemes;  ///< empty: the file's
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> seeds;
};

/// Reads a cluster file, and the traces and arrivals it refers to. Throws InputError.
ClusterExperiment load_cluster(const std::filesystem::path& path, const ClusterFileOptions& options = {});
/// The same from memory; `file` is used in messages, and its folder to find other files.
ClusterExperiment parse_cluster(std::string_view text, const std::string& file, const ClusterFileOptions& options = {});

}  // namespace mltcp::experiment
