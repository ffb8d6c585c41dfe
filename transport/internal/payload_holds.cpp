// Construction and destruction of a shard's payload holds (see payload_holds.h).
#include "mltcp/transport/internal/payload_holds.h"

#include <mutex>

namespace mltcp::transport {

PayloadHolds::PayloadHolds(std::uint32_t count)
    : holds_(std::make_unique<PayloadHold[]>(std::size_t{count} + 1)), total_(count) {
  free_.reserve(count);
  for (std::uint32_t i = count; i > 0; --i) free_.push_back(static_cast<Number>(i));
  waiting_.reserve(std::size_t{count} + 16);  // 16 more for `closed` completions
}

PayloadHolds::~PayloadHolds() {
  bool used = false;
  for (std::size_t i = 1; i <= total_; ++i) used |= in_use(static_cast<Number>(i));
  if (!used) return;
  // The datapath still uses these holds and does not report when it has finished, so they are never freed.
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<PayloadHold[]>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(holds_));
}

}  // namespace mltcp::transport
