// Detects that this process has become a copy, which shares the keys in its memory with another process. These keys
// must then seal nothing more, because the same numbers would be used twice under a key.
//
// base/system_random.h reports copies by fork() and by callers of note_process_copy(). A virtual machine that is
// resumed from a snapshot has a new VM generation id. Linux then reseeds its random numbers and sends an event to all
// programs: change@..., with NEW_VMGENID=1 (Linux 6.8 or later, CONFIG_VMGENID).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mltcp::security {

/// The sequence number of a kernel event (uevent), if it reports that the machine has been resumed.
std::optional<std::uint64_t> resumption_in(std::string_view event);

/// For one thread at a time. All watches of a process share one socket for the kernel's events.
class CopyWatch {
 public:
  /// If the kernel's events are not available, only the other copies are detected.
  CopyWatch() noexcept;

  /// Reads the pending events: a system call that does not wait. If too many come at once, for example in a rescan of
  /// all devices, the kernel drops some; that is no sign of a copy.
  static void look() noexcept;
  /// Whether the process has become a copy since the last call, or since this CopyWatch was created.
  [[nodiscard]] bool was_copied() noexcept;

 private:
  std::uint32_t copies_ = 0;
};

}  // namespace mltcp::security
