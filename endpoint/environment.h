// What users set by environment variables for programs that nobody wants to change: the plug-ins read all of it here,
// so that a name means the same to each. docs/reference/environment.md lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::endpoint {

/// getenv(3), or a test's.
using ReadVariable = const char* (*)(const char* name);
/// getenv(3).
const char* process_variable(const char* name);
/// secure_getenv(3): not where the program has more rights than who sets its environment, for what reads or makes
/// files.
const char* trusted_variable(const char* name);

/// Without spaces at its ends; empty where it is not set.
std::string_view variable(ReadVariable read, const char* name);
/// `otherwise` where it is not set. Throws InputError that names it and the range.
std::uint64_t number_variable(ReadVariable read, const char* name, std::uint64_t otherwise, std::uint64_t least,
                              std::uint64_t most);
/// "1", or "0" and not set. Throws InputError.
bool flag_variable(ReadVariable read, const char* name);

/// A job's slots as a cluster's scheduler hands them out: at slot + k * period on the clock that its hosts share.
struct SharedClockPlan {
  std::int64_t slot_unix_ns = 0;  ///< MLTCP_SLOT_UNIX_NS: since 1970 (CLOCK_REALTIME), at least 0
  Nanos period;                   ///< MLTCP_SLOT_PERIOD_NS: 1 us to 1 h
  Nanos clock_bound;              ///< MLTCP_CLOCK_BOUND_NS: PhasePlan::clock_bound; 1 ms, or 1% of the period if less
  bool operator==(const SharedClockPlan&) const = default;

  /// For a clock that shows `now` when the shared one shows `unix_now_ns`. Later steps of the shared clock are not
  /// followed.
  [[nodiscard]] PhasePlan on(std::int64_t unix_now_ns, Nanos now) const noexcept;
};

/// MLTCP_SLOT_UNIX_NS and MLTCP_SLOT_PERIOD_NS; none where neither is set. Throws InputError, as for one without the
/// other.
std::optional<SharedClockPlan> read_plan(ReadVariable read);
/// For JobOptions::plan, by CLOCK_REALTIME as it is now.
PhasePlan on_clock_of(const Endpoint& endpoint, const SharedClockPlan& plan) noexcept;

/// The key from the file or the descriptor that MLTCP_KEY_FILE names; none if the variable is not set. A key from a
/// descriptor is read once and kept: the descriptor may be a pipe, and a process may open several endpoints. Throws
/// InputError.
std::optional<security::JobKey> read_key(ReadVariable read);
/// MLTCP_AUTHENTICATE: whether packets are only authenticated with the key that MLTCP_KEY_FILE names. Throws
/// InputError, as where there is none: everything would go in the clear.
bool read_authenticate(ReadVariable read);

/// Serves what MLTCP_METRICS and MLTCP_LIVE ask for from now on, which else the first endpoint of the process does: so
/// that a program learns what is wrong with them before others wait for it. Returns the address of metrics that other
/// hosts reach; empty: they don't. Throws InputError or RunError that names the variable.
std::string begin_showing();

struct Environment {
  std::string device;                  ///< MLTCP_DEVICE, as docs/how-to/ports.md writes it; empty: not set
  std::string address;                 ///< MLTCP_ADDRESS, this host's name or IP address; empty: not set
  std::string cc = "reno";             ///< MLTCP_CC
  std::uint32_t job = 0;               ///< MLTCP_JOB, carried in packets
  std::string job_function = "F1";     ///< MLTCP_JOB_FUNCTION
  cc::Augmentation augmentation;       ///< what job_function stands for
  Nanos peer_timeout{10'000'000'000};  ///< MLTCP_PEER_TIMEOUT_MS, 10 ms to 1 h
  Nanos spin;                          ///< MLTCP_SPIN_US: how long waits look before they sleep, at most 1 s
  std::optional<SharedClockPlan> plan;
  /// MLTCP_KEY_FILE. Endpoints take it by themselves; here, what is wrong with it is told before one opens.
  std::optional<security::JobKey> key;
  bool authenticate = false;  ///< MLTCP_AUTHENTICATE, likewise
};

/// Throws InputError that names the variable. Whether there is such a device, address or algorithm is not looked at.
Environment read_environment(ReadVariable read);

}  // namespace mltcp::endpoint
