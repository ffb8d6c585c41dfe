// The plan file "mltcp.plan/1", by which a scheduler assigns slots to running jobs, and a watcher of changes to it. The
// format and its semantics: docs/reference/plan-file.md.
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

/// The structs mirror the JSON file; where a member's name differs from the field's, the comment names the field.
struct PlanFile {
  enum class Clock : std::uint8_t {
    experiment,  ///< 0 is the experiment's time 0
    realtime,    ///< CLOCK_REALTIME: nanoseconds since 1970
  };
  struct PlannedJob {
    std::string name;  ///< unique within the plan
    Nanos period;      ///< period_ns: above 0, at most 2^53
    Nanos offset;      ///< offset_ns: start of a communication phase relative to the epoch, 0 to 2^53
    bool operator==(const PlannedJob&) const = default;
  };
  std::uint64_t serial = 0;  ///< must increase with every change
  Clock clock = Clock::experiment;
  Nanos epoch;                         ///< epoch_ns: 0 to 2^61
  Nanos valid_until = Nanos::never();  ///< valid_until_ns: on the same clock; optional, default: for ever
  Nanos clock_bound;                   ///< clock_bound_ns; optional, as are the members below; see PhasePlan
  double tolerance = 0.05;
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  std::vector<PlannedJob> jobs;
  bool operator==(const PlanFile&) const = default;
};

/// The slots of one of the plan's jobs, on a clock that shows `zero` when the plan's clock shows 0.
PhasePlan slots_of(const PlanFile& plan, const PlanFile::PlannedJob& job, Nanos zero);

/// Throws InputError with one line that names `file`, field, cause and cure. Unknown fields are refused, since a
/// misspelt optional field would change the meaning.
PlanFile parse_plan(std::string_view text, const std::string& file);
PlanFile read_plan(const std::filesystem::path& path);
/// `provenance` is written if given; readers ignore it.
std::string to_json(const PlanFile& plan, const std::optional<Provenance>& provenance = std::nullopt);
/// Replaces the file atomically. Throws RunError.
void write_plan(const PlanFile& plan, const std::filesystem::path& path);

/// Watches a plan file, by polling it at a limited rate; reads it only when it has changed. Not for the data path.
class PlanWatcher {
 public:
  enum class News : std::uint8_t {
    none,
    plan,  ///< plan() has changed; it has a higher serial
    gone,  ///< the file has been removed, and there is no plan
  };

  explicit PlanWatcher(std::filesystem::path path, Nanos interval = Nanos(100'000'000))
      : path_(std::move(path)), interval_(interval) {}

  /// Checks the file if `interval` has passed since the last check (the first time at once). `now` must not decrease.
  /// An invalid file leaves the plan unchanged.
  News poll(Nanos now);
  [[nodiscard]] const std::optional<PlanFile>& plan() const { return plan_; }
  /// Returns and clears the problems found: one line each, once per change of the file.
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
