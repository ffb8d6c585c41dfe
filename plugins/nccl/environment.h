// What users set for the plug-in by environment variables: the same names, and the same meaning, as for the project's
// other plug-ins.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"

namespace mltcp::nccl {

struct Settings {
  std::string device;       ///< MLTCP_DEVICE, as docs/ports.md writes it; empty: one for each interface of the kernel's
  std::string address;      ///< MLTCP_ADDRESS, name or IP address of this host; empty: the interface's
  std::string cc = "reno";  ///< MLTCP_CC
  std::uint32_t job = 0;    ///< MLTCP_JOB, carried in packets
  std::string job_function = "F1";     ///< MLTCP_JOB_FUNCTION
  cc::Augmentation augmentation;       ///< what job_function stands for
  Nanos peer_timeout{10'000'000'000};  ///< MLTCP_PEER_TIMEOUT_MS
  bool required = false;               ///< MLTCP_REQUIRED: what makes the plug-in unusable is an error of the job's
  bool verbose = false;                ///< MLTCP_DEBUG: a line for each connection
};

/// `get` is getenv(3), or a test's. Throws InputError that names the variable.
Settings read_environment(const char* (*get)(const char* name));

/// MLTCP_REQUIRED alone, where the others can't be read; never throws.
bool is_required(const char* (*get)(const char* name)) noexcept;

/// getenv(3).
const char* from_process(const char* name);

}  // namespace mltcp::nccl
