// Messages about routes between a shard and the service thread; see service.h. Neither thread waits for the other.
#pragma once

#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/rdma/internal/spsc_ring.h"
#include "mltcp/rdma/resolution.h"
#include "mltcp/transport/address.h"

namespace mltcp::rdma {

/// Wakes a thread that waits until file() is readable.
class WakeFile {
 public:
  WakeFile() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (file_ < 0)
      throw RunError(fmt::format("cannot create an eventfd ({}); raise the limit of open files (ulimit -n)",
                                 std::strerror(errno)));
  }
  ~WakeFile() { close(file_); }
  WakeFile(const WakeFile&) = delete;
  WakeFile& operator=(const WakeFile&) = delete;

  [[nodiscard]] int file() const { return file_; }
  void wake() const {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, which also wakes the thread.
    [[maybe_unused]] const auto written = write(file_, &one, sizeof one);
  }
  void reset() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(file_, &count, sizeof count);
  }

 private:
  int file_;
};

struct RouteRequest {
  enum class Kind : std::uint8_t {
    want,     ///< the new route `route` needs a queue pair and a handle
    refresh,  ///< asks whether a route in use still has the same queue pair
    release,  ///< the shard no longer uses the route
  };
  Kind kind = Kind::want;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint32_t route = 0;
  /// Identifies the route. RouteNews with another generation belongs to an earlier route with the same number.
  std::uint32_t generation = 0;
  Address destination{};
  /// For Kind::refresh: the route's handle if all packets in flight on the route use it. Null if some may use an older
  /// handle.
  const ibv_ah* settled = nullptr;
};

struct RouteNews {
  std::uint32_t route = 0;
  std::uint32_t generation = 0;
  Resolution::State state = Resolution::State::unreachable;
  RemoteQueue queue{};
  ibv_ah* handle = nullptr;
};

template <typename Request, typename News>
struct MailboxOf {
  static constexpr std::size_t kMaxRequests = 256;
  SpscRing<Request, kMaxRequests> requests;  ///< from the shard to the service thread
  SpscRing<News, 256> news;                  ///< from the service thread to the shard
  WakeFile shard_wake;
};
using Mailbox = MailboxOf<RouteRequest, RouteNews>;

}  // namespace mltcp::rdma
