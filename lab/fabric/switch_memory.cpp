// Shared packet memory and its pause requests (see switch_memory.h).
#include "mltcp/lab/fabric/switch_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"

namespace mltcp::fabric {

SwitchMemory::SwitchMemory(const SwitchMemoryConfig& config) : config_(config) {
  if (config.bytes == 0) throw InputError("the memory of a switch is 0 B; give it some, such as \"16 MB\"");
  if (!(config.alpha > 0 && config.alpha <= 1000))
    throw InputError(fmt::format("alpha of a switch is {}; give a number above 0, at most 1000", config.alpha));
  if (!config.pfc.enabled) return;
  if (config.pfc.xoff_bytes == 0) throw InputError("PFC xoff of a switch is 0 B; give a size above 0");
  if (config.pfc.xon_bytes >= config.pfc.xoff_bytes)
    throw InputError(fmt::format("PFC xon of a switch, {}, is not below its xoff, {}; give a smaller xon",
                                 bytes_to_text(config.pfc.xon_bytes), bytes_to_text(config.pfc.xoff_bytes)));
}

std::uint32_t SwitchMemory::add_ingress(Bytes headroom) {
  ingresses_.push_back({headroom, {}, {}});
  return static_cast<std::uint32_t>(ingresses_.size() - 1);
}

void SwitchMemory::take(std::uint32_t bytes, std::uint32_t ingress, std::uint32_t priority) {
  used_ += bytes;
  max_used_ = std::max(max_used_, used_);
  if (!config_.pfc.enabled || ingress == kNoIngress) return;
  Ingress& from = ingresses_[ingress];
  from.bytes[priority] += bytes;
  if (from.paused[priority] || from.bytes[priority] <= config_.pfc.xoff_bytes) return;
  from.paused[priority] = true;
  pauses_.push({ingress, static_cast<std::uint8_t>(priority), true});
}

void SwitchMemory::release(std::uint32_t bytes, std::uint32_t ingress, std::uint32_t priority) {
  used_ -= bytes;
  if (!config_.pfc.enabled || ingress == kNoIngress) return;
  Ingress& from = ingresses_[ingress];
  from.bytes[priority] -= bytes;
  if (!from.paused[priority] || from.bytes[priority] > config_.pfc.xon_bytes) return;
  from.paused[priority] = false;
  pauses_.push({ingress, static_cast<std::uint8_t>(priority), false});
}

}  // namespace mltcp::fabric
