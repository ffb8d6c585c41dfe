// Lines in NCCL's log, by the function that NCCL gave; dropped without one. Not for the data path.
#pragma once

#include <string>

#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

/// Sets the logger of the process; null: none.
void set_logger(Logger logger) noexcept;
void log_info(const std::string& line) noexcept;
/// Also shown with NCCL_DEBUG=WARN.
void log_warning(const std::string& line) noexcept;

}  // namespace mltcp::nccl
