// Reader of cluster files. A cluster file is TOML that describes a cluster, the stream of jobs that arrives, and the
// schemes that place and drive the jobs. docs/reference/cluster-file.md lists all keys with units, defaults and ranges.
// Errors are reported as in experiment files (experiment_file.h).
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

/// A scheme: how jobs are placed, and which policy drives them. Written "PLACEMENT[+schedule][+mltcp]", or "ideal".
/// PLACEMENT is random, locality or compatible.
struct Scheme {
  enum class Placement : std::uint8_t {
    random,
    locality,
    compatible,  ///< the candidate whose jobs are most compatible on shared links
    ideal,       ///< every job runs alone on a dedicated network
  };
  std::string name;
  Placement placement = Placement::locality;
  const Policy* policy = nullptr;  ///< the policy that drives the jobs; not null
};

/// Returns a message "cause; cure" if `text` is not a valid scheme; empty if `text` is valid.
std::string objection_to_scheme(std::string_view text);
/// Parses a scheme. `text` must be valid, see objection_to_scheme().
Scheme scheme_from(std::string_view text);
/// Returns the schemes to run if a file names none.
const std::vector<std::string>& default_schemes();

/// A type of jobs.
struct JobType {
  std::string name;    ///< unique
  std::string source;  ///< origin of the type, for people, such as "model VGG16", "trace a.txt", "phases"
  workload::TypeChoices choices;
  std::string cc;  ///< congestion control algorithm; empty if the file's default applies
  /// The jobs of this type by (number of workers, batch size). Times are scaled; name, start and iterations are not
  /// set. Contains every combination that may arrive.
  std::map<std::pair<std::uint32_t, std::uint32_t>, workload::Job> jobs;
};

struct ClusterExperiment {
  enum class Level : std::uint8_t { packet, flow };

  std::string name;
  std::string file;  ///< path of the file as the user gave it
  Level level = Level::packet;
  std::uint64_t seed = 1;
  std::uint32_t seeds = 1;  ///< number of seeds to run: `seed`, `seed` + 1 and so on
  double time_scale = 1;    ///< factor of compute times, bytes and arrival times; above 0, at most 1
  double rate_scale = 1;    ///< factor of link rates and, like time_scale, of bytes; above 0, at most 1
  std::string cc = "dctcp";
  std::vector<Scheme> schemes;  ///< at least one; no duplicates
  MltcpSettings mltcp;
  cc::Parameters parameters;
  fabric::SwitchedNetworkConfig topology;  ///< the network; each run sets the seed
  std::vector<JobType> types;              ///< at least one; types that occur only in the arrivals file come last

  /// The next four fields apply to random arrivals.
  std::uint32_t arriving = 0;  ///< number of arriving jobs; 0 if arrivals are from a file
  std::uint32_t at_start = 0;  ///< number of jobs that arrive at time 0
  double load = 0;             ///< offered load; 0 if the file sets `gap` instead
  Nanos gap;                   ///< scaled mean time between arrivals
  /// If arrivals are from a file: the arriving jobs, with scaled times. Jobs from a table of jobs have a length but no
  /// type; arrivals_of() draws their types.
  std::vector<workload::Arrival> listed;
  bool types_are_drawn = false;
  std::uint32_t gpus_per_host = 1;

  std::uint32_t candidates = 10;  ///< number of placements to compare for each job
  ScheduleSettings schedule;
  double max_slot_stretch = 0.25;  ///< limit for stretching slots to improve scores, see scheduler::ClusterOptions
  double min_score = 0.98;  ///< jobs get slots only if all links that connect them have at least this score; 0 to 1

  std::vector<std::string> warnings;  ///< see Experiment::warnings
};

/// Returns the jobs that arrive with seed `seed`, which are the same for all schemes. A job's type is an index in
/// `experiment.types`.
std::vector<workload::Arrival> arrivals_of(const ClusterExperiment& experiment, std::uint64_t seed);

/// Returns "packet" or "flow".
std::string_view to_text(ClusterExperiment::Level level);

/// Settings of the command line. Each one that is set overrides the file's setting.
struct ClusterFileOptions {
  std::optional<ClusterExperiment::Level> level;
  std::vector<std::string> schemes;  ///< empty if the file's schemes apply
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> seeds;
};

/// Reads a cluster file, and the trace and arrival files that the cluster file names. Throws InputError for invalid
/// files.
ClusterExperiment load_cluster(const std::filesystem::path& path, const ClusterFileOptions& options = {});
/// Parses the text of a cluster file. Error messages name `file`; relative paths in `text` start from the folder of
/// `file`.
ClusterExperiment parse_cluster(std::string_view text, const std::string& file, const ClusterFileOptions& options = {});

}  // namespace mltcp::experiment
