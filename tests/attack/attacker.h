// A hostile host on the network of an endpoint, with its own UDP socket and hand-made packets. On the loopback it can
// send from every address of 127.0.0.0/8.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/transport/address.h"
#include "mltcp/transport/wire.h"

namespace mltcp::attack {

using ByteVector = std::vector<std::byte>;

class Attacker {
 public:
  /// If `port` is 0, the kernel selects a free port.
  explicit Attacker(std::uint32_t ip = 0x7F000001, std::uint16_t port = 0) : file_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in own = name_of(ip, port);
    EXPECT_EQ(bind(file_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    socklen_t size = sizeof own;
    getsockname(file_, reinterpret_cast<sockaddr*>(&own), &size);
    address_ = Address::v4(ip, ntohs(own.sin_port));
  }
  ~Attacker() { close(file_); }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }

  void send(const Address& to, std::span<const std::byte> bytes) {
    const sockaddr_in name = name_of(to.v4_ip(), to.port);
    sendto(file_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&name), sizeof name);
    ++sent;
    sent_bytes += bytes.size();
  }
  /// Returns the next packet that has arrived or arrives within `milliseconds`, or an empty vector if none arrives.
  ByteVector receive(int milliseconds = 0) {
    pollfd waiting{file_, POLLIN, 0};
    if (poll(&waiting, 1, milliseconds) != 1) return {};
    ByteVector packet(65'536);
    const ssize_t size = recv(file_, packet.data(), packet.size(), MSG_DONTWAIT);
    packet.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    if (size > 0) ++received, received_bytes += packet.size();
    return packet;
  }

  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;

 private:
  static sockaddr_in name_of(std::uint32_t ip, std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(ip);
    name.sin_port = htons(port);
    return name;
  }

  int file_;
  Address address_;
};

/// Returns a packet with a valid checksum. `frames(writer)` writes its frames.
template <typename Frames>
ByteVector packet(const wire::Header& header, Frames frames) {
  std::array<std::byte, 1472> buffer{};
  wire::Writer writer(buffer);
  frames(writer);
  const auto bytes = writer.finish(header, {});
  return {bytes.begin(), bytes.end()};
}

inline void acknowledge(wire::Writer& writer, std::uint64_t first, std::uint64_t last) {
  wire::AckFrame ack;
  ack.range_count = 1;
  ack.ranges[0] = {first, last};
  writer.ack(ack);
}

/// Returns a packet with a CONNECT. `source` is the sender's connection id.
inline ByteVector connect_packet(std::uint32_t source, std::uint64_t tag, std::uint32_t credit = 1) {
  return packet({}, [&](wire::Writer& writer) {
    writer.connect({.max_packet = 1472, .source_connection = source, .credit = credit, .tag = tag});
  });
}

/// Returns a packet with a CLOSE for the connection with the id `connection`.
inline ByteVector closing_packet(std::uint32_t connection) {
  wire::Header header;
  header.connection = connection;
  return packet(header, [](wire::Writer& writer) { writer.close(wire::CloseReason::aborted); });
}

}  // namespace mltcp::attack
