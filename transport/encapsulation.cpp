// Frame headers and checksums; see encapsulation.h.
//
// The sum is taken over 32-bit words in 64-bit accumulators, which can't overflow below 16 GiB, and folded at the
// end. On x86-64 an AVX2 version is chosen at start when the CPU has it: two accumulator pairs, 64 bytes a round.
#include "mltcp/transport/encapsulation.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mltcp::encap {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kProtocolIpv6Fragment = 44;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreFragmentsOrOffset = 0x3FFF;

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

constexpr std::uint16_t to_network(std::uint16_t value) {
  if constexpr (std::endian::native == std::endian::big) return value;
  return static_cast<std::uint16_t>(value << 8 | value >> 8);
}

std::uint16_t load_network(const std::byte* from) { return to_network(load<std::uint16_t>(from)); }
void store_network(std::byte* to, std::uint16_t value) { store(to, to_network(value)); }

constexpr std::uint16_t fold(std::uint64_t total) {
  total = (total & 0xFFFF'FFFF) + (total >> 32);
  total = (total & 0xFFFF'FFFF) + (total >> 32);
  total = (total & 0xFFFF) + (total >> 16);
  total = (total & 0xFFFF) + (total >> 16);
  return static_cast<std::uint16_t>(total);
}

/// The last 0 to 63 bytes; `copy` is a compile-time choice, so that both uses stay branch-free.
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
    std::uint64_t word = 0;  // zeros follow the last byte
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

// One function for both uses, a null destination meaning "no copy": GCC does not inline a function of another target
// into this one, so templates would not help.
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

/// Below this many bytes setting up vectors costs more than it saves.
constexpr std::size_t kVectorBytes = 64;

/// Sum of the pseudo header (RFC 768, RFC 8200 section 8.1): addresses, protocol and UDP length.
std::uint64_t pseudo_sum(const std::byte* addresses, std::size_t address_bytes, std::size_t udp_bytes) {
  return std::uint64_t{portable_pass<false>(nullptr, addresses, address_bytes)} +
         to_network(static_cast<std::uint16_t>(udp_bytes)) + to_network(kProtocolUdp);
}

/// A checksum field from a partial sum.
constexpr std::uint16_t complement(std::uint16_t partial) { return static_cast<std::uint16_t>(~partial); }

Reject parse_ipv4(std::span<const std::byte> packet, std::size_t& ip_bytes, std::span<const std::byte>& udp,
                  Headers& headers) {
  if (packet.size() < kIpv4Bytes) return Reject::truncated;
  const std::byte* ip = packet.data();
  const auto first = std::to_integer<unsigned>(ip[0]);
  if (first >> 4 != 4) return Reject::not_ip;
  ip_bytes = std::size_t{first & 15} * 4;
  if (ip_bytes < kIpv4Bytes) return Reject::bad_length;
  if (packet.size() < ip_bytes) return Reject::truncated;
  if (portable_pass<false>(nullptr, ip, ip_bytes) != 0xFFFF) return Reject::bad_ip_checksum;
  const std::size_t total = load_network(ip + 2);
  if (total < ip_bytes) return Reject::bad_length;
  if (total > packet.size()) return Reject::truncated;
  if ((load_network(ip + 6) & kMoreFragmentsOrOffset) != 0) return Reject::fragment;
  if (std::to_integer<std::uint8_t>(ip[9]) != kProtocolUdp) return Reject::not_udp;
  headers.ecn = static_cast<Ecn>(std::to_integer<unsigned>(ip[1]) & 3);
  headers.priority = static_cast<std::uint8_t>(std::to_integer<unsigned>(ip[1]) >> 5);
  headers.time_to_live = std::to_integer<std::uint8_t>(ip[8]);
  headers.source = Address::v4(0, 0);
  headers.destination = Address::v4(0, 0);
  std::memcpy(&headers.source.ip[12], ip + 12, 4);
  std::memcpy(&headers.destination.ip[12], ip + 16, 4);
  udp = packet.subspan(ip_bytes, total - ip_bytes);
  return Reject::none;
}

Reject parse_ipv6(std::span<const std::byte> packet, std::size_t& ip_bytes, std::span<const std::byte>& udp,
                  Headers& headers) {
  if (packet.size() < kIpv6Bytes) return Reject::truncated;
  const std::byte* ip = packet.data();
  const std::uint16_t first = load_network(ip);
  if (first >> 12 != 6) return Reject::not_ip;
  ip_bytes = kIpv6Bytes;
  const std::size_t length = load_network(ip + 4);
  if (length > packet.size() - kIpv6Bytes) return Reject::truncated;
  const auto next = std::to_integer<std::uint8_t>(ip[6]);
  if (next == kProtocolIpv6Fragment) return Reject::fragment;
  if (next != kProtocolUdp) return Reject::not_udp;
  headers.ecn = static_cast<Ecn>(first >> 4 & 3);
  headers.priority = static_cast<std::uint8_t>(first >> 9 & 7);
  headers.time_to_live = std::to_integer<std::uint8_t>(ip[7]);
  std::memcpy(headers.source.ip.data(), ip + 8, 16);
  std::memcpy(headers.destination.ip.data(), ip + 24, 16);
  // An IPv4-mapped address must not be on the wire (RFC 4942 section 2.2), and would pass for IPv4 further up.
  if (headers.source.is_v4() || headers.destination.is_v4()) return Reject::not_for_us;
  udp = packet.subspan(kIpv6Bytes, length);
  return Reject::none;
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

std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum,
                          std::byte* out) {
  const bool v4 = headers.destination.is_v4();
  const std::size_t udp_bytes = kUdpBytes + payload_bytes;
  const unsigned traffic_class = unsigned{headers.priority} << 5 | static_cast<unsigned>(headers.ecn);
  std::memcpy(out, headers.destination_mac.data(), 6);
  std::memcpy(out + 6, headers.source_mac.data(), 6);
  store_network(out + 12, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  std::byte* ip = out + kEthernetBytes;
  std::byte* udp = nullptr;
  std::uint64_t total = payload_sum;
  if (v4) {
    ip[0] = std::byte{0x45};
    ip[1] = static_cast<std::byte>(traffic_class);
    store_network(ip + 2, static_cast<std::uint16_t>(kIpv4Bytes + udp_bytes));
    store_network(ip + 4, 0);
    store_network(ip + 6, kDontFragment);
    ip[8] = std::byte{headers.time_to_live};
    ip[9] = std::byte{kProtocolUdp};
    store_network(ip + 10, 0);
    std::memcpy(ip + 12, &headers.source.ip[12], 4);
    std::memcpy(ip + 16, &headers.destination.ip[12], 4);
    store(ip + 10, complement(portable_pass<false>(nullptr, ip, kIpv4Bytes)));
    total += pseudo_sum(ip + 12, 8, udp_bytes);
    udp = ip + kIpv4Bytes;
  } else {
    store_network(ip, static_cast<std::uint16_t>(0x6000 | traffic_class << 4));
    store_network(ip + 2, 0);
    store_network(ip + 4, static_cast<std::uint16_t>(udp_bytes));
    ip[6] = std::byte{kProtocolUdp};
    ip[7] = std::byte{headers.time_to_live};
    std::memcpy(ip + 8, headers.source.ip.data(), 16);
    std::memcpy(ip + 24, headers.destination.ip.data(), 16);
    total += pseudo_sum(ip + 8, 32, udp_bytes);
    udp = ip + kIpv6Bytes;
  }
  store_network(udp, headers.source.port);
  store_network(udp + 2, headers.destination.port);
  store_network(udp + 4, static_cast<std::uint16_t>(udp_bytes));
  total += to_network(headers.source.port) + std::uint64_t{to_network(headers.destination.port)} +
           to_network(static_cast<std::uint16_t>(udp_bytes));
  const std::uint16_t checksum = complement(fold(total));
  // 0 would say "not computed"; 0xFFFF is the same number in ones' complement.
  store(udp + 6, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
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

Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out) {
  if (bytes.size() < kEthernetBytes) return Reject::truncated;
  const std::uint16_t ether_type = load_network(bytes.data() + 12);
  const auto packet = bytes.subspan(kEthernetBytes);
  std::span<const std::byte> udp;
  std::size_t ip_bytes = 0;
  const bool v4 = ether_type == kEtherTypeIpv4;
  if (!v4 && ether_type != kEtherTypeIpv6) return Reject::not_ip;
  const Reject reject =
      v4 ? parse_ipv4(packet, ip_bytes, udp, out.headers) : parse_ipv6(packet, ip_bytes, udp, out.headers);
  if (reject != Reject::none) return reject;

  if (udp.size() < kUdpBytes) return Reject::bad_length;
  const std::size_t udp_bytes = load_network(udp.data() + 4);
  if (udp_bytes < kUdpBytes || udp_bytes > udp.size()) return Reject::bad_length;
  udp = udp.first(udp_bytes);
  if (verify == VerifyUdp::yes) {
    if (load<std::uint16_t>(udp.data() + 6) == 0) {
      if (!v4) return Reject::bad_udp_checksum;
    } else {
      const std::size_t addresses = v4 ? 8 : 32;
      const std::uint64_t total =
          pseudo_sum(packet.data() + (v4 ? 12 : 8), addresses, udp_bytes) + sum(udp.data(), udp_bytes);
      if (fold(total) != 0xFFFF) return Reject::bad_udp_checksum;
    }
  }
  std::memcpy(out.headers.destination_mac.data(), bytes.data(), 6);
  std::memcpy(out.headers.source_mac.data(), bytes.data() + 6, 6);
  out.headers.source.port = load_network(udp.data());
  out.headers.destination.port = load_network(udp.data() + 2);
  out.payload = udp.subspan(kUdpBytes);
  return Reject::none;
}

bool mark_congestion(std::span<std::byte> frame) {
  std::byte* ip = frame.data() + kEthernetBytes;
  if (load_network(frame.data() + 12) == kEtherTypeIpv6) {
    if ((ip[1] & std::byte{0x30}) == std::byte{0}) return false;
    ip[1] |= std::byte{0x30};
    return true;
  }
  if ((ip[1] & std::byte{3}) == std::byte{0}) return false;
  const auto before = load<std::uint16_t>(ip);
  ip[1] |= std::byte{3};
  store(ip + 10, update_checksum(load<std::uint16_t>(ip + 10), before, load<std::uint16_t>(ip)));
  return true;
}

}  // namespace mltcp::encap
