// Writes the blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of this machine, with times in
// nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::capture {

// Types of blocks, the number from which readers detect the byte order of a section, and the code of the option with a
// packet's flags.
constexpr std::uint32_t kSectionBlock = 0x0A0D0D0A;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kStatisticsBlock = 5;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrder = 0x1A2B3C4D;
constexpr std::uint16_t kPacketFlags = 2;

/// The first header in the packets of an interface. The values are from the registry of link-layer header types.
enum class LinkType : std::uint16_t {
  ethernet = 1,
  ip = 101,  ///< an IPv4 or IPv6 header
};

struct InterfaceInfo {
  std::string name;
  std::string description;
  LinkType link = LinkType::ip;
};

/// Direction of a packet, as in the flags of its block.
enum class Direction : std::uint8_t { in = 1, out = 2 };

struct InterfaceStatistics {
  Nanos start;
  Nanos end;
  std::uint64_t seen = 0;
  std::uint64_t dropped = 0;
};

// Each of the following functions appends one block to `out`.

void append_section(std::vector<std::byte>& out, std::string_view application, std::string_view comment);
void append_interface(std::vector<std::byte>& out, const InterfaceInfo& info, std::uint32_t snap_bytes);
/// Appends a packet of `original_bytes` bytes. Its first bytes are `header` followed by `data`.
void append_packet(std::vector<std::byte>& out, std::uint32_t interface, Nanos time, Direction direction,
                   std::span<const std::byte> header, std::span<const std::byte> data, std::uint32_t original_bytes);
void append_statistics(std::vector<std::byte>& out, std::uint32_t interface, const InterfaceStatistics& statistics);

}  // namespace mltcp::capture
