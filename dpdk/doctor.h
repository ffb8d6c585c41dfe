// What this machine offers the datapaths, found out by looking and trying, each lack with its cure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mltcp::dpdk {

enum class CheckStatus {
  ok,
  warn,     ///< works, but slower or less precisely
  missing,  ///< what needs it does not work
};
/// "ok", "warn", "missing".
std::string_view to_text(CheckStatus status);

struct Check {
  std::string name;  ///< "huge pages"
  CheckStatus status = CheckStatus::ok;
  std::string detail;  ///< what was found, one line
  std::string cure;    ///< what to do, one line; empty if and only if the status is ok
};

/// Examines the machine; takes a second or two. DPDK is tried in child processes, so the caller's stays as it is; call
/// it before other threads are started. Changes nothing on the machine and never throws for what it finds.
std::vector<Check> examine_machine();

}  // namespace mltcp::dpdk
