// The mark in a Slurm job's AdminComment, with the submitter's profile and the job's plan. plugins/slurm/job_submit.lua
// and the driver write it; the driver and, on the nodes, plugins/slurm/spank_mltcp.c read it:
//
//   mltcp:{"profile":{...},"plan":{"number":3,"hosts":["n0","n1"],"slot_unix_ns":...,"slot_period_ns":...,
//          "time_shift_ns":...,"score":1,"revision":17}}
//
// A plan without slots has "reason" and no times. A mark also has "reason" if there will be no plan. Other text before
// and after the mark in the comment is kept. There are no spaces except in reasons, and no braces or escapes in
// strings, so that a reader in C needs no JSON parser.
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
  std::string before;                    ///< text before the mark
  std::string behind;                    //
  std::string profile;                   ///< for profile_from_text()
  std::string reason;                    ///< why there will be no plan; empty: there is one or will be
  bool held = false;                     ///< its user submitted it held, and must release it
  std::vector<std::string> asked_nodes;  ///< the user's required nodes, if the placement has replaced them
  using Plan = SlurmPlan;
  std::optional<Plan> plan;

  bool operator==(const SlurmMark&) const = default;
};

/// Whether an id has the form of Slurm jobs in the service (SlurmDriver::id_of): "slurm-17-1764063600". Other clients
/// must not use it: a job with such an id that Slurm does not know counts as ended.
bool is_slurm_id(std::string_view id);

/// Empty if the comment has no mark, or an invalid one.
std::optional<SlurmMark> parse_mark(std::string_view comment);
/// The whole comment.
std::string to_text(const SlurmMark& mark);
SlurmMark::Plan to_mark(const JobPlan& plan);

/// A profile in one line of JSON, as printed by `mltcp profile` and written by job_submit.lua.
std::string to_line(const JobProfile& profile);

}  // namespace mltcp::service
