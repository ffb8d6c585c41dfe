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

/// Maximum number of routes of a shard. There is one route per destination.
inline constexpr std::uint32_t kRawRoutes = 4096;

struct WayRequest {
  std::uint32_t route = 0;
  /// Identifies the route; a repeated request has an unchanged generation, and asks whether the known way is still
  /// right.
  std::uint32_t generation = 0;
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
  /// Time limit for a neighbour's answer; the kernel itself gives up after three seconds.
  static constexpr Nanos kGiveUpAfter{5'000'000'000};
  /// Maximum number of unknown neighbours per second for which this service makes the kernel ask.
  static constexpr std::uint32_t kMaxQuestions = 1024;

  RawService(Device& device, std::unique_ptr<KernelRoutes> routes, std::uint16_t shards);
  ~RawService();
  RawService(const RawService&) = delete;
  RawService& operator=(const RawService&) = delete;

  /// Starts the thread. stop() ends the thread and waits for its end.
  void start();
  void stop();

  [[nodiscard]] RawMailbox& mailbox(std::uint16_t shard) { return shards_[shard]->mailbox; }
  /// Tells the thread that there are requests. May be called from any thread.
  void wake() const { wake_.wake(); }
  /// Returns KernelRoutes::why_lost() as of the latest check, at most a second ago. May be called from any thread.
  [[nodiscard]] std::string why_lost() const;

  // Tests call these functions instead of start(). step() is one round of the thread's work, and look() checks device
  // and interface. `has_news`: neighbours may have changed.
  void step(bool has_news, Nanos now);
  void look();

 private:
  struct Route {
    bool is_used = false;
    bool is_announced = false;  ///< whether the shard knows `way`, or a message with `way` is queued
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
    std::deque<std::uint32_t> unsent;  ///< numbers of the routes with news to send
  };
  struct Place {
    std::uint16_t shard = 0;
    std::uint32_t route = 0;
  };

  void run();
  void take_requests(std::uint16_t number, Nanos now);
  void look_up(Place place, bool may_ask, Nanos now);
  void look_up_pending(Nanos now);
  void announce(Place place, const KernelRoutes::Way& way);
  void send_news(Shard& shard);
  bool has_question(Nanos now);

  Device& device_;
  const std::unique_ptr<KernelRoutes> routes_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Place> pending_;  ///< routes for which the kernel is asking
  Nanos pending_at_{};          ///< time at which the routes in `pending_` were last looked up
  Nanos second_begin_{};
  std::uint32_t questions_ = 0;  ///< number of questions since `second_begin_`
  mutable std::mutex lost_mutex_;
  std::string why_lost_;  ///< guarded by `lost_mutex_`
  WakeFile wake_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mltcp::rdma
