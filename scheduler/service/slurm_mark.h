// What the AdminComment of a job says about it: who submitted it named a profile, and here is its plan. It is written
// by plugins/slurm/job_submit.lua and by the driver, and read by the driver and, on the nodes, by
// plugins/slurm/spank_mltcp.c:
//
//   mltcp:{"profile":{...},"plan":{"number":3,"hosts":["n0","n1"],"slot_unix_ns":...,"slot_period_ns":...,
//          "time_shift_ns":...,"score":1,"revision":17}}
//
// A plan without slots has "reason" and no times; so has a mark without a plan, where there will be none. Whatever else
// stands before and behind it in the comment is kept. No spaces outside of reasons, no braces and no escapes in
// strings, so that a reader in C needs no parser of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/scheduler/service/job_profile.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

struct SlurmPlan {
  std::uint32_t number = 0;
  std::vector<std::string> hosts;
  bool slots = false;
  std::string reason{};
  std::int64_t slot_unix_ns = 0;
  std::int64_t slot_period_ns = 0;
  std::int64_t time_shift_ns = 0;
  double score = 1;
  std::uint64_t revision = 0;
  bool operator==(const SlurmPlan&) const = default;
};

struct SlurmMark {
  std::string before;                    ///< others' text
  std::string behind;                    //
  std::string profile;                   ///< for profile_from_text()
  std::string reason;                    ///< why there will be no plan; empty: there is or will be one
  bool held = false;                     ///< by its user, who submitted it so: it is theirs to release
  std::vector<std::string> asked_nodes;  ///< by the user, where the placement has taken their place
  using Plan = SlurmPlan;
  std::optional<Plan> plan;

  bool operator==(const SlurmMark&) const = default;
};

/// Whether an id is one that jobs of Slurm's have in the service (SlurmDriver::id_of): "slurm-17-1764063600". Others
/// may not give it: what has it and is no job of Slurm's has ended.
bool is_slurm_id(std::string_view id);

/// Nothing if the comment has no mark, or one that is not understood.
std::optional<SlurmMark> parse_mark(std::string_view comment);
/// The comment.
std::string to_text(const SlurmMark& mark);
SlurmMark::Plan to_mark(const JobPlan& plan);

/// A profile in one line of JSON, as `mltcp profile` prints it and job_submit.lua marks it.
std::string to_line(const JobProfile& profile);

}  // namespace mltcp::service
