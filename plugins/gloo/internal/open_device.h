// The implementation of a device: an endpoint, its job, and the map from connections to pairs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "mltcp/endpoint/endpoint.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/plugins/gloo/device.h"
#include "mltcp/plugins/gloo/internal/collectives.h"
#include "mltcp/plugins/gloo/internal/protocol.h"

namespace gloo::transport::mltcp {

class Pair;

/// Returns `given` with empty members filled from the environment. Members that are still empty get their defaults
/// later. Throws mltcp::InputError.
attr with_environment(attr given, const ::mltcp::endpoint::Environment& environment);

class OpenDevice final : public Device, public std::enable_shared_from_this<OpenDevice> {
 public:
  /// Opens the endpoint and creates the job. `plan` applies to iterations whose beginnings are known. Throws
  /// mltcp::InputError or mltcp::RunError.
  OpenDevice(const attr& settings, const std::optional<::mltcp::endpoint::SharedClockPlan>& plan);
  ~OpenDevice() override;

  [[nodiscard]] std::string str() const override;
  [[nodiscard]] const std::string& getPCIBusID() const override { return pci_bus_id_; }
  [[nodiscard]] int getInterfaceSpeed() const override { return speed_mbps_; }
  std::shared_ptr<::gloo::transport::Context> createContext(int rank, int size) override;
  void beginIteration(std::uint64_t bytes) override;
  void endIteration() override;
  void beginIterationByHook(std::uint64_t expected) override;
  void endIterationByHook() override;
  [[nodiscard]] JobState jobState() const override;

  [[nodiscard]] ::mltcp::endpoint::Endpoint& endpoint() { return *endpoint_; }
  /// Guards the maps below. Lock this mutex before a context's.
  [[nodiscard]] std::mutex& mutex() { return guard_; }
  /// Call add_pair() and add_connection() with mutex() held.
  void add_pair(Pair& pair);
  void add_connection(::mltcp::endpoint::ConnectionHandle connection, Pair& pair) { connections_[connection] = &pair; }
  /// Removes the pair and its connection from the maps. Locks mutex() itself.
  void remove_pair(Pair& pair, ::mltcp::endpoint::ConnectionHandle connection);
  /// Returns a new number for a context.
  [[nodiscard]] std::uint32_t next_group() { return groups_.fetch_add(1); }
  /// Called when a context is about to send `bytes` from a buffer of `buffer` bytes on `slot`. The caller may hold
  /// locks of contexts.
  void on_send(std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes) noexcept;
  /// Attaches the connection to the device's job. The caller must hold no lock.
  void attach(::mltcp::endpoint::ConnectionHandle connection);

 private:
  /// An incoming connection whose hello has not arrived.
  struct Introduction {
    OpenDevice* device;
    ::mltcp::endpoint::ConnectionHandle connection;
    std::array<std::byte, kHelloBytes> bytes;
  };
  static void on_event(void* context, const ::mltcp::endpoint::Completion& event) noexcept;
  static void on_hello(void* context, const ::mltcp::endpoint::Completion& completion) noexcept;
  void accept(::mltcp::endpoint::ConnectionHandle connection);

  std::string pci_bus_id_;
  int speed_mbps_ = 0;
  std::mutex guard_;
  std::unordered_map<std::uint64_t, Pair*> pairs_;
  std::unordered_map<::mltcp::endpoint::ConnectionHandle, Pair*> connections_;
  std::unordered_map<::mltcp::endpoint::ConnectionHandle, std::unique_ptr<Introduction>> introductions_;
  ::mltcp::endpoint::JobHandle job_ = 0;
  std::atomic<std::uint32_t> groups_{0};
  /// Guards the members below, and keeps calls to the endpoint in the order of the decisions. Always lock this mutex
  /// last.
  mutable std::mutex iterations_guard_;
  IterationsBy iterations_by_ = IterationsBy::none;
  CollectiveIterations collectives_;
  std::uint64_t posted_ = 0;
  std::uint64_t posted_at_begin_ = 0;  ///< value of `posted_` when the hook began its iteration
  std::uint64_t hook_bytes_ = 0;       ///< bytes of the last iteration that the hook ended; 0 if none
  bool hook_began_ = false;
  std::unique_ptr<::mltcp::endpoint::Endpoint> endpoint_;
};

}  // namespace gloo::transport::mltcp
