// A device of the plug-in: an endpoint, its job, its listeners, and the connections that are being set up.
//
// The endpoint has its own thread. NCCL's proxy thread could drive the endpoint from test(), which would save the
// wake-up of another thread. But the proxy thread sleeps while the GPU computes, sometimes for seconds. Meanwhile no
// thread would answer the peers, so the peers would consider this process dead. Connections that other threads of NCCL
// create would not progress either.
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

/// Maximum number of connections of a device. It determines the size of the endpoint's tables.
inline constexpr std::uint32_t kMaxComms = 1024;

class Device;

/// The object that listen() returns. It serves any number of peers until it is closed.
struct Listener {
  Device* device = nullptr;
  std::uint64_t token = 0;
  std::deque<endpoint::ConnectionHandle> ready;  ///< connections that have named this listener, in order of arrival
};

/// Any thread may call these functions. The functions of one communicator are called by one thread at a time.
class Device {
 public:
  Device(const DevicePlan& plan, const Settings& settings);
  /// Closes the endpoint like close(), but does not wait for lingering connections.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens the endpoint unless it is open already. Throws InputError or RunError.
  void open();
  /// Closes the endpoint if nothing uses it. Before that, informs peers that their connections end, for at most 1 s.
  void close() noexcept;

  // The functions that NCCL calls by these names. They throw the exceptions of open(), and std::bad_alloc.

  Result listen(std::span<std::byte, kHandleBytes> handle, Listener** out);
  void close_listen(Listener* listener) noexcept;
  /// Stores the number of the connection attempt in `handle`. Sets `out` to null while the attempt is in progress.
  Result connect(std::span<std::byte, kHandleBytes> handle, Comm** out);
  /// Sets `out` to null until a peer has connected.
  Result accept(Listener& listener, Comm** out);
  void close_comm(Comm* comm) noexcept;

  /// Reports a step of the collective sequence to this device's job (see Plugin::mark_iteration()).
  void mark_iteration(endpoint::CollectiveSequence::Step step) noexcept;
  void count(std::size_t bytes) noexcept { posted_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Records that a connection is closing. close() and the end of the process wait for such connections.
  void linger(endpoint::ConnectionHandle connection) noexcept;
  void forget(endpoint::ConnectionHandle connection) noexcept;
  /// Waits until no connection lingers, for at most `limit`.
  void wait_for_lingering(Nanos limit) noexcept;

  [[nodiscard]] const DevicePlan& plan() const { return plan_; }
  [[nodiscard]] const std::string& pci() const { return pci_; }
  [[nodiscard]] int speed() const { return speed_; }

 private:
  /// An incoming connection that has not named its listener yet.
  struct Introduction {
    Device* device = nullptr;
    endpoint::ConnectionHandle connection = 0;
    Hello hello{};
  };
  static void on_event(void* context, const endpoint::Completion& event) noexcept;
  static void on_hello(void* context, const endpoint::Completion& end) noexcept;
  void take(endpoint::ConnectionHandle connection) noexcept;
  void introduce(const Introduction& introduction, const endpoint::Completion& end) noexcept;
  endpoint::EndpointConfig config() const;
  Result begin(std::span<std::byte, kHandleBytes> handle, const endpoint::EndpointAddress& peer, std::uint64_t token);

  const DevicePlan plan_;
  const Settings settings_;
  const std::string pci_;
  const int speed_;

  std::mutex guard_;  ///< guards all members below; not held during calls to the endpoint that may run callbacks
  std::unique_ptr<endpoint::Endpoint> endpoint_;
  endpoint::JobHandle job_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Listener>> listeners_;
  std::unordered_map<endpoint::ConnectionHandle, std::unique_ptr<Introduction>> introductions_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Comm>> attempts_;
  std::unordered_set<endpoint::ConnectionHandle> lingering_;
  std::uint64_t next_attempt_ = 1;
  std::uint32_t comms_ = 0;

  std::atomic<std::uint64_t> posted_{0};  ///< bytes posted in total
  std::atomic<std::uint64_t> marked_{0};  ///< value of `posted_` at the latest mark of an iteration
};

}  // namespace mltcp::nccl
