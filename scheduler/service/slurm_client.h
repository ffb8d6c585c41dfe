// Queries and commands to Slurm by its own programs: squeue, sinfo, scontrol. They run without a shell, with a time
// limit and an output limit; their output is checked (version 22.05 and later). No library of Slurm is linked, so one
// build works with every version.
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

/// Slurm does not answer, or refuses; one line.
struct SlurmError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SlurmJob {
  enum class State : std::uint8_t { pending, running, ended };

  std::uint32_t id = 0;
  std::int64_t submitted = 0;  ///< Unix time; ids are reused, but not with the same `submitted`
  State state = State::pending;
  bool held = false;  ///< pending with priority 0
  /// Held by an administrator, who alone may release it.
  bool held_by_administrator = false;
  bool in_array = false;
  bool in_het_job = false;   ///< a part of a heterogeneous job
  bool whole_nodes = false;  ///< it does not share its nodes
  std::uint32_t node_count = 1;
  std::uint32_t cpus_per_node = 1;        ///< minimum
  std::vector<std::string> nodes;         ///< allocated to it
  std::vector<std::string> asked_nodes;   ///< that it requires
  std::vector<std::string> barred_nodes;  ///< that it excludes; only if it is pending and any job is held
  std::string partition;                  ///< or several, separated by commas
  std::string features;                   ///< in the syntax of sbatch --constraint; empty: none
  std::string user;
  std::string admin_comment;

  bool operator==(const SlurmJob&) const = default;
};

/// A node in one of its partitions.
struct SlurmNode {
  std::string name;
  std::string partition;
  bool takes_jobs = false;  ///< up, and neither drained nor about to reboot
  bool idle = false;        ///< no jobs run on it
  std::uint32_t free_cpus = 0;
  std::vector<std::string> features;

  bool operator==(const SlurmNode&) const = default;
};

/// The driver's interface to Slurm; tests implement it without Slurm. All functions throw SlurmError.
class SlurmControl {
 public:
  virtual ~SlurmControl() = default;
  /// Jobs of all users, including those that ended recently.
  virtual std::vector<SlurmJob> jobs() = 0;
  virtual std::vector<SlurmNode> nodes() = 0;
  /// Sets the AdminComment of a pending or running job.
  virtual void set_comment(std::uint32_t job, const std::string& comment) = 0;
  /// The same, and the required nodes of a pending job; empty: any.
  virtual void set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) = 0;
  virtual void release(std::uint32_t job) = 0;
  /// Holds a job so that its owner may release it.
  virtual void hold(std::uint32_t job) = 0;
};

class SlurmPrograms : public SlurmControl {
 public:
  struct Options {
    std::filesystem::path folder;         ///< of the programs; empty: PATH
    Nanos limit = Nanos(10'000'000'000);  ///< per run
    std::size_t max_output = 256U << 20;  ///< bytes per run
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

// Parsers of the programs' output.

/// Parses squeue's output in the format of SlurmPrograms. Throws SlurmError that quotes the line.
std::vector<SlurmJob> parse_jobs(std::string_view output);
/// Parses squeue's second output: nodes that pending jobs exclude.
void parse_barred_nodes(std::string_view output, std::vector<SlurmJob>& jobs);
/// Parses sinfo's output.
std::vector<SlurmNode> parse_nodes(std::string_view output);

}  // namespace mltcp::service
