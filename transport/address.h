// A transport address: an IP address and a UDP port. IPv4 addresses are stored as IPv4-mapped IPv6 addresses (RFC 4291
// section 2.5.5.2). The port is in host byte order, and the bytes of the IP address are in network byte order.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace mltcp {

struct Address {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;

  /// Returns an IPv4 address for a number in host byte order: 10.0.0.1 is 0x0A000001.
  static constexpr Address v4(std::uint32_t ip, std::uint16_t port) {
    Address a;
    a.ip[10] = 0xFF;
    a.ip[11] = 0xFF;
    a.ip[12] = static_cast<std::uint8_t>(ip >> 24);
    a.ip[13] = static_cast<std::uint8_t>(ip >> 16);
    a.ip[14] = static_cast<std::uint8_t>(ip >> 8);
    a.ip[15] = static_cast<std::uint8_t>(ip);
    a.port = port;
    return a;
  }

  /// Parses an IPv4 or IPv6 address: "10.0.0.1", "10.0.0.1:62400", "fd00::1", "[fd00::1]:62400". `port` is the default
  /// port. Host names are not resolved. Throws InputError that quotes `text`, names the error and shows the right form.
  static Address parse(std::string_view text, std::uint16_t port = 0);

  [[nodiscard]] constexpr bool is_v4() const {
    // Compares words instead of bytes for speed, because this function is called for every packet.
    const auto words = std::bit_cast<std::array<std::uint32_t, 4>>(ip);
    return (words[0] | words[1]) == 0 && words[2] == std::bit_cast<std::uint32_t>(kMapped);
  }
  /// The IPv4 address in host byte order; requires is_v4().
  [[nodiscard]] constexpr std::uint32_t v4_ip() const {
    return std::uint32_t{ip[12]} << 24 | std::uint32_t{ip[13]} << 16 | std::uint32_t{ip[14]} << 8 | ip[15];
  }

  constexpr auto operator<=>(const Address&) const = default;
  constexpr bool operator==(const Address& other) const {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(ip) == std::bit_cast<Words>(other.ip) && port == other.port;
  }

 private:
  static constexpr std::array<std::uint8_t, 4> kMapped{0, 0, 0xFF, 0xFF};
};

/// An address and the prefix length of its network.
struct AddressPrefix {
  Address address;
  std::uint32_t bits = 0;  ///< 1 to 32 for IPv4, 1 to 128 for IPv6

  /// Parses "10.0.0.1/24" or "fd00::1/64". Throws InputError like Address::parse().
  static AddressPrefix parse(std::string_view text);
};

/// Returns text such as "10.0.0.1:62400" or "[2001:db8:0:0:0:0:0:1]:62400".
std::string to_text(const Address& address);

struct AddressHash {
  std::size_t operator()(const Address& a) const noexcept {
    std::uint64_t h = 0xCBF29CE484222325ULL ^ a.port;
    for (const std::uint8_t byte : a.ip) h = (h ^ byte) * 0x100000001B3ULL;
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

}  // namespace mltcp
