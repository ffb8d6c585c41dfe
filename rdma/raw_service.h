// The service thread of a datapath on Ethernet frames. The thread makes system calls and allocates memory in place of
// the shards. It looks up the MAC addresses for IP addresses (kernel_routes.h), and handles the device's events.
//
// A shard gives each route a number below kRawRoutes, and requests its MAC address through the mailbox. The shard
// repeats this request each second while the route is in use. The number of neighbour requests that the kernel sends
// is limited (kMaxQuestions). Otherwise a shard that answers packets from unknown peers could make the kernel flood the
// network.
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

/// Maximum routes of a shard: one per destination.
inline constexpr std::uint32_t kRawRoutes = 4096;

struct WayRequest {
  std::uint32_t route = 0;
  std::uint32_t generation = 0;  ///< of the place; the same generation again asks whether the way is still right
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
  /// Limit for an answer; the kernel itself gives up after three seconds.
  static constexpr Nanos kGiveUpAfter{5'000'000'000};
  /// Maximum neighbours for which the kernel is made to ask in one second.
  static constexpr std::uint32_t kMaxQuestions = 1024;

  RawService(Device& device, std::unique_ptr<KernelRoutes> routes, std::uint16_t shards);
  ~RawService();
  RawService(const RawService&) = delete;
  RawService& operator=(const RawService&) = delete;

  /// Nothing happens before; stop() waits for the thread.
  void start();
  void stop();

  [[nodiscard]] RawMailbox& mailbox(std::uint16_t shard) { return shards_[shard]->mailbox; }
  /// Tells the thread that there are requests. Any thread.
  void wake() const { wake_.wake(); }
  /// KernelRoutes::why_lost() at the latest check, at most a second ago. Any thread.
  [[nodiscard]] std::string why_lost() const;

  // For tests, instead of start(): one round of the thread's work, and its check of device and interface. `has_news`:
  // of neighbours.
  void step(bool has_news, Nanos now);
  void look();

 private:
  struct Route {
    bool is_used = false;
    bool is_told = false;  ///< the shard knows `way`, or its news is queued
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
    std::deque<std::uint32_t> unsent;  ///< routes with news to send
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
  std::vector<Place> pending_;  ///< routes for which the kernel is asking
  Nanos pending_at_{};          ///< when they were last looked up
  Nanos second_begin_{};
  std::uint32_t questions_ = 0;  ///< in that second
  mutable std::mutex lost_mutex_;
  std::string why_lost_;  ///< guarded by that mutex
  WakeFile wake_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mltcp::rdma
