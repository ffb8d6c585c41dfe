// Reader of cluster files: the TOML that describes a cluster, the stream of jobs that arrive at it, and the schemes by
// which they are placed and driven. Every key, its unit, default and range: docs/cluster.md. Errors are as in
// experiment files (experiment_file.h).
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
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/files/policy.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/workload/arrivals.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// How jobs are placed and driven. Written "PLACEMENT[+schedule][+mltcp]" with names of policies, or "ideal".
struct Scheme {
  enum class Placement : std::uint8_t {
    random,
    locality,
    compatible,  ///< of several candidates, the one whose jobs fit best on the links that they share
    ideal,       ///< a dedicated network: each job as if it were alone
  };
  std::string name;
  Placement placement = Placement::locality;
  const Policy* policy = nullptr;  ///< that drives them; not null
};

/// "cause; cure" when `text` is no scheme.
std::string objection_to_scheme(std::string_view text);
/// Of a text that is one.
Scheme scheme_from(std::string_view text);
/// Those of a file that names none.
const std::vector<std::string>& default_schemes();

/// Jobs of one kind.
struct JobType {
  std::string name;    ///< unique
  std::string source;  ///< what it was made from: "model VGG16", "trace a.txt", "phases"
  workload::TypeChoices choices;
  std::string cc;  ///< empty: the file's
  /// By workers and batch: the job with all but name, start and iterations, time-scaled. There for all that may arrive.
  std::map<std::pair<std::uint32_t, std::uint32_t>, workload::Job> jobs;
};

struct ClusterExperiment {
  enum class Level : std::uint8_t { packet, flow };

  std::string name;
  std::string file;  ///< as it was given
  Level level = Level::packet;
  std::uint64_t seed = 1;
  std::uint32_t seeds = 1;  ///< runs with as many seeds, from `seed` on
  double time_scale = 1;    ///< compute times, bytes and arrivals are multiplied by it; above 0, at most 1
  double rate_scale = 1;    ///< rates of links and, once more, bytes are multiplied by it; above 0, at most 1
  std::string cc = "dctcp";
  std::vector<Scheme> schemes;  ///< each once, at least one
  MltcpSettings mltcp;
  cc::Parameters parameters;
  sim::SwitchedNetworkConfig topology;  ///< its seed is set for each run
  std::vector<JobType> types;           ///< at least one; those that only the arrivals' file names are at the end

  /// Drawn:
  std::uint32_t arriving = 0;  ///< jobs; 0 = they come from a file
  std::uint32_t at_start = 0;  ///< of those, at time 0
  double load = 0;             ///< 0 = `gap` was given
  Nanos gap;                   ///< mean, scaled
  /// From a file, scaled:
  std::vector<workload::Arrival> listed;

  std::uint32_t candidates = 10;  ///< placements of a job that are compared
  ScheduleSettings schedule;
  double most_stretch = 0.25;  ///< of slots, where it is worth more than it costs; scheduler::ClusterOptions
  double min_score = 0.98;     ///< jobs get slots where all links through which they hang together reach this; 0 to 1

  std::vector<std::string> warnings;  ///< as Experiment's
};

/// The jobs that arrive with this seed, the same for every scheme. Types are indices of `types`.
std::vector<workload::Arrival> arrivals_of(const ClusterExperiment& experiment, std::uint64_t seed);

/// "packet", "flow".
std::string_view to_text(ClusterExperiment::Level level);

/// Values that the command line sets in place of the file's.
struct ClusterFileOptions {
  std::optional<ClusterExperiment::Level> level;
  std::vector<std::string> schemes;  ///< empty: the file's
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> seeds;
};

/// Reads a cluster file, and the traces and arrivals that it names. Throws InputError.
ClusterExperiment load_cluster(const std::filesystem::path& path, const ClusterFileOptions& options = {});
/// The same from memory; `file` stands in messages, and what it names is looked for in its folder.
ClusterExperiment parse_cluster(std::string_view text, const std::string& file, const ClusterFileOptions& options = {});

}  // namespace mltcp::experiment
