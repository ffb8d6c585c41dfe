// Writes the blocks of a pcapng file (see pcapng.h).
#include "mltcp/transport/capture/internal/pcapng.h"

#include <algorithm>
#include <cstring>

namespace mltcp::capture {
namespace {

// Codes of options.
constexpr std::uint16_t kEnd = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kSectionApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceDescription = 3;
constexpr std::uint16_t kInterfaceResolution = 9;
constexpr std::uint16_t kStatisticsStart = 2;
constexpr std::uint16_t kStatisticsEnd = 3;
constexpr std::uint16_t kStatisticsReceived = 4;
constexpr std::uint16_t kStatisticsDropped = 5;

constexpr std::byte kNanoseconds{9};
constexpr std::size_t kLongestText = 4096;

/// A block under construction at the end of `out`. The destructor stores the block's length after its type and again at
/// its end.
class Block {
 public:
  Block(std::vector<std::byte>& out, std::uint32_t type) : out_(out), start_(out.size()) {
    put(type);
    put(std::uint32_t{0});
  }
  ~Block() {
    const auto length = static_cast<std::uint32_t>(out_.size() - start_ + sizeof(std::uint32_t));
    put(length);
    std::memcpy(out_.data() + start_ + sizeof(std::uint32_t), &length, sizeof length);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  template <typename T>
  void put(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void bytes(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void pad() { out_.resize(start_ + ((out_.size() - start_ + 3) & ~std::size_t{3})); }
  void time(Nanos time) {
    const auto count = static_cast<std::uint64_t>(time.count);
    put(static_cast<std::uint32_t>(count >> 32));
    put(static_cast<std::uint32_t>(count));
  }
  void option(std::uint16_t code, std::span<const std::byte> value) {
    put(code);
    put(static_cast<std::uint16_t>(value.size()));
    bytes(value);
    pad();
  }
  void text(std::uint16_t code, std::string_view text) {
    if (!text.empty()) option(code, std::as_bytes(std::span(text.substr(0, kLongestText))));
  }
  template <typename T>
  void number(std::uint16_t code, T value) {
    option(code, std::as_bytes(std::span(&value, 1)));
  }
  void end_of_options() {
    put(kEnd);
    put(std::uint16_t{0});
  }

 private:
  std::vector<std::byte>& out_;
  const std::size_t start_;
};

}  // namespace

void append_section(std::vector<std::byte>& out, std::string_view application, std::string_view comment) {
  Block block(out, kSectionBlock);
  block.put(kByteOrder);
  block.put(std::uint16_t{1});  // version 1.0
  block.put(std::uint16_t{0});
  block.put(~std::uint64_t{0});  // the length of the section is not specified
  block.text(kComment, comment);
  block.text(kSectionApplication, application);
  block.end_of_options();
}

void append_interface(std::vector<std::byte>& out, const InterfaceInfo& info, std::uint32_t snap_bytes) {
  Block block(out, kInterfaceBlock);
  block.put(static_cast<std::uint16_t>(info.link));
  block.put(std::uint16_t{0});
  block.put(snap_bytes);
  block.text(kInterfaceName, info.name);
  block.text(kInterfaceDescription, info.description);
  block.option(kInterfaceResolution, std::span(&kNanoseconds, 1));
  block.end_of_options();
}

void append_packet(std::vector<std::byte>& out, std::uint32_t interface, Nanos time, Direction direction,
                   std::span<const std::byte> header, std::span<const std::byte> data, std::uint32_t original_bytes) {
  Block block(out, kPacketBlock);
  block.put(interface);
  block.time(time);
  block.put(static_cast<std::uint32_t>(header.size() + data.size()));
  block.put(original_bytes);
  block.bytes(header);
  block.bytes(data);
  block.pad();
  block.number(kPacketFlags, static_cast<std::uint32_t>(direction));
  block.end_of_options();
}

void append_statistics(std::vector<std::byte>& out, std::uint32_t interface, const InterfaceStatistics& statistics) {
  Block block(out, kStatisticsBlock);
  block.put(interface);
  block.time(statistics.end);
  const auto time = [&](std::uint16_t code, Nanos at) {
    const auto count = static_cast<std::uint64_t>(at.count);
    block.number(code, std::uint64_t{count << 32 | count >> 32});  // the upper 32 bits come first, as in packet blocks
  };
  time(kStatisticsStart, statistics.start);
  time(kStatisticsEnd, statistics.end);
  block.number(kStatisticsReceived, statistics.seen);
  block.number(kStatisticsDropped, statistics.dropped);
  block.end_of_options();
}

}  // namespace mltcp::capture
