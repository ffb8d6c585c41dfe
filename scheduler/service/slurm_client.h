// What Slurm says of its jobs and nodes, and what it is told, by its own programs: squeue, sinfo, scontrol. They are
// run without a shell, with a time limit and a bound on what they may print; what they print is checked (version 22.05
// and later). No library of Slurm's is linked, so that one build goes with every version.
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

/// Slurm does not answer, or refuses; one line for people.
struct SlurmError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SlurmJob {
  enum class State : std::uint8_t { pending, running, ended };

  std::uint32_t id = 0;
  std::int64_t submitted = 0;  ///< Unix time; numbers are used again, this and the number together are not
  State state = State::pending;
  bool held = false;  ///< pending with priority 0
  /// Held by an administrator, who alone may release it.
  bool held_by_administrator = false;
  bool in_array = false;
  bool in_het_job = false;   ///< a part of a heterogeneous job
  bool whole_nodes = false;  ///< it shares its nodes with nobody
  std::uint32_t node_count = 1;
  std::uint32_t cpus_per_node = 1;        ///< at least
  std::vector<std::string> nodes;         ///< that it has
  std::vector<std::string> asked_nodes;   ///< that it has to have
  std::vector<std::string> barred_nodes;  ///< that it must not have, while it is pending and a job is held
  std::string partition;                  ///< or several, with commas
  std::string features;                   ///< as sbatch --constraint has it; empty: none
  std::string user;
  std::string admin_comment;

  bool operator==(const SlurmJob&) const = default;
};

/// A node, as one of its partitions sees it.
struct SlurmNode {
  std::string name;
  std::string partition;
  bool takes_jobs = false;  ///< up, and neither drained nor about to reboot
  bool idle = false;        ///< nothing runs on it
  std::uint32_t free_cpus = 0;
  std::vector<std::string> features;

  bool operator==(const SlurmNode&) const = default;
};

/// For the driver; tests have one without Slurm. All functions throw SlurmError.
class SlurmControl {
 public:
  virtual ~SlurmControl() = default;
  /// Of all users, those that ended a short while ago included.
  virtual std::vector<SlurmJob> jobs() = 0;
  virtual std::vector<SlurmNode> nodes() = 0;
  /// Sets a pending or running job's comment of administrators.
  virtual void set_comment(std::uint32_t job, const std::string& comment) = 0;
  /// The same, and the nodes that a pending job has to have; none: any.
  virtual void set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) = 0;
  virtual void release(std::uint32_t job) = 0;
  /// Such that its owner may release it.
  virtual void hold(std::uint32_t job) = 0;
};

class SlurmPrograms : public SlurmControl {
 public:
  struct Options {
    std::filesystem::path folder;         ///< of the programs; empty: PATH
    Nanos limit = Nanos(10'000'000'000);  ///< of one run
    std::size_t max_output = 256U << 20;  ///< bytes of one run
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

// The parts of it that need no program.

/// Of the output of squeue, as SlurmPrograms asks for it. Throws SlurmError that quotes the line.
std::vector<SlurmJob> parse_jobs(std::string_view output);
/// Of the second question to it: what nodes pending jobs must not have.
void parse_barred_nodes(std::string_view output, std::vector<SlurmJob>& jobs);
/// The same of sinfo.
std::vector<SlurmNode> parse_nodes(std::string_view output);

}  // namespace mltcp::service
