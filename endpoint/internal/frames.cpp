// Hellos and control frames; see frames.h.
#include "mltcp/endpoint/internal/frames.h"

#include <algorithm>
#include <cstring>

namespace mltcp::endpoint {
namespace {

constexpr std::uint32_t kMagic = 0x4D4C4548;  // "MLEH"
constexpr Bytes kLongestMessage = Bytes{1} << 32;

template <typename T>
void put(std::byte* at, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(static_cast<std::uint64_t>(value) >> 8))
    at[i] = static_cast<std::byte>(value);
}
template <typename T>
T get(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<std::uint8_t>(at[i]);
  return static_cast<T>(value);
}

}  // namespace

void write(const Hello& hello, HelloBuffer& out) noexcept {
  out.fill(std::byte{0});
  put(out.data(), kMagic);
  put(&out[4], Hello::kVersionNow);
  put(&out[5], static_cast<std::uint8_t>(hello.kind));
  put(&out[6], static_cast<std::uint8_t>(hello.is_data ? 1 : 0));
  put(&out[7], static_cast<std::uint8_t>(hello.verdict));
  put(&out[8], hello.token);
  std::memcpy(&out[16], hello.meant.data(), hello.meant.size());
  put(&out[32], hello.eager_limit);
  put(&out[36], hello.unexpected_messages);
  const auto blob = hello.from.bytes();
  put(&out[40], static_cast<std::uint8_t>(blob.size()));
  std::copy(blob.begin(), blob.end(), out.begin() + 48);
}

Verdict parse(std::span<const std::byte> bytes, Hello& out) {
  if (bytes.size() < 5 || get<std::uint32_t>(bytes.data()) != kMagic) return Verdict::malformed;
  if (get<std::uint8_t>(&bytes[4]) != Hello::kVersionNow) return Verdict::version;
  if (bytes.size() != Hello::bytes) return Verdict::malformed;
  const auto kind = get<std::uint8_t>(&bytes[5]);
  const auto part = get<std::uint8_t>(&bytes[6]);
  const auto verdict = get<std::uint8_t>(&bytes[7]);
  if (kind < 1 || kind > 2 || part > 1 || (part == 1 && kind != 2) || verdict > 5) return Verdict::malformed;
  out.kind = static_cast<ConnectionKind>(kind);
  out.is_data = part == 1;
  out.verdict = static_cast<Verdict>(verdict);
  out.token = get<std::uint64_t>(&bytes[8]);
  std::memcpy(out.meant.data(), &bytes[16], out.meant.size());
  out.eager_limit = get<std::uint32_t>(&bytes[32]);
  out.unexpected_messages = get<std::uint32_t>(&bytes[36]);
  if (out.verdict != Verdict::fine) return Verdict::fine;
  const auto blob = get<std::uint8_t>(&bytes[40]);
  if (blob > EndpointAddress::kMaxBytes || out.unexpected_messages == 0) return Verdict::malformed;
  switch (EndpointAddress::parse(bytes.subspan(48, blob), out.from)) {
    case Code::ok:
      return Verdict::fine;
    case Code::version:
      return Verdict::version;
    default:
      return Verdict::malformed;
  }
}

void write(const Frame& frame, std::span<std::byte, Frame::kHeaderBytes> out) noexcept {
  put(out.data(), static_cast<std::uint32_t>(static_cast<std::uint32_t>(frame.type) << 24));
  put(&out[4], frame.credit);
  put(&out[8], frame.tag);
  put(&out[16], frame.id);
  put(&out[24], frame.length);
}

std::uint64_t peek_tag(std::span<const std::byte> bytes) noexcept {
  return bytes.size() < Frame::kHeaderBytes ? 0 : get<std::uint64_t>(&bytes[8]);
}

bool parse(std::span<const std::byte> bytes, Frame& out) noexcept {
  if (bytes.size() < Frame::kHeaderBytes) return false;
  const auto first = get<std::uint32_t>(bytes.data());
  const std::uint32_t type = first >> 24;
  if ((first & 0xFFFFFFU) != 0 || type < 1 || type > 9) return false;
  out.type = static_cast<FrameType>(type);
  out.credit = get<std::uint32_t>(&bytes[4]);
  out.tag = get<std::uint64_t>(&bytes[8]);
  out.id = get<std::uint64_t>(&bytes[16]);
  out.length = get<std::uint64_t>(&bytes[24]);
  if (out.length > kLongestMessage) return false;
  return bytes.size() - Frame::kHeaderBytes == (out.type == FrameType::eager ? out.length : 0);
}

}  // namespace mltcp::endpoint
