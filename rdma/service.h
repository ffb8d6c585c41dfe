// The service thread of a datapath on verbs: what takes system calls, waits or allocates, so that shards need not. It
// asks and answers for queue pairs (resolution.h), makes and frees address handles, and takes the device's events.
//
// A shard names its routes by numbers of its own, below kRoutes, and asks by its mailbox; the answer has what a request
// to send needs. Handles are this thread's: a shard tells when it no longer uses one. A route whose handle has to be
// another one (the GID has moved in the port's table, or the peer in its subnet) has two until then, and never three.
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

/// Most routes of a shard: a destination and a traffic class each.
inline constexpr std::uint32_t kRoutes = 4096;

struct ServiceConfig {
  Gid gid{};
  std::vector<RemoteQueue> queues{};  ///< of the shards
  ResolutionConfig resolution{};
};

/// The IP address at which the kernel can be asked for the queue pair of a GID: on RoCE the GID itself, on InfiniBand
/// the link-local address that IP over InfiniBand makes of the same port's GUID (RFC 4391 section 8).
Address asked_at(const Address& gid, bool is_infiniband);

class Service {
 public:
  /// `sockets`: one a shard, bound to the shards' addresses.
  Service(Device& device, const ServiceConfig& config, std::vector<std::unique_ptr<KernelSocket>> sockets);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Nothing is done before; stop() waits for the thread. Handles live until the destructor.
  void start();
  void stop();

  [[nodiscard]] Mailbox& mailbox(std::uint16_t shard) { return *shards_[shard]->mailbox; }
  /// Tells the thread that there are requests. For any thread.
  void wake() const { wake_.wake(); }
  // By a test instead of start(): one round of the thread's work, and its look at the device.
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
    // What the shard has been told, or is about to be.
    Resolution::State told = Resolution::State::asked;
    RemoteQueue queue{};
    ibv_ah* handle = nullptr;
    bool is_unsent = false;
    // What the handle was made for.
    std::uint8_t gid_index = 0;
    std::uint16_t lid = 0;
    ibv_ah* former = nullptr;  ///< by which the shard may still be sending
  };
  struct Shard {
    std::unique_ptr<Mailbox> mailbox = std::make_unique<Mailbox>();
    std::unique_ptr<KernelSocket> socket;
    std::vector<Route> routes{kRoutes};
    std::deque<std::uint32_t> unsent;  ///< routes of which there is news
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
  void tell(Place place, Resolution::State state, const RemoteQueue& queue);
  void tell_all_of(const Address& address, Nanos now);
  void tell_lost(const Address& address);
  void release(Place place);
  void free_handle(ibv_ah*& handle);
  [[nodiscard]] Route& route_of(Place place) { return shards_[place.shard]->routes[place.route]; }
  /// Where the kernel is asked for it.
  [[nodiscard]] Address asked(const Address& destination) const {
    return asked_at(destination, device_.facts().is_infiniband);
  }

  Device& device_;
  const ServiceConfig config_;
  SystemRandom random_;
  std::vector<std::unique_ptr<Shard>> shards_;
  Resolution resolution_;
  std::unordered_map<Address, std::vector<Place>, KeyedHash> places_;  ///< routes, by where they are asked for
  std::uint8_t gid_index_;
  WakeFile wake_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mltcp::rdma
