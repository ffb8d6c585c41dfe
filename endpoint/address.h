// The address of an endpoint: a blob of at most 64 bytes. Programs hand it to peers by any means (a file, a key-value
// store, MPI, environment variables), and peers connect to it. An address names one run of one endpoint. After a
// restart at the same IP address and port, the endpoint has a new address, and connecting to the old one fails with
// Code::wrong_peer.
//
// The blob is opaque to programs, which may copy it and compare it byte by byte. It contains, in network byte order,
// with the offset and the size of each field:
//
//    0  4  magic "MLTA"            12 16  IP address, IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2)
//    4  1  format version, 1       28 16  random number of this endpoint
//    5  1  family, 4 or 6          44  4  CRC-32C (RFC 3720 appendix B.4) of the 44 bytes before
//    6  2  shards, 1 to 65535
//    8  2  UDP port of shard 0; further shards use the ports after it
//   10  2  reserved: written as 0, ignored when read
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "mltcp/endpoint/result.h"
#include "mltcp/transport/address.h"

namespace mltcp::endpoint {

class EndpointAddress {
 public:
  static constexpr std::size_t kMaxBytes = 64;  ///< maximum size of a blob of any version
  using Id = std::array<std::uint8_t, 16>;

  /// Creates an empty address.
  EndpointAddress() = default;
  /// `base.ip` must not be a wildcard. `base.port + shards - 1` must be at most 65535.
  EndpointAddress(const Address& base, std::uint16_t shards, const Id& id) noexcept;

  /// Reads a blob, which may contain any bytes. Returns Code::bad_address if the blob is invalid, and sets `why` to the
  /// reason. Returns Code::version if the blob has an unknown format version. Changes `out` only if the result is
  /// Code::ok.
  static Code parse(std::span<const std::byte> blob, EndpointAddress& out, std::string* why = nullptr);

  /// Returns the blob, which is valid as long as this object; empty if there is no address.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return std::span(blob_).first(size_); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Returns the address of shard 0.
  [[nodiscard]] const Address& base() const noexcept { return base_; }
  [[nodiscard]] std::uint16_t shards() const noexcept { return shards_; }
  [[nodiscard]] const Id& id() const noexcept { return id_; }
  /// Returns the address of shard number `shard` modulo shards().
  [[nodiscard]] Address of_shard(std::uint64_t shard) const noexcept {
    Address address = base_;
    if (shards_ > 0) address.port = static_cast<std::uint16_t>(base_.port + shard % shards_);
    return address;
  }
  bool operator==(const EndpointAddress& other) const noexcept { return blob_ == other.blob_ && size_ == other.size_; }

 private:
  static constexpr std::size_t kSizeV1 = 48;

  Address base_{};
  std::uint16_t shards_ = 0;
  std::uint8_t size_ = 0;
  Id id_{};
  std::array<std::byte, kSizeV1> blob_{};
};

/// Returns a text such as "10.0.0.1:62400 (2 shards, endpoint 5f3c9a01)".
std::string to_text(const EndpointAddress& address);

}  // namespace mltcp::endpoint
