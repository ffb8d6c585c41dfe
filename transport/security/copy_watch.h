// Detects that this process was copied, so that another process has the same keys in its memory. This process must then
// seal nothing more with these keys, because packet numbers would be used twice under a key.
//
// base/system_random.h reports copies by fork() and by callers of note_process_copy(). A virtual machine that is
// resumed from a snapshot has a new VM generation id. Linux then reseeds its random numbers and sends an event to all
// programs: change@..., with NEW_VMGENID=1 (Linux 6.8 or later, CONFIG_VMGENID).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mltcp::security {

/// Returns the sequence number of `event`, a uevent of the kernel. Empty unless the event reports that the machine was
/// resumed from a snapshot.
std::optional<std::uint64_t> resumption_in(std::string_view event);

/// Only one thread at a time may use a CopyWatch. All watches of a process share one socket for the kernel's events.
class CopyWatch {
 public:
  /// If the kernel's events are not available, resumption from a snapshot is not detected.
  CopyWatch() noexcept;

  /// Reads the pending events without blocking. If too many events arrive at once, for example when all devices are
  /// rescanned, the kernel drops some. Dropped events do not count as a copy.
  static void look() noexcept;
  /// Returns whether the process was copied since the last call, or since this CopyWatch was created.
  [[nodiscard]] bool was_copied() noexcept;

 private:
  std::uint32_t copies_ = 0;
};

}  // namespace mltcp::security
