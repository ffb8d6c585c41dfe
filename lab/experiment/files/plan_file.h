// Plan files "mltcp.plan/1", with which a scheduler assigns slots to running jobs, and a watcher for changes to them.
// docs/reference/plan-file.md describes the format and its semantics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

inline constexpr std::string_view kPlanSchema = "mltcp.plan/1";

/// Content of a plan file. If the name of a JSON field differs from the name of its member, the member's comment names
/// the field.
struct PlanFile {
  enum class Clock : std::uint8_t {
    experiment,  ///< 0 means the experiment's time 0
    realtime,    ///< CLOCK_REALTIME, in nanoseconds since 1970
  };
  struct PlannedJob {
    std::string name;  ///< unique within the plan
    Nanos period;      ///< field period_ns: time between the job's slots in nanoseconds, above 0, at most 2^53
    Nanos offset;      ///< field offset_ns: start of a communication phase after the epoch in nanoseconds, 0 to 2^53
    bool operator==(const PlannedJob&) const = default;
  };
  std::uint64_t serial = 0;  ///< must increase whenever the plan changes
  Clock clock = Clock::experiment;
  Nanos epoch;  ///< field epoch_ns: nanoseconds on the clock `clock`, 0 to 2^61
  /// Field valid_until_ns, on the clock `clock`; optional, never() if the plan does not expire.
  Nanos valid_until = Nanos::never();
  /// Field clock_bound_ns; see PhasePlan; this field and the fields up to gradual_step are optional.
  Nanos clock_bound;
  double tolerance = 0.05;
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  std::vector<PlannedJob> jobs;
  bool operator==(const PlanFile&) const = default;
};

/// Returns the slots of job `job` of the plan, on a clock that shows `zero` when the plan's clock shows 0.
PhasePlan slots_of(const PlanFile& plan, const PlanFile::PlannedJob& job, Nanos zero);

/// Parse or read a plan. Throw InputError with one line that names file, field, cause and cure. Refuse unknown fields,
/// because a misspelt optional field would change the meaning.
PlanFile parse_plan(std::string_view text, const std::string& file);
PlanFile read_plan(const std::filesystem::path& path);
/// Returns the plan as JSON. Includes `provenance` if it is set; readers ignore it.
std::string to_json(const PlanFile& plan, const std::optional<Provenance>& provenance = std::nullopt);
/// Replaces the file at `path` atomically. Throws RunError on failure.
void write_plan(const PlanFile& plan, const std::filesystem::path& path);

/// Watches a plan file by polling at a limited rate, and reads the file only after a change. Too slow for the data
/// path.
class PlanWatcher {
 public:
  enum class News : std::uint8_t {
    none,
    plan,  ///< plan() has changed and has a higher serial
    gone,  ///< the file was removed, and plan() is empty
  };

  explicit PlanWatcher(std::filesystem::path path, Nanos interval = Nanos(100'000'000))
      : path_(std::move(path)), interval_(interval) {}

  /// Checks the file if this is the first call or if `interval` has passed since the last check. `now` must not
  /// decrease. If the file is invalid, the plan does not change.
  News poll(Nanos now);
  [[nodiscard]] const std::optional<PlanFile>& plan() const { return plan_; }
  /// Returns the problems found since the last call, and clears them. Each problem is one line, reported once per
  /// change of the file.
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
