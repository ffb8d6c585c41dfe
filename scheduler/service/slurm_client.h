// Queries and controls Slurm (version 22.05 or later) by its programs squeue, sinfo and scontrol. The programs run
// without a shell, with a time limit and an output limit. Their output is checked. No library of Slurm is linked, so
// one build works with all these versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::service {

/// Slurm does not answer, or refuses a command. The text has one line.
struct SlurmError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SlurmJob {
  enum class State : std::uint8_t { pending, running, ended };

  std::uint32_t id = 0;
  std::int64_t submitted = 0;  ///< Unix time in seconds; Slurm reuses ids, but not with the same `submitted`
  State state = State::pending;
  bool held = false;  ///< true if the job is pending with priority 0
  /// True if an administrator has held the job. Only an administrator may release it.
  bool held_by_administrator = false;
  bool in_array = false;
  bool in_het_job = false;   ///< true if the job is part of a heterogeneous job
  bool whole_nodes = false;  ///< true if the job does not share its nodes
  std::uint32_t node_count = 1;
  std::uint32_t cpus_per_node = 1;       ///< minimum number of CPUs on each node
  std::vector<std::string> nodes;        ///< nodes allocated to the job
  std::vector<std::string> asked_nodes;  ///< nodes that the job requires
  /// Nodes that the job excludes. Set only for pending jobs, and only if at least one job is held.
  std::vector<std::string> barred_nodes;
  std::string partition;  ///< one partition, or several separated by commas
  std::string features;   ///< required features, as for sbatch --constraint; may be empty
  std::string user;
  std::string admin_comment;

  bool operator==(const SlurmJob&) const = default;
};

/// A node in one partition. A node in several partitions has an entry for each.
struct SlurmNode {
  std::string name;
  std::string partition;
  bool takes_jobs = false;  ///< true if the node is up, not drained, and not about to reboot
  bool idle = false;        ///< true if no jobs run on the node
  std::uint32_t free_cpus = 0;
  std::vector<std::string> features;

  bool operator==(const SlurmNode&) const = default;
};

/// Interface through which the driver uses Slurm. Tests implement it without Slurm. All functions throw SlurmError.
class SlurmControl {
 public:
  virtual ~SlurmControl() = default;
  /// Returns the jobs of all users, including jobs that have ended recently.
  virtual std::vector<SlurmJob> jobs() = 0;
  virtual std::vector<SlurmNode> nodes() = 0;
  /// Sets the AdminComment of a pending or running job.
  virtual void set_comment(std::uint32_t job, const std::string& comment) = 0;
  /// Sets the AdminComment and the required nodes of a pending job. If `nodes` is empty, the job requires no nodes.
  virtual void set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) = 0;
  virtual void release(std::uint32_t job) = 0;
  /// Holds a job in such a way that its owner may release it.
  virtual void hold(std::uint32_t job) = 0;
};

class SlurmPrograms : public SlurmControl {
 public:
  struct Options {
    std::filesystem::path folder;         ///< folder of the programs; if empty, PATH is searched
    Nanos limit = Nanos(10'000'000'000);  ///< time limit of one run of a program
    std::size_t max_output = 256U << 20;  ///< maximum output of one run, in bytes
  };
  explicit SlurmPrograms(Options options) : options_(std::move(options)) {}

  std::vector<SlurmJob> jobs() override;
  std::vector<SlurmNode> nodes() override;
  void set_comment(std::uint32_t job, const std::string& comment) override;
  void set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) override;
  void release(std::uint32_t job) override;
  void hold(std::uint32_t job) override;

 private:
  std::string run(const std::string& program, const std::vector<std::string>& arguments) const;

  Options options_;
};

// Parsers for the output of the programs. All throw SlurmError that quotes the invalid line.

/// Parses the output of squeue in the format that SlurmPrograms::jobs() requests.
std::vector<SlurmJob> parse_jobs(std::string_view output);
/// Parses the output of the squeue call for excluded nodes, and sets SlurmJob::barred_nodes in `jobs`.
void parse_barred_nodes(std::string_view output, std::vector<SlurmJob>& jobs);
/// Parses the output of sinfo.
std::vector<SlurmNode> parse_nodes(std::string_view output);

}  // namespace mltcp::service
