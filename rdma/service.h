// The service thread of a datapath on verbs. The thread makes system calls, waits and allocates memory in place of the
// shards. The thread asks peers for their queue pairs, and answers such questions of peers (resolution.h). It creates
// and frees address handles, and takes the device's events.
//
// A shard gives each route a number below kRoutes, and requests the route through the shard's mailbox. The answer
// contains what the shard needs to send. The service owns the handles; a shard reports when it no longer uses a handle.
// If the GID or the peer's local identifier changes, the route needs a new handle. It then has two handles until the
// old one is unused, but never three.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "mltcp/base/system_random.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/rdma/internal/mailbox.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/resolution.h"

namespace mltcp::rdma {

/// Maximum number of routes of a shard. There is one route per destination and traffic class.
inline constexpr std::uint32_t kRoutes = 4096;

struct ServiceConfig {
  Gid gid{};
  std::vector<RemoteQueue> queues{};  ///< queue pair of each shard
  ResolutionConfig resolution{};
};

/// Returns the IP address at which to ask for the queue pair of a GID. On RoCE, this address is the GID itself. On
/// InfiniBand, it is the link-local address that IP over InfiniBand derives from the port's GUID (RFC 4391 section 8).
Address asked_at(const Address& gid, bool is_infiniband);

class Service {
 public:
  /// `sockets` contains one socket per shard, bound to the shard's address.
  Service(Device& device, const ServiceConfig& config, std::vector<std::unique_ptr<KernelSocket>> sockets);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Starts the thread. stop() ends the thread and waits for its end. Handles exist until the destructor runs.
  void start();
  void stop();

  [[nodiscard]] Mailbox& mailbox(std::uint16_t shard) { return *shards_[shard]->mailbox; }
  /// Tells the thread that there are requests. May be called from any thread.
  void wake() const { wake_.wake(); }
  // Tests call these functions instead of start(). step() is one round of the thread's work, and look() checks the
  // device.
  void step(Nanos now);
  void look(Nanos now);
  [[nodiscard]] const ResolutionCounters& counters() const { return resolution_.counters(); }

 private:
  struct Route {
    bool is_used = false;
    std::uint8_t traffic_class = 0;
    std::uint8_t service_level = 0;
    std::uint32_t generation = 0;
    Address destination{};
    // The state that the shard knows, or that is queued for the shard.
    Resolution::State announced = Resolution::State::asked;
    RemoteQueue queue{};
    ibv_ah* handle = nullptr;
    bool is_unsent = false;
    // Arguments with which the current handle was created.
    std::uint8_t gid_index = 0;
    std::uint16_t lid = 0;
    ibv_ah* former = nullptr;  ///< the previous handle, which the shard may still be using
  };
  struct Shard {
    std::unique_ptr<Mailbox> mailbox = std::make_unique<Mailbox>();
    std::unique_ptr<KernelSocket> socket;
    std::vector<Route> routes{kRoutes};
    std::deque<std::uint32_t> unsent;  ///< numbers of the routes with news to send
  };
  struct Place {
    std::uint16_t shard = 0;
    std::uint32_t route = 0;
  };

  void run();
  void take_requests(std::uint16_t number, Nanos now);
  void take_datagrams(std::uint16_t number, Nanos now);
  void send_datagrams(Nanos now);
  void send_news(Shard& shard);
  void look_up(Place place, Nanos now);
  void find_handle(Place place, const RemoteQueue& queue);
  void announce(Place place, Resolution::State state, const RemoteQueue& queue);
  void announce_all_of(const Address& address, Nanos now);
  void announce_lost(const Address& address);
  void release(Place place);
  void free_handle(ibv_ah*& handle);
  [[nodiscard]] Route& route_of(Place place) { return shards_[place.shard]->routes[place.route]; }
  /// Returns the address at which to ask for the queue pair of `destination`.
  [[nodiscard]] Address asked(const Address& destination) const {
    return asked_at(destination, device_.facts().is_infiniband);
  }

  Device& device_;
  const ServiceConfig config_;
  SystemRandom random_;
  std::vector<std::unique_ptr<Shard>> shards_;
  Resolution resolution_;
  /// Routes by the address at which to ask for the peer's queue pair.
  std::unordered_map<Address, std::vector<Place>, KeyedHash> places_;
  std::uint8_t gid_index_;
  WakeFile wake_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mltcp::rdma
