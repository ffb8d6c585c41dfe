// Fuzzes the readers of files (TOML and tables) that describe experiments, clusters, switches, topologies and links.
// Also fuzzes the reader of jobs that unknown peers send.
//
// Input: a byte that chooses the reader, then the text. Texts that name other files are skipped, so that a fuzzer does
// not access files of the machine.
#include <string>
#include <utility>
#include <vector>

#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/job_file.h"
#include "mltcp/lab/experiment/files/links_file.h"
#include "mltcp/lab/experiment/files/slurm_topology.h"
#include "mltcp/lab/experiment/files/switch_file.h"
#include "mltcp/lab/experiment/files/topology_file.h"
#include "mltcp/lab/workload/inspection.h"
#include "target.h"

namespace mltcp::fuzz {

namespace {

using namespace experiment;

FileOptions options_of(std::vector<std::string> datapaths) {
  FileOptions options;
  options.datapaths = std::move(datapaths);
  return options;
}

}  // namespace

void fuzz_experiment(Input input) {
  Program program(input);
  const std::uint8_t reader = program.byte();
  const std::string text = program.text();
  if (text.find('/') != std::string::npos || text.find("..") != std::string::npos) return;
  switch (reader % 8) {
    case 0:
      is_read([&] {
        const Experiment read = parse_experiment(text, "x.toml", options_of({}));
        require(!read.jobs.empty() && !read.policies.empty(), "an experiment without jobs or policies");
        for (const workload::Job& job : read.jobs)
          if (!job.pattern && !job.programs) {
            // A job that was read and printed must read as the same job again.
            const workload::Job again = parse_job(workload::to_toml(job), "again");
            require(again.phases.size() == job.phases.size(), "a job that is printed with other phases");
          }
      });
      return;
    case 1:
      is_read([&] {
        FileOptions options = options_of({"sim", "flow"});
        options.virtual_time_only = true;
        const Experiment read = parse_experiment(text, "x.toml", options);
        require(read.fingerprint == parse_experiment(text, "y.toml", options).fingerprint,
                "an experiment of two fingerprints");
      });
      return;
    case 2:
      is_read([&] { static_cast<void>(parse_cluster(text, "x.toml")); });
      return;
    case 3:
      is_read([&] { static_cast<void>(parse_switch(text, "x.toml", {})); });
      return;
    case 4:
      is_read([&] { static_cast<void>(parse_topology(text, "x.toml")); });
      return;
    case 5:
      if (kind_of(text) == FileKind::slurm_topology)
        is_read([&] {
          const Topology network(parse_slurm_topology(
              text, "x.conf", {.host_rate = Rate(1000), .uplink_rate = {}, .oversubscription = 2, .delay = Nanos(1)}));
          network.check_all_paths();
        });
      else
        is_read([&] { static_cast<void>(parse_links(text, "x.csv", {.hosts = {"h*"}, .delay = Nanos(1000)})); });
      return;
    case 6:
      is_read([&] { static_cast<void>(parse_job(text, "job")); });
      return;
    default: {
      // Reads the input as a key and a new value for this key, which replaces the value in a file, as in sweeps and
      // with --vary.
      const std::size_t space = text.find(' ');
      if (space == std::string::npos) return;
      constexpr std::string_view plain =
          "policies = [\"fair\", \"mltcp\"]\n[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ncompute = \"1 "
          "ms\"\ncommunicate = \"1 MB\"\n";
      FileOptions options = options_of({"sim"});
      options.overrides.push_back({.key = text.substr(0, space), .value = text.substr(space + 1), .origin = "--vary"});
      is_read([&] { static_cast<void>(parse_experiment(plain, "x.toml", options)); });
      return;
    }
  }
}

}  // namespace mltcp::fuzz
