// Reads the kernel's events by netlink(7) (see copy_watch.h).
#include "mltcp/transport/security/copy_watch.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <utility>

#include "mltcp/base/system_random.h"

namespace mltcp::security {
namespace {

constexpr std::uint32_t kKernelsEvents = 1;  // multicast group of the kernel's own events; udev sends to group 2

// Sequence number of the latest event. It ensures that an event that is read twice, before and after a fork, counts
// once.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit std::atomic<std::uint64_t> latest_resumption{0};
// The netlink socket; -1 if it is not open. It is set before a second thread can use it. After a fork only the child
// changes it, and the child has only one thread.
constinit int events = -1;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void note(std::uint64_t resumption) noexcept {
  std::uint64_t latest = latest_resumption.load(std::memory_order_relaxed);
  while (latest < resumption)
    if (latest_resumption.compare_exchange_weak(latest, resumption, std::memory_order_relaxed)) {
      note_process_copy();
      return;
    }
}

int open_events() noexcept {
  const int opened = socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
  if (opened < 0) return -1;
  // Keeps only events that begin with "chan" (change). Drops events of devices that are added or removed.
  std::array<sock_filter, 4> keep{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6368616E, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF), BPF_STMT(BPF_RET | BPF_K, 0)}};
  const sock_fprog filter{keep.size(), keep.data()};
  setsockopt(opened, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = kKernelsEvents;
  if (bind(opened, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return opened;
  close(opened);
  return -1;
}

// After a fork the child shares the socket and its events with the parent, so the child opens its own socket.
void open_own_events() noexcept {
  if (events >= 0) close(events);
  events = open_events();
}

}  // namespace

std::optional<std::uint64_t> resumption_in(std::string_view event) {
  if (!event.starts_with("change@")) return std::nullopt;
  constexpr std::string_view number = "SEQNUM=";
  bool is_resumption = false;
  std::optional<std::uint64_t> sequence;
  while (!event.empty()) {
    const std::string_view line = event.substr(0, event.find('\0'));
    event.remove_prefix(std::min(line.size() + 1, event.size()));
    is_resumption = is_resumption || line == "NEW_VMGENID=1";
    std::uint64_t found = 0;
    if (line.starts_with(number) &&
        std::from_chars(line.data() + number.size(), line.data() + line.size(), found).ec == std::errc())
      sequence = found;
  }
  return is_resumption ? sequence : std::nullopt;
}

CopyWatch::CopyWatch() noexcept : copies_(process_copies()) {
  [[maybe_unused]] static const bool is_open = [] {
    open_own_events();
    return pthread_atfork(nullptr, nullptr, open_own_events) == 0;
  }();
}

void CopyWatch::look() noexcept {
  std::array<char, 4096> event;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `bytes`
  while (events >= 0) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t bytes = recvfrom(events, event.data(), event.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (bytes < 0 && errno != ENOBUFS && errno != EINTR) return;
    if (bytes <= 0 || from.nl_pid != 0 || (from.nl_groups & kKernelsEvents) == 0) continue;
    if (const auto resumption = resumption_in({event.data(), static_cast<std::size_t>(bytes)})) note(*resumption);
  }
}

bool CopyWatch::was_copied() noexcept {
  const std::uint32_t copies = process_copies();
  return std::exchange(copies_, copies) != copies;
}

}  // namespace mltcp::security
