#include "mltcp/plugins/nccl/log.h"

#include <atomic>

namespace mltcp::nccl {
namespace {

std::atomic<Logger> logger_of_process{nullptr};

void write(LogLevel level, unsigned long flags, const std::string& line) noexcept {
  const Logger logger = logger_of_process.load(std::memory_order_acquire);
  if (logger != nullptr) logger(level, flags, "mltcp", 0, "NET/MLTCP: %s", line.c_str());
}

}  // namespace

void set_logger(Logger logger) noexcept { logger_of_process.store(logger, std::memory_order_release); }
void log_info(const std::string& line) noexcept { write(LogLevel::info, kLogInit | kLogNet, line); }
void log_warning(const std::string& line) noexcept { write(LogLevel::warn, kLogAll, line); }

}  // namespace mltcp::nccl
