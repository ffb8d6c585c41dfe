// Writes lines to NCCL's log with the function that NCCL provided. Without this function, the lines are dropped. Not
// used on the data path.
#pragma once

#include <string>

#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

/// Sets the logger of the process; null if there is none.
void set_logger(Logger logger) noexcept;
void log_info(const std::string& line) noexcept;
/// Logs a warning, which NCCL also shows with NCCL_DEBUG=WARN.
void log_warning(const std::string& line) noexcept;

}  // namespace mltcp::nccl
