// Writes and parses frame headers and computes checksums; see encapsulation.h.
//
// Sums are computed over 32-bit words in 64-bit accumulators, which cannot overflow below 16 GiB, and are folded at the
// end. On x86-64, if the CPU supports AVX2, an AVX2 version is chosen at program start. It has two pairs of
// accumulators and processes 64 bytes per round.
#include "mltcp/transport/ethernet/encapsulation.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/transport/network_order.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mltcp::encap {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;        // IEEE 802.1Q
constexpr std::uint16_t kEtherTypeServiceTag = 0x88A8;  // IEEE 802.1ad
constexpr std::uint16_t kVlanMask = 0x0FFF;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kProtocolIpv6Fragment = 44;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreFragmentsOrOffset = 0x3FFF;

constexpr std::uint16_t fold(std::uint64_t total) {
  // Adds the number rotated by half its width. The upper half of the result is the end-around carry sum of the two
  // halves.
  total += std::rotl(total, 32);
  auto half = static_cast<std::uint32_t>(total >> 32);
  half += std::rotl(half, 16);
  return static_cast<std::uint16_t>(half >> 16);
}

constexpr bool is_tag(std::uint16_t ether_type) {
  return ether_type == kEtherTypeVlan || ether_type == kEtherTypeServiceTag;
}

/// Sums `size` bytes, and copies them if `copy` is true. `copy` is a template parameter to avoid branches.
template <bool copy>
inline std::uint64_t sum_words(std::byte* destination, const std::byte* source, std::size_t size) {
  std::uint64_t total = 0;
  for (; size >= 8; size -= 8, source += 8) {
    const auto word = load<std::uint64_t>(source);
    if constexpr (copy) {
      store(destination, word);
      destination += 8;
    }
    total += (word & 0xFFFF'FFFF) + (word >> 32);
  }
  if (size != 0) {
    std::uint64_t word = 0;  // the last bytes, padded with zeros
    std::memcpy(&word, source, size);
    if constexpr (copy) std::memcpy(destination, source, size);
    total += (word & 0xFFFF'FFFF) + (word >> 32);
  }
  return total;
}

template <bool copy>
std::uint16_t portable_pass(void* destination, const void* source, std::size_t size) {
  return fold(sum_words<copy>(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), size));
}

#if defined(__x86_64__)

// Sums `size` bytes, and copies them unless `destination` is null. One function serves both purposes. A template would
// not be faster, because GCC does not inline functions that are compiled for another target.
__attribute__((target("avx2"))) std::uint16_t avx2_pass(void* destination, const void* source, std::size_t size) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const __m256i low_words = _mm256_set1_epi64x(0xFFFF'FFFF);
  __m256i low = _mm256_setzero_si256();
  __m256i high = _mm256_setzero_si256();
  __m256i low2 = _mm256_setzero_si256();
  __m256i high2 = _mm256_setzero_si256();
  for (; size >= 64; size -= 64, from += 64) {
    __m256i a;
    __m256i b;
    std::memcpy(&a, from, 32);
    std::memcpy(&b, from + 32, 32);
    if (to != nullptr) {
      std::memcpy(to, &a, 32);
      std::memcpy(to + 32, &b, 32);
      to += 64;
    }
    low = _mm256_add_epi64(low, _mm256_and_si256(a, low_words));
    high = _mm256_add_epi64(high, _mm256_srli_epi64(a, 32));
    low2 = _mm256_add_epi64(low2, _mm256_and_si256(b, low_words));
    high2 = _mm256_add_epi64(high2, _mm256_srli_epi64(b, 32));
  }
  const __m256i both = _mm256_add_epi64(_mm256_add_epi64(low, high), _mm256_add_epi64(low2, high2));
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const std::uint64_t total =
      static_cast<std::uint64_t>(_mm_cvtsi128_si64(half)) + static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
  const std::uint64_t rest = to != nullptr ? sum_words<true>(to, from, size) : sum_words<false>(nullptr, from, size);
  return fold(total + rest);
}

bool choose_avx2() {
  __builtin_cpu_init();
  return static_cast<int>(__builtin_cpu_supports("avx2")) != 0;
}
const bool has_avx2 = choose_avx2();
#endif

/// Below this many bytes, setting up vectors costs more than it saves.
constexpr std::size_t kVectorBytes = 64;

/// Sum of the two addresses of an IPv4 packet.
std::uint64_t sum_v4(const Headers& headers) {
  const auto word = [](const Address& address) {
    return std::uint64_t{std::bit_cast<std::array<std::uint32_t, 4>>(address.ip)[3]};
  };
  return word(headers.source) + word(headers.destination);
}

/// Sum of the two addresses of an IPv6 packet.
std::uint64_t sum_v6(const Headers& headers) {
  std::uint64_t total = 0;
  for (const Address* const address : {&headers.source, &headers.destination}) {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(address->ip);
    const std::uint64_t both = words[0] + words[1];
    total += (both & 0xFFFF'FFFF) + (both >> 32) + static_cast<std::uint64_t>(both < words[0]);
  }
  return total;
}

/// Returns the checksum field for a partial sum.
constexpr std::uint16_t complement(std::uint16_t partial) { return static_cast<std::uint16_t>(~partial); }

/// A valid IP header: its length, and the length of the UDP header with the payload, in bytes.
struct Ip {
  std::size_t header_bytes = 0;
  std::size_t udp_bytes = 0;
};

/// Parses an IPv4 header. `packet` is the first piece of the IP packet, and `packet_bytes` is the length of all pieces.
inline Reject parse_ipv4(std::span<const std::byte> packet, std::size_t packet_bytes, VerifyIp verify,
                         const DscpMap& dscp, Ip& out, Headers& headers) {
  if (packet.size() < kIpv4Bytes) return Reject::truncated;
  const std::byte* ip = packet.data();
  const auto first = std::to_integer<unsigned>(ip[0]);
  if (first >> 4 != 4) return Reject::not_ip;
  const std::size_t ip_bytes = std::size_t{first & 15} * 4;
  if (ip_bytes < kIpv4Bytes) return Reject::bad_length;
  if (packet.size() < ip_bytes) return Reject::truncated;
  if (verify == VerifyIp::yes) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < kIpv4Bytes; i += 4) total += load<std::uint32_t>(ip + i);
    if (ip_bytes > kIpv4Bytes) [[unlikely]] {
      total += sum_words<false>(nullptr, ip + kIpv4Bytes, ip_bytes - kIpv4Bytes);
    }
    if (fold(total) != 0xFFFF) return Reject::bad_ip_checksum;
  }
  const std::size_t total = load_network(ip + 2);
  if (total < ip_bytes) return Reject::bad_length;
  if (total > packet_bytes) return Reject::truncated;
  if ((load_network(ip + 6) & kMoreFragmentsOrOffset) != 0) return Reject::fragment;
  if (std::to_integer<std::uint8_t>(ip[9]) != kProtocolUdp) return Reject::not_udp;
  const auto traffic_class = std::to_integer<unsigned>(ip[1]);
  headers.ecn = static_cast<Ecn>(traffic_class & 3);
  headers.priority = dscp.priority(static_cast<std::uint8_t>(traffic_class >> 2));
  headers.time_to_live = std::to_integer<std::uint8_t>(ip[8]);
  headers.source = Address::v4(0, 0);
  headers.destination = Address::v4(0, 0);
  std::memcpy(&headers.source.ip[12], ip + 12, 4);
  std::memcpy(&headers.destination.ip[12], ip + 16, 4);
  out = {ip_bytes, total - ip_bytes};
  return Reject::none;
}

inline Reject parse_ipv6(std::span<const std::byte> packet, std::size_t packet_bytes, const DscpMap& dscp, Ip& out,
                         Headers& headers) {
  if (packet.size() < kIpv6Bytes) return Reject::truncated;
  const std::byte* ip = packet.data();
  const std::uint16_t first = load_network(ip);
  if (first >> 12 != 6) return Reject::not_ip;
  const std::size_t length = load_network(ip + 4);
  if (length > packet_bytes - kIpv6Bytes) return Reject::truncated;
  const auto next = std::to_integer<std::uint8_t>(ip[6]);
  if (next == kProtocolIpv6Fragment) return Reject::fragment;
  if (next != kProtocolUdp) return Reject::not_udp;
  headers.ecn = static_cast<Ecn>(first >> 4 & 3);
  headers.priority = dscp.priority(static_cast<std::uint8_t>(first >> 6 & 63));
  headers.time_to_live = std::to_integer<std::uint8_t>(ip[7]);
  std::memcpy(headers.source.ip.data(), ip + 8, 16);
  std::memcpy(headers.destination.ip.data(), ip + 24, 16);
  // IPv4-mapped addresses must not appear on the wire (RFC 4942 section 2.2), and would be mistaken for IPv4.
  if (headers.source.is_v4() || headers.destination.is_v4()) return Reject::not_for_us;
  out = {kIpv6Bytes, length};
  return Reject::none;
}

/// Parses the headers of a frame for all public functions. `first` and `frame_bytes` are as in parse_headers().
inline Reject parse_into(std::span<const std::byte> first, std::size_t frame_bytes, VerifyIp verify_ip,
                         const DscpMap& dscp, Headers& headers, std::size_t& payload_offset,
                         std::size_t& payload_bytes) {
  if (first.size() < kEthernetBytes) return Reject::truncated;
  std::size_t ip_at = kEthernetBytes;
  std::uint16_t ether_type = load_network(first.data() + 12);
  headers.vlan = 0;
  if (ether_type == kEtherTypeVlan) [[unlikely]] {
    ip_at += kVlanBytes;
    if (first.size() < ip_at) return Reject::truncated;
    headers.vlan = load_network(first.data() + 14) & kVlanMask;
    ether_type = load_network(first.data() + 16);
  }
  const auto packet = first.subspan(ip_at);
  const std::size_t packet_bytes = frame_bytes - ip_at;
  Ip ip;
  Reject reject = Reject::not_ip;
  if (ether_type == kEtherTypeIpv4) reject = parse_ipv4(packet, packet_bytes, verify_ip, dscp, ip, headers);
  if (ether_type == kEtherTypeIpv6) reject = parse_ipv6(packet, packet_bytes, dscp, ip, headers);
  if (reject != Reject::none) return reject;

  if (ip.udp_bytes < kUdpBytes) return Reject::bad_length;
  if (packet.size() - ip.header_bytes < kUdpBytes) return Reject::truncated;
  const std::byte* udp = packet.data() + ip.header_bytes;
  const std::size_t udp_bytes = load_network(udp + 4);
  if (udp_bytes < kUdpBytes || udp_bytes > ip.udp_bytes) return Reject::bad_length;
  std::memcpy(headers.destination_mac.data(), first.data(), 6);
  std::memcpy(headers.source_mac.data(), first.data() + 6, 6);
  headers.source.port = load_network(udp);
  headers.destination.port = load_network(udp + 2);
  payload_offset = ip_at + ip.header_bytes + kUdpBytes;
  payload_bytes = udp_bytes - kUdpBytes;
  return Reject::none;
}

/// Returns whether the UDP checksum in the headers before `payload` is correct, or is absent, which only IPv4 allows.
inline bool udp_holds(const std::byte* payload, const Headers& headers, std::size_t payload_bytes,
                      std::uint16_t payload_sum) {
  const std::byte* udp = payload - kUdpBytes;
  const bool v4 = headers.destination.is_v4();
  if (load<std::uint16_t>(udp + 6) == 0) return v4;
  std::uint64_t total = load<std::uint32_t>(udp) + std::uint64_t{load<std::uint32_t>(udp + 4)} +
                        to_network(kProtocolUdp) + to_network(static_cast<std::uint16_t>(kUdpBytes + payload_bytes)) +
                        payload_sum;
  total += v4 ? sum_v4(headers) : sum_v6(headers);
  return fold(total) == 0xFFFF;
}

}  // namespace

std::uint16_t sum(const void* data, std::size_t size) {
#if defined(__x86_64__)
  if (has_avx2 && size >= kVectorBytes) return avx2_pass(nullptr, data, size);
#endif
  return portable_pass<false>(nullptr, data, size);
}

std::uint16_t copy_and_sum(void* destination, const void* source, std::size_t size) {
#if defined(__x86_64__)
  if (has_avx2 && size >= kVectorBytes) return avx2_pass(destination, source, size);
#endif
  return portable_pass<true>(destination, source, size);
}

DscpMap::DscpMap(const std::array<std::uint8_t, kPriorities>& dscp) : DscpMap() {
  for (std::size_t n = kPriorities; n-- > 0;) {
    if (dscp[n] > 63) {
      throw InputError(fmt::format("the DSCP {} of priority {} is out of range; give 0 to 63", dscp[n], n));
    }
    dscp_[n] = dscp[n];
    priority_[dscp[n]] = static_cast<std::uint8_t>(n);
  }
}

std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum, std::byte* out,
                          const DscpMap& dscp, Offload offload) {
  const bool v4 = headers.destination.is_v4();
  const std::size_t udp_bytes = kUdpBytes + payload_bytes;
  const unsigned traffic_class = unsigned{dscp.dscp(headers.priority)} << 2 | static_cast<unsigned>(headers.ecn);
  std::memcpy(out, headers.destination_mac.data(), 6);
  std::memcpy(out + 6, headers.source_mac.data(), 6);
  std::byte* ip = out + kEthernetBytes;
  if (headers.vlan != 0) [[unlikely]] {
    store_network(out + 12, kEtherTypeVlan);
    store_network(out + 14, static_cast<std::uint16_t>(unsigned{headers.priority} << 13 | headers.vlan));
    ip += kVlanBytes;
  }
  std::byte* udp = nullptr;
  const std::uint16_t length = to_network(static_cast<std::uint16_t>(udp_bytes));
  std::uint64_t pseudo = std::uint64_t{length} + to_network(kProtocolUdp);
  if (v4) {
    store_network(ip - 2, kEtherTypeIpv4);
    const std::uint16_t version = to_network(static_cast<std::uint16_t>(0x4500 | traffic_class));
    const std::uint16_t ip_length = to_network(static_cast<std::uint16_t>(kIpv4Bytes + udp_bytes));
    const std::uint16_t hops = to_network(static_cast<std::uint16_t>(headers.time_to_live << 8 | kProtocolUdp));
    store(ip, version);
    store(ip + 2, ip_length);
    store_network(ip + 4, 0);
    store_network(ip + 6, kDontFragment);
    store(ip + 8, hops);
    std::memcpy(ip + 12, &headers.source.ip[12], 4);
    std::memcpy(ip + 16, &headers.destination.ip[12], 4);
    const std::uint64_t addresses = sum_v4(headers);
    std::uint16_t checksum = 0;
    if (!offload.ip) {
      checksum = complement(fold(addresses + version + ip_length + to_network(kDontFragment) + hops));
    }
    store(ip + 10, checksum);
    pseudo += addresses;
    udp = ip + kIpv4Bytes;
  } else {
    store_network(ip - 2, kEtherTypeIpv6);
    const std::uint16_t version = to_network(static_cast<std::uint16_t>(0x6000 | traffic_class << 4));
    store(ip, std::array<std::uint16_t, 2>{version, 0});  // flow label 0
    store(ip + 4, length);
    ip[6] = std::byte{kProtocolUdp};
    ip[7] = std::byte{headers.time_to_live};
    std::memcpy(ip + 8, headers.source.ip.data(), 16);
    std::memcpy(ip + 24, headers.destination.ip.data(), 16);
    pseudo += sum_v6(headers);
    udp = ip + kIpv6Bytes;
  }
  const std::uint16_t source_port = to_network(headers.source.port);
  const std::uint16_t destination_port = to_network(headers.destination.port);
  store(udp, source_port);
  store(udp + 2, destination_port);
  store(udp + 4, length);
  std::uint16_t checksum = 0;
  if (offload.udp) {
    checksum = fold(pseudo);
  } else {
    checksum = complement(fold(pseudo + source_port + destination_port + length + payload_sum));
    // A checksum of 0 means "not computed", so it is written as 0xFFFF, which is equivalent in ones' complement.
    if (checksum == 0) checksum = 0xFFFF;
  }
  store(udp + 6, checksum);
  return static_cast<std::size_t>(udp - out) + kUdpBytes;
}

std::string_view to_text(Reject reject) {
  switch (reject) {
    case Reject::none:
      return "none";
    case Reject::truncated:
      return "truncated";
    case Reject::not_ip:
      return "not IP";
    case Reject::not_udp:
      return "not UDP";
    case Reject::fragment:
      return "fragment";
    case Reject::bad_ip_checksum:
      return "bad IP checksum";
    case Reject::bad_udp_checksum:
      return "bad UDP checksum";
    case Reject::bad_length:
      return "bad length";
    case Reject::oversized:
      return "oversized";
    case Reject::not_for_us:
      return "not for us";
  }
  return "unknown";
}

Reject parse_headers(std::span<const std::byte> first, std::size_t frame_bytes, Layout& out, VerifyIp verify_ip,
                     const DscpMap& dscp) {
  return parse_into(first, frame_bytes, verify_ip, dscp, out.headers, out.payload_offset, out.payload_bytes);
}

bool udp_checksum_holds(std::span<const std::byte> first, const Layout& layout, std::uint16_t payload_sum) {
  return udp_holds(first.data() + layout.payload_offset, layout.headers, layout.payload_bytes, payload_sum);
}

Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out, VerifyIp verify_ip, const DscpMap& dscp) {
  std::size_t offset = 0;
  std::size_t size = 0;
  const Reject reject = parse_into(bytes, bytes.size(), verify_ip, dscp, out.headers, offset, size);
  if (reject != Reject::none) return reject;
  out.payload = bytes.subspan(offset, size);
  if (verify == VerifyUdp::yes && !udp_holds(out.payload.data(), out.headers, size, sum(out.payload.data(), size))) {
    return Reject::bad_udp_checksum;
  }
  return Reject::none;
}

FrameFault glance(std::span<const std::byte> bytes, std::size_t frame_bytes, Glance& out) {
  if (bytes.size() < kEthernetBytes) return FrameFault::runt;
  std::memcpy(out.destination_mac.data(), bytes.data(), 6);
  std::memcpy(out.source_mac.data(), bytes.data() + 6, 6);
  if ((out.source_mac[0] & 1) != 0 || out.source_mac == MacAddress{}) return FrameFault::bad_source;
  out.priority = 0;
  out.ecn = Ecn::not_ect;
  out.ip_offset = 0;
  std::size_t at = kEthernetBytes - 2;
  std::uint16_t ether_type = load_network(bytes.data() + at);
  const bool tagged = is_tag(ether_type);
  for (int tags = 0; tags < 2 && is_tag(ether_type); ++tags) {
    if (bytes.size() < at + 6) return FrameFault::runt;
    if (tags == 0) out.priority = static_cast<std::uint8_t>(load_network(bytes.data() + at + 2) >> 13);
    at += 4;
    ether_type = load_network(bytes.data() + at);
  }
  at += 2;
  const auto packet = bytes.subspan(at);
  const bool v4 = ether_type == kEtherTypeIpv4 && packet.size() >= kIpv4Bytes && (packet[0] >> 4) == std::byte{4};
  const bool v6 = ether_type == kEtherTypeIpv6 && packet.size() >= kIpv6Bytes && (packet[0] >> 4) == std::byte{6};
  if (!v4 && !v6) return FrameFault::none;
  const std::size_t length = v4 ? load_network(packet.data() + 2) : kIpv6Bytes + load_network(packet.data() + 4);
  if (length > frame_bytes - at) return FrameFault::cut_short;
  out.ip_offset = at;
  const unsigned traffic_class =
      v4 ? std::to_integer<unsigned>(packet[1]) : unsigned{load_network(packet.data())} >> 4 & 0xFF;
  if (!tagged) out.priority = static_cast<std::uint8_t>(traffic_class >> 5);
  out.ecn = static_cast<Ecn>(traffic_class & 3);
  return FrameFault::none;
}

bool transport_checksum_is_wrong(std::span<const std::byte> frame, const Glance& seen) {
  if (seen.ip_offset == 0) return false;
  const auto ip = frame.subspan(seen.ip_offset);
  const bool v4 = (ip[0] >> 4) == std::byte{4};
  const std::size_t header = v4 ? (std::to_integer<std::size_t>(ip[0]) & 15) * 4 : kIpv6Bytes;
  const std::size_t end = v4 ? load_network(ip.data() + 2) : kIpv6Bytes + load_network(ip.data() + 4);
  const auto protocol = std::to_integer<std::uint8_t>(ip[v4 ? 9 : 6]);
  if (protocol != kProtocolTcp && protocol != kProtocolUdp) return false;
  if (end > ip.size() || end < header + (protocol == kProtocolTcp ? 20 : kUdpBytes)) return false;
  if (v4 && (header < kIpv4Bytes || (load_network(ip.data() + 6) & kMoreFragmentsOrOffset) != 0)) return false;
  const auto segment = ip.subspan(header, end - header);
  if (protocol == kProtocolUdp && load<std::uint16_t>(segment.data() + 6) == 0) return !v4;
  const std::uint64_t pseudo = std::uint64_t{sum(ip.data() + (v4 ? 12 : 8), v4 ? 8 : 32)} +
                               to_network(static_cast<std::uint16_t>(segment.size())) + to_network(protocol);
  return fold(pseudo + sum(segment.data(), segment.size())) != 0xFFFF;
}

bool mark_congestion(std::span<std::byte> frame) {
  Glance seen;
  if (glance(frame, SIZE_MAX, seen) != FrameFault::none || seen.ecn == Ecn::not_ect) return false;
  std::byte* ip = frame.data() + seen.ip_offset;
  if ((ip[0] >> 4) == std::byte{6}) {
    ip[1] |= std::byte{0x30};
    return true;
  }
  const auto before = load<std::uint16_t>(ip);
  ip[1] |= std::byte{3};
  store(ip + 10, update_checksum(load<std::uint16_t>(ip + 10), before, load<std::uint16_t>(ip)));
  return true;
}

}  // namespace mltcp::encap
