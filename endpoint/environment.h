// Settings that users make with environment variables, so that programs need not be changed. All plug-ins read the
// variables here, so that a variable has the same meaning in all plug-ins. docs/reference/environment.md lists the
// variables.
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

/// A function like getenv(3), which tests replace.
using ReadVariable = const char* (*)(const char* name);
/// Returns the value of getenv(3).
const char* process_variable(const char* name);
/// Returns the value of secure_getenv(3), for variables that name files to read or create. Returns null if the program
/// has more rights than the user who set its environment.
const char* trusted_variable(const char* name);

/// Returns the variable's value without spaces at both ends; empty if the variable is not set.
std::string_view variable(ReadVariable read, const char* name);
/// Returns the variable's number, or `otherwise` if it is not set. Throws InputError that names the variable and the
/// range.
std::uint64_t number_variable(ReadVariable read, const char* name, std::uint64_t otherwise, std::uint64_t min,
                              std::uint64_t max);
/// Returns true for "1", and false for "0" or if the variable is not set. Throws InputError for any other value.
bool flag_variable(ReadVariable read, const char* name);

/// The slots that a cluster's scheduler assigns to a job. They begin at slot + k * period, for integers k, on the clock
/// that the job's hosts share.
struct SharedClockPlan {
  std::int64_t slot_unix_ns = 0;  ///< MLTCP_SLOT_UNIX_NS: nanoseconds since 1970 (CLOCK_REALTIME), at least 0
  Nanos period;                   ///< MLTCP_SLOT_PERIOD_NS: time between slots, 1 us to 1 h
  /// MLTCP_CLOCK_BOUND_NS: value of PhasePlan::clock_bound. The default is 1 ms or 1% of the period, whichever is less.
  Nanos clock_bound;
  bool operator==(const SharedClockPlan&) const = default;

  /// Returns the plan for a clock that shows `now` when the shared clock shows `unix_now_ns`. If the shared clock is
  /// changed later, the plan does not change.
  [[nodiscard]] PhasePlan on(std::int64_t unix_now_ns, Nanos now) const noexcept;
};

/// Reads MLTCP_SLOT_UNIX_NS, MLTCP_SLOT_PERIOD_NS and MLTCP_CLOCK_BOUND_NS. Returns none if the first two are not set.
/// Throws InputError if only one of these two is set, or if a value is wrong.
std::optional<SharedClockPlan> read_plan(ReadVariable read);
/// Converts a plan to the endpoint's clock, for JobOptions::plan. The conversion uses the present difference between
/// that clock and CLOCK_REALTIME.
PhasePlan on_clock_of(const Endpoint& endpoint, const SharedClockPlan& plan) noexcept;

/// Returns the key from the file or the descriptor that MLTCP_KEY_FILE names; none if the variable is not set. A key
/// from a descriptor is read once and stored for all endpoints of the process, because the descriptor may be a pipe.
/// Throws InputError if there is no valid key.
std::optional<security::JobKey> read_key(ReadVariable read);
/// Returns the value of MLTCP_AUTHENTICATE: whether packets are only authenticated with the key of MLTCP_KEY_FILE, and
/// not encrypted. Throws InputError if the value is wrong. Also throws InputError if no key is given, because packets
/// would then have no protection.
bool read_authenticate(ReadVariable read);

/// Starts the servers that MLTCP_METRICS and MLTCP_LIVE request. Without this call, the first endpoint of the process
/// starts them. A program calls this function to find errors in the variables before other processes wait for it.
/// Returns the address of the metrics server if other hosts can reach it, else an empty text. Throws InputError or
/// RunError that names the variable.
std::string begin_showing();

struct Environment {
  std::string device;                  ///< MLTCP_DEVICE, in the form of docs/how-to/ports.md; empty if not set
  std::string address;                 ///< MLTCP_ADDRESS, this host's name or IP address; empty if not set
  std::string cc = "reno";             ///< MLTCP_CC, the congestion control algorithm
  std::uint32_t job = 0;               ///< MLTCP_JOB, the job's number in packets
  std::string job_function = "F1";     ///< MLTCP_JOB_FUNCTION, the name of the job's function
  cc::Augmentation augmentation;       ///< the function that job_function names
  Nanos peer_timeout{10'000'000'000};  ///< MLTCP_PEER_TIMEOUT_MS, 10 ms to 1 h
  Nanos spin;                          ///< MLTCP_SPIN_US, the time for which a wait polls before it sleeps; at most 1 s
  std::optional<SharedClockPlan> plan;
  /// The key of MLTCP_KEY_FILE. Endpoints read the key themselves. It is read here so that errors are reported before
  /// an endpoint opens.
  std::optional<security::JobKey> key;
  bool authenticate = false;  ///< MLTCP_AUTHENTICATE, see read_authenticate()
};

/// Reads all variables. Throws InputError that names the wrong variable. Does not check whether the device, the address
/// or the algorithm exists.
Environment read_environment(ReadVariable read);

}  // namespace mltcp::endpoint
