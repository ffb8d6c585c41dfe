// The kernel's UDP sockets by which shards ask each other for queue pairs (resolution.h). A socket also claims a
// shard's UDP port, so that no two programs of a machine use the same address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "mltcp/transport/address.h"

namespace mltcp::rdma {

class KernelSocket {
 public:
  /// Binds to `address`. If its port is 0, the kernel chooses a port. `interface` is the index of the interface, which
  /// link-local addresses need. Throws InputError if the address or port is not available, RunError for other failures.
  KernelSocket(const Address& address, std::uint32_t interface);
  ~KernelSocket();
  KernelSocket(const KernelSocket&) = delete;
  KernelSocket& operator=(const KernelSocket&) = delete;

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Sends a datagram. The datagram is lost, as on the network, if the kernel does not accept it.
  void send(const Address& to, std::span<const std::byte> bytes) const;
  struct Received {
    Address from;
    std::size_t bytes = 0;  ///< full length of the datagram, which may exceed the size of `into`
  };
  /// Returns the next datagram; empty if none has arrived.
  [[nodiscard]] std::optional<Received> receive(std::span<std::byte> into) const;

 private:
  int file_ = -1;
  bool v4_;
  std::uint32_t interface_;
  std::uint16_t port_ = 0;
};

}  // namespace mltcp::rdma
