// The service thread of a datapath on Ethernet frames: what takes system calls or allocates, so that shards need not.
// It looks up for them which MAC address frames to an IP address go to (kernel_routes.h), and takes the device's
// events.
//
// A shard names its routes by numbers of its own, below kRawRoutes, and asks by its mailbox; one in use is asked for
// anew each second. What the kernel is made to ask for itself is bounded: strangers whose packets are answered can't
// have it flood the network.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/mailbox.h"
#include "mltcp/rdma/kernel_routes.h"

namespace mltcp::rdma {

/// Most routes of a shard: a destination each.
inline constexpr std::uint32_t kRawRoutes = 4096;

struct WayRequest {
  std::uint32_t route = 0;
  std::uint32_t generation = 0;  ///< of the place: the same again asks whether the way is still the same
  Address destination{};
};
struct WayNews {
  std::uint32_t route = 0;
  std::uint32_t generation = 0;
  KernelRoutes::Way way{};
};
using RawMailbox = MailboxOf<WayRequest, WayNews>;

class RawService {
 public:
  /// The kernel gives up after three seconds itself.
  static constexpr Nanos kGiveUpAfter{5'000'000'000};
  /// Neighbours that the kernel is made to ask for in a second.
  static constexpr std::uint32_t kMaxQuestions = 1024;

  RawService(Device& device, std::unique_ptr<KernelRoutes> routes, std::uint16_t shards);
  ~RawService();
  RawService(const RawService&) = delete;
  RawService& operator=(const RawService&) = delete;

  /// Nothing is done before; stop() waits for the thread.
  void start();
  void stop();

  [[nodiscard]] RawMailbox& mailbox(std::uint16_t shard) { return shards_[shard]->mailbox; }
  /// Tells the thread that there are requests. For any thread.
  void wake() const { wake_.wake(); }
  /// KernelRoutes::why_lost(), as of the latest second. By any thread.
  [[nodiscard]] std::string why_lost() const;

  // By a test instead of start(): one round of the thread's work, and its look at device and interface. `has_news`: of
  // neighbours.
  void step(bool has_news, Nanos now);
  void look();

 private:
  struct Route {
    bool is_used = false;
    bool is_told = false;  ///< the shard knows of `way`, or is about to
    bool is_unsent = false;
    bool is_pending = false;
    std::uint32_t generation = 0;
    Address destination{};
    KernelRoutes::Way way{};
    Nanos asked_at{};
  };
  struct Shard {
    RawMailbox mailbox;
    std::vector<Route> routes{kRawRoutes};
    std::deque<std::uint32_t> unsent;  ///< routes of which there is news
  };
  struct Place {
    std::uint16_t shard = 0;
    std::uint32_t route = 0;
  };

  void run();
  void take_requests(std::uint16_t number, Nanos now);
  void look_up(Place place, bool may_ask, Nanos now);
  void look_up_pending(Nanos now);
  void tell(Place place, const KernelRoutes::Way& way);
  void send_news(Shard& shard);
  bool has_question(Nanos now);

  Device& device_;
  const std::unique_ptr<KernelRoutes> routes_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Place> pending_;  ///< whose neighbours the kernel is asking for
  Nanos pending_at_{};          ///< when they were looked at
  Nanos second_begin_{};
  std::uint32_t questions_ = 0;  ///< in that second
  mutable std::mutex lost_mutex_;
  std::string why_lost_;  ///< of that mutex
  WakeFile wake_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mltcp::rdma
