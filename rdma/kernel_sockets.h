// The kernel's UDP sockets by which shards ask each other for queue pairs (resolution.h). Such a socket also claims a
// shard's UDP port, so that no two programs of a machine have one address.
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
  /// Binds to `address`; port 0: one that the kernel chooses. `interface`: its index, for link-local addresses. Throws
  /// InputError if the address or the port can't be had, RunError for the rest.
  KernelSocket(const Address& address, std::uint32_t interface);
  ~KernelSocket();
  KernelSocket(const KernelSocket&) = delete;
  KernelSocket& operator=(const KernelSocket&) = delete;

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// What the kernel does not take is lost, like a packet on its way.
  void send(const Address& to, std::span<const std::byte> bytes) const;
  struct Received {
    Address from;
    std::size_t bytes = 0;  ///< its length, of which no more is there than `into` has room for
  };
  /// Empty if there is none.
  [[nodiscard]] std::optional<Received> receive(std::span<std::byte> into) const;

 private:
  int file_ = -1;
  bool v4_;
  std::uint32_t interface_;
  std::uint16_t port_ = 0;
};

}  // namespace mltcp::rdma
