// The plan file "mltcp.plan/1": slots for running jobs, as a scheduler hands them out, and a watcher that notices when
// the file changes. The format, field by field, and what happens when: docs/plans.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/provenance.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

inline constexpr std::string_view kPlanSchema = "mltcp.plan/1";

/// The structs mirror the JSON file; where a member's name differs from the field's, the field stands in the comment.
struct PlanFile {
  enum class Clock : std::uint8_t {
    experiment,  ///< 0 is the experiment's time 0
    realtime,    ///< CLOCK_REALTIME: nanoseconds since 1970
  };
  struct Job {
    std::string name;  ///< unique within the plan
    Nanos period;      ///< period_ns: above 0, at most 2^53
    Nanos offset;      ///< offset_ns: of an up phase from the epoch, 0 to 2^53
    bool operator==(const Job&) const = default;
  };
  std::uint64_t serial = 0;  ///< counts up with every change
  Clock clock = Clock::experiment;
  Nanos epoch;                         ///< epoch_ns: 0 to 2^61
  Nanos valid_until = Nanos::never();  ///< valid_until_ns, of the same clock; may be absent: for ever
  Nanos clock_bound;                   ///< clock_bound_ns; this and the next three as in PhasePlan, and may be absent
  double tolerance = 0.05;
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  std::vector<Job> jobs;
  bool operator==(const PlanFile&) const = default;
};

/// The slots of one of the plan's jobs on a clock that shows `zero` when the plan's shows 0.
PhasePlan slots_of(const PlanFile& plan, const PlanFile::Job& job, Nanos zero);

/// Throws InputError, in one line that names `file`, field, what is wrong and the cure. Fields that the format doesn't
/// have are refused: a slip of the pen in one that may be absent would change what the plan means.
PlanFile parse_plan(std::string_view text, const std::string& file);
PlanFile read_plan(const std::filesystem::path& path);
/// With where it comes from, if that is given: nothing that the plan means, and not read again.
std::string to_json(const PlanFile& plan, const std::optional<Provenance>& provenance = std::nullopt);
/// Readers see the old file or the new one, never a part. Throws RunError.
void write_plan(const PlanFile& plan, const std::filesystem::path& path);

/// Follows a plan file. Not for the data path: it looks at the file, at a bounded rate, and reads it when it changed.
class PlanWatcher {
 public:
  enum class News : std::uint8_t {
    none,
    plan,  ///< plan() is another one, with a newer serial
    gone,  ///< there is no file any more, and no plan
  };

  explicit PlanWatcher(std::filesystem::path path, Nanos interval = Nanos(100'000'000))
      : path_(std::move(path)), interval_(interval) {}

  /// Looks if `interval` has passed since it did (the first time at once). `now` never falls. A file that can't be used
  /// leaves the plan as it is.
  News poll(Nanos now);
  [[nodiscard]] const std::optional<PlanFile>& plan() const { return plan_; }
  /// What was wrong since it was asked last: a line each, once per change of the file.
  std::vector<std::string> take_problems() { return std::exchange(problems_, {}); }

 private:
  struct Identity {
    std::int64_t modified_ns = 0;
    std::uint64_t size = 0;
    std::uint64_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  [[nodiscard]] std::optional<Identity> look() const;

  std::filesystem::path path_;
  Nanos interval_;
  Nanos next_look_;
  std::optional<Identity> seen_;
  std::optional<PlanFile> plan_;
  std::vector<std::string> problems_;
};

}  // namespace mltcp::experiment
