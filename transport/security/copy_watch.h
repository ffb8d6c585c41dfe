// Watches whether this process has become a copy, which shares the keys in its memory with another: then nothing more
// may be sealed with them, as the same numbers would be used twice under a key.
//
// Copies are told by base/system_random.h: fork(), and whoever calls note_process_copy(). A virtual machine that is
// resumed from a snapshot has another VM generation id, by which Linux gives its random numbers a new seed, and says so
// in an event for all programs: change@..., with NEW_VMGENID=1 (Linux 6.8 or later, CONFIG_VMGENID).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mltcp::security {

/// The sequence number of an event of the kernel (uevent) which says that the machine has been resumed.
std::optional<std::uint64_t> resumption_in(std::string_view event);

/// For one thread at a time. All watches of a process share one socket for the kernel's events.
class CopyWatch {
 public:
  /// Where the kernel tells no events, only the other copies are noticed.
  CopyWatch() noexcept;

  /// Takes the events that have come: a system call, and does not wait. Of too many at once, as when all devices are
  /// looked for anew, the kernel drops some: that is no sign of a copy.
  static void look() noexcept;
  /// Whether the process has become a copy since the latest call, or since the watch was made.
  [[nodiscard]] bool was_copied() noexcept;

 private:
  std::uint32_t copies_ = 0;
};

}  // namespace mltcp::security
