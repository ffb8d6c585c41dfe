// The device: an endpoint, its job, and which pair each of its connections belongs to.
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

/// attr with what the environment says, and without what is left to choose. Throws mltcp::InputError.
attr with_environment(attr given, const ::mltcp::endpoint::Environment& environment);

class OpenDevice final : public Device, public std::enable_shared_from_this<OpenDevice> {
 public:
  /// `plan`: for iterations whose beginnings are known. Throws mltcp::InputError, RunError.
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
  /// Of the maps below. Before a context's.
  [[nodiscard]] std::mutex& mutex() { return guard_; }
  /// With the lock held.
  void add_pair(Pair& pair);
  void add_connection(::mltcp::endpoint::ConnectionHandle connection, Pair& pair) { connections_[connection] = &pair; }
  /// Takes the lock.
  void remove_pair(Pair& pair, ::mltcp::endpoint::ConnectionHandle connection);
  /// A number for each context.
  [[nodiscard]] std::uint32_t next_group() { return groups_.fetch_add(1); }
  /// A context is about to send `bytes` from a buffer of `buffer` bytes on `slot`. With or without locks of contexts.
  void on_send(std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes) noexcept;
  /// What is sent on it is the job's. Without a lock.
  void attach(::mltcp::endpoint::ConnectionHandle connection);

 private:
  /// A connection of which no hello has come yet.
  struct Stranger {
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
  std::unordered_map<::mltcp::endpoint::ConnectionHandle, std::unique_ptr<Stranger>> strangers_;
  ::mltcp::endpoint::JobHandle job_ = 0;
  std::atomic<std::uint32_t> groups_{0};
  /// Of what is below, and that the endpoint is told in the order in which it is decided. The last of locks.
  mutable std::mutex iterations_guard_;
  IterationsBy iterations_by_ = IterationsBy::none;
  CollectiveIterations collectives_;
  std::uint64_t posted_ = 0;
  std::uint64_t posted_at_begin_ = 0;  ///< of a hook's iteration
  std::uint64_t hook_bytes_ = 0;       ///< of a hook's last iteration
  bool hook_began_ = false;
  std::unique_ptr<::mltcp::endpoint::Endpoint> endpoint_;
};

}  // namespace gloo::transport::mltcp
