// A device of the plug-in: an endpoint, its job, who listens on it, and what is being connected.
//
// The endpoint has a thread of its own. NCCL's proxy thread could drive it from test(), and would save the wake-up of
// another thread. But it sleeps while the GPU computes, for seconds at times, and nobody would answer peers meanwhile,
// who take silence for death; and connections, which other threads of NCCL's make, would get on only while it is awake.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "mltcp/endpoint/collective_sequence.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/plugins/nccl/comm.h"
#include "mltcp/plugins/nccl/environment.h"
#include "mltcp/plugins/nccl/handle.h"
#include "mltcp/plugins/nccl/interfaces.h"

namespace mltcp::nccl {

/// Connections that a device may have, and of an endpoint's places.
inline constexpr std::uint32_t kMaxComms = 1024;

class Device;

/// What listen() returns. It serves any number of peers until it is closed.
struct Listener {
  Device* device = nullptr;
  std::uint64_t token = 0;
  std::deque<endpoint::ConnectionHandle> ready;  ///< have said that they are for it, in order
};

/// All functions may be called from any thread, those of one communicator by one at a time.
class Device {
 public:
  Device(const DevicePlan& plan, const Settings& settings);
  /// As close(), without waiting for what lingers.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens the endpoint unless it is open. Throws InputError, RunError.
  void open();
  /// Closes the endpoint if nothing uses it, once peers have been told the ends of connections, 1 s at most.
  void close() noexcept;

  // Of NCCL's calls of these names. They throw what open() does, and std::bad_alloc.

  Result listen(std::span<std::byte, kHandleBytes> handle, Listener** out);
  void close_listen(Listener* listener) noexcept;
  /// Null in `out` as long as it takes. Notes in `handle` which attempt it is.
  Result connect(std::span<std::byte, kHandleBytes> handle, Comm** out);
  /// Null in `out` as long as nobody has connected.
  Result accept(Listener& listener, Comm** out);
  void close_comm(Comm* comm) noexcept;

  /// As Plugin::mark_iteration().
  void mark_iteration(endpoint::CollectiveSequence::Step step) noexcept;
  void count(std::size_t bytes) noexcept { posted_.fetch_add(bytes, std::memory_order_relaxed); }

  /// The connection is closing: close() and the end of the process wait for it.
  void linger(endpoint::ConnectionHandle connection) noexcept;
  void forget(endpoint::ConnectionHandle connection) noexcept;
  /// Waits until none lingers.
  void wait_for_lingering(Nanos limit) noexcept;

  [[nodiscard]] const DevicePlan& plan() const { return plan_; }
  [[nodiscard]] const std::string& pci() const { return pci_; }
  [[nodiscard]] int speed() const { return speed_; }

 private:
  /// Has connected, and has yet to say to whom.
  struct Stranger {
    Device* device = nullptr;
    endpoint::ConnectionHandle connection = 0;
    Hello hello{};
  };
  static void on_event(void* context, const endpoint::Completion& event) noexcept;
  static void on_hello(void* context, const endpoint::Completion& end) noexcept;
  void take(endpoint::ConnectionHandle connection) noexcept;
  void introduce(const Stranger& stranger, const endpoint::Completion& end) noexcept;
  endpoint::EndpointConfig config() const;
  Result begin(std::span<std::byte, kHandleBytes> handle, const endpoint::EndpointAddress& peer, std::uint64_t token);

  const DevicePlan plan_;
  const Settings settings_;
  const std::string pci_;
  const int speed_;

  std::mutex guard_;  ///< of all below; not held in calls of the endpoint that may call back
  std::unique_ptr<endpoint::Endpoint> endpoint_;
  endpoint::JobHandle job_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Listener>> listeners_;
  std::unordered_map<endpoint::ConnectionHandle, std::unique_ptr<Stranger>> strangers_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Comm>> attempts_;
  std::unordered_set<endpoint::ConnectionHandle> lingering_;
  std::uint64_t next_attempt_ = 1;
  std::uint32_t comms_ = 0;

  std::atomic<std::uint64_t> posted_{0};  ///< bytes, all in all
  std::atomic<std::uint64_t> marked_{0};  ///< of these, at the last mark
};

}  // namespace mltcp::nccl
