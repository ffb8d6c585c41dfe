// Lines in NCCL's log, by the function that NCCL gave; without one they are dropped. Not for the data path.
#pragma once

#include <string>

#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

/// Of the process; null: none.
void set_logger(Logger logger) noexcept;
void log_info(const std::string& line) noexcept;
/// Shown with NCCL_DEBUG=WARN, too.
void log_warning(const std::string& line) noexcept;

}  // namespace mltcp::nccl
