// Reads claims from captures (see capture_claims.h).
#include "mltcp/transport/capture/capture_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/transport/capture/internal/pcapng.h"
#include "mltcp/transport/ethernet/claims_tap.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::capture {
namespace {

constexpr std::size_t kFrame = 12;  ///< overhead of a block: its type, and its length at the beginning and the end
constexpr std::size_t kPacketHeader = 20;  ///< header in a packet block: interface, time, captured and original length
constexpr std::size_t kLongestBlock = std::size_t{16} << 20;
constexpr std::size_t kMaxInterfaces = 65'536;
/// Maximum number of bytes of a packet that are examined.
constexpr std::size_t kLongestPacket = encap::kMaxHeaderBytes + 16 * kMaxTags + encap::kMaxPayloadBytes;

std::uint32_t word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
std::uint16_t half(std::span<const std::byte> bytes, std::size_t at) {
  std::uint16_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Reads 16 bits in network byte order.
unsigned network_half(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]) << 8 | std::to_integer<unsigned>(bytes[at + 1]);
}

/// Returns the direction that the options of a packet block state; `in` if they state none.
Direction direction_of(std::span<const std::byte> options) {
  while (options.size() >= 4) {
    const std::uint16_t code = half(options, 0);
    const std::size_t length = half(options, 2);
    const std::size_t padded = (length + 3) & ~std::size_t{3};
    if (code == 0 || padded > options.size() - 4) break;
    if (code == kPacketFlags && length == 4) return (word(options, 4) & 3) == 2 ? Direction::out : Direction::in;
    options = options.subspan(4 + padded);
  }
  return Direction::in;
}

class Reader {
 public:
  Reader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

  CaptureClaims read() {
    while (next_block()) {
      if (type_ == kSectionBlock) {
        if (block_.size() < 4 || word(block_, 0) != kByteOrder)
          refuse("is of another byte order; convert it with editcap on the machine that wrote it");
        links_.clear();
      } else if (type_ == kInterfaceBlock) {
        if (block_.size() < 8 || links_.size() == kMaxInterfaces)
          refuse("is an interface that can't be read; the file is damaged, so capture again");
        links_.push_back(half(block_, 0));
      } else if (type_ == kPacketBlock) {
        packet();
      }
    }
    return std::move(claims_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(
        fmt::format("{}: {}{}", name_, block_count_ > 0 ? fmt::format("block {} ", block_count_) : "", what));
  }

  /// Reads the next block. Returns false at the end of the file, even if the file ends within a block.
  bool next_block() {
    std::array<std::byte, 8> head{};
    if (!read_into(head)) return false;
    ++block_count_;
    type_ = word(head, 0);
    const std::size_t length = word(head, 4);
    if (block_count_ == 1 && type_ != kSectionBlock)
      refuse("is no pcapng file; write one with --pcap or tshark -F pcapng");
    if (length < kFrame || length % 4 != 0 || length > kLongestBlock)
      refuse(fmt::format(
          "has an impossible length of {} bytes; the file is damaged, or of another byte order, so capture again",
          length));
    block_.resize(length - kFrame);
    std::array<std::byte, 4> tail{};
    if (!read_into(block_) || !read_into(tail)) {
      claims_.is_cut = true;
      return false;
    }
    if (word(tail, 0) != length) refuse("has two different lengths; the file is damaged, so capture again");
    return true;
  }
  bool read_into(std::span<std::byte> bytes) {
    if (bytes.empty()) return true;
    in_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (in_.gcount() > 0 && static_cast<std::size_t>(in_.gcount()) < bytes.size()) claims_.is_cut = true;
    return static_cast<std::size_t>(in_.gcount()) == bytes.size();
  }

  void packet() {
    ++claims_.packets;
    if (block_.size() < kPacketHeader) refuse("is a packet that can't be read; the file is damaged, so capture again");
    const std::uint32_t interface = word(block_, 0);
    const std::size_t captured = word(block_, 12);
    const std::size_t original = std::min<std::size_t>(word(block_, 16), kLongestPacket);
    const auto rest = std::span<const std::byte>(block_).subspan(kPacketHeader);
    if (captured > rest.size() || interface >= links_.size())
      refuse("is a packet that contradicts its block; the file is damaged, so capture again");
    const auto bytes = rest.first(std::min({captured, original, kLongestPacket}));
    const std::size_t padded = std::min((captured + 3) & ~std::size_t{3}, rest.size());
    JobClaims& claims = direction_of(rest.subspan(padded)) == Direction::out ? claims_.sent : claims_.received;
    if (links_[interface] == static_cast<std::uint16_t>(LinkType::ethernet)) {
      frame(bytes, original, claims);
    } else if (links_[interface] == static_cast<std::uint16_t>(LinkType::ip) && !bytes.empty()) {
      ip_packet(bytes, original, claims);
    } else if (links_[interface] != static_cast<std::uint16_t>(LinkType::ip)) {
      ++claims_.other_packets;
      claims_.other_link = links_[interface];
    }
  }

  /// Parses a frame. Skips tags (802.1Q, 802.1ad and its predecessors), MPLS labels (RFC 3032) and PPPoE headers (RFC
  /// 2516), in any order.
  void frame(std::span<const std::byte> bytes, std::size_t original, JobClaims& claims) {
    std::size_t at = encap::kEthernetBytes - 2;
    for (std::size_t tags = 0; tags <= kMaxTags; ++tags) {
      if (bytes.size() < at + 2) {
        if (bytes.size() < original) ++claims_.cut_packets;
        return;
      }
      switch (const unsigned type = network_half(bytes, at)) {
        case 0x0800:
        case 0x86DD:
          return tags == 0 ? count(bytes, original, claims)
                           : ip_packet(bytes.subspan(at + 2), original - at - 2, claims);
        case 0x8100:
        case 0x88A8:
        case 0x9100:
          at += 4;
          continue;
        case 0x8847:
        case 0x8848: {
          at += 2;
          // Skips the labels up to the one that is marked as the last. MPLS does not name the protocol that follows, so
          // the IP version number decides.
          bool is_last = false;
          for (; !is_last && bytes.size() >= at + 4 && tags < kMaxTags; ++tags, at += 4)
            is_last = (std::to_integer<unsigned>(bytes[at + 2]) & 1) != 0;
          if (is_last && bytes.size() > at) return ip_packet(bytes.subspan(at), original - at, claims);
          if (bytes.size() < std::min(original, at + 4))
            ++claims_.cut_packets;
          else if (!is_last)
            ++claims_.deep_packets;
          return;
        }
        case 0x8864: {
          constexpr std::size_t session = 8;  // length of the PPPoE header and the PPP protocol
          constexpr unsigned ppp_v4 = 0x0021;
          constexpr unsigned ppp_v6 = 0x0057;
          at += 2;
          if (bytes.size() < at + session) {
            if (bytes.size() < original) ++claims_.cut_packets;
            return;
          }
          const unsigned protocol = network_half(bytes, at + session - 2);
          if (protocol == ppp_v4 || protocol == ppp_v6)
            ip_packet(bytes.subspan(at + session), original - at - session, claims);
          return;
        }
        default:
          static_cast<void>(type);
          return;
      }
    }
    ++claims_.deep_packets;
  }

  /// Counts an IP packet that has no Ethernet header. Adds an Ethernet header that states the IP version.
  void ip_packet(std::span<const std::byte> bytes, std::size_t original, JobClaims& claims) {
    const bool is_v6 = !bytes.empty() && std::to_integer<unsigned>(bytes[0]) >> 4 == 6;
    frame_.assign(encap::kEthernetBytes, std::byte{0});
    frame_[12] = is_v6 ? std::byte{0x86} : std::byte{0x08};
    frame_[13] = is_v6 ? std::byte{0xDD} : std::byte{0x00};
    frame_.insert(frame_.end(), bytes.begin(), bytes.end());
    count(frame_, encap::kEthernetBytes + original, claims);
  }

  /// Counts a frame in which an IP packet directly follows the Ethernet header.
  void count(std::span<const std::byte> frame, std::size_t original, JobClaims& claims) {
    using Found = encap::ClaimsTap::Found;
    const Found found = encap::ClaimsTap::count_claims(frame, original, claims);
    if (found == Found::cut) ++claims_.cut_packets;
    if (found == Found::none) note_unread(frame.subspan(encap::kEthernetBytes));
  }

  /// Counts an IP packet in which no claim was found, if it is a fragment or has an IPv6 extension header. It may
  /// contain a claim.
  void note_unread(std::span<const std::byte> ip) {
    constexpr std::size_t v4_bytes = 20;
    constexpr std::size_t v6_bytes = 40;
    const unsigned version = ip.empty() ? 0 : std::to_integer<unsigned>(ip[0]) >> 4;
    if (version == 4 && ip.size() >= v4_bytes && ip[9] == std::byte{17} && (network_half(ip, 6) & 0x3FFF) != 0)
      ++claims_.fragments;
    if (version != 6 || ip.size() < v6_bytes) return;
    switch (std::to_integer<unsigned>(ip[6])) {  // extension headers (RFC 8200, section 4)
      case 44:
        ++claims_.fragments;
        return;
      case 0:
      case 43:
      case 51:
      case 60:
        ++claims_.extended;
        return;
      default:
        return;
    }
  }

  std::istream& in_;
  const std::string name_;
  CaptureClaims claims_;
  std::uint32_t type_ = 0;
  std::uint64_t block_count_ = 0;
  std::vector<std::byte> block_;  ///< the current block without type and lengths
  std::vector<std::byte> frame_;
  std::vector<std::uint16_t> links_;  ///< link types of the interfaces
};

/// Returns the first four bytes of a file. Returns 0 if the file is shorter, or if it is a pipe, because reading would
/// consume the bytes of the pipe.
std::uint32_t first_word(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return 0;
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4> first{};
  in.read(first.data(), first.size());
  std::uint32_t type = 0;
  std::memcpy(&type, first.data(), sizeof type);
  return in.gcount() == 4 ? type : 0;
}

}  // namespace

bool is_capture(const std::string& file) { return first_word(file) == kSectionBlock; }

bool is_classic_capture(const std::string& file) {
  // Magic numbers of files with microseconds and of files with nanoseconds, in both byte orders.
  constexpr std::array<std::uint32_t, 4> magic{0xA1B2C3D4, 0xD4C3B2A1, 0xA1B23C4D, 0x4D3CB2A1};
  return std::find(magic.begin(), magic.end(), first_word(file)) != magic.end();
}

CaptureClaims read_claims(std::istream& in, const std::string& name) { return Reader(in, name).read(); }

}  // namespace mltcp::capture
