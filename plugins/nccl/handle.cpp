#include "mltcp/plugins/nccl/handle.h"

#include <algorithm>
#include <cstring>

#include "mltcp/transport/crc32c.h"

namespace mltcp::nccl {
namespace {

constexpr std::array<std::byte, 5> kBegin{std::byte{'M'}, std::byte{'L'}, std::byte{'T'}, std::byte{'N'}, std::byte{1}};
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kTokenAt = 6;
constexpr std::size_t kLengthAt = 14;
constexpr std::size_t kAddressAt = 16;
constexpr std::size_t kChecksumAt = kAddressAt + endpoint::EndpointAddress::kMaxBytes;
constexpr std::size_t kAttemptAt = 88;
constexpr std::size_t kHelloTokenAt = 8;
static_assert(kChecksumAt == 80 && kAttemptAt + 8 <= kHandleBytes);

void put(std::span<std::byte> to, std::uint64_t value) noexcept {
  for (std::size_t i = to.size(); i-- > 0; value >>= 8) to[i] = static_cast<std::byte>(value);
}

std::uint64_t get(std::span<const std::byte> from) noexcept {
  std::uint64_t value = 0;
  for (const std::byte byte : from) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

bool has_magic(std::span<const std::byte> bytes) noexcept {
  return std::equal(kBegin.begin(), kBegin.begin() + kVersionAt, bytes.begin());
}

}  // namespace

void write_handle(std::span<std::byte, kHandleBytes> out, const endpoint::EndpointAddress& address,
                  std::uint64_t token) noexcept {
  std::ranges::fill(out, std::byte{0});
  std::ranges::copy(kBegin, out.begin());
  put(out.subspan(kTokenAt, 8), token);
  const auto blob = address.bytes();
  put(out.subspan(kLengthAt, 2), blob.size());
  std::ranges::copy(blob, out.begin() + kAddressAt);
  put(out.subspan(kChecksumAt, 4), crc32c(0, out.first(kChecksumAt)));
}

const char* read_handle(std::span<const std::byte, kHandleBytes> handle, endpoint::EndpointAddress& address,
                        std::uint64_t& token) {
  if (!has_magic(handle)) return "the peer's handle is not from MLTCP; let all ranks use this plug-in (NCCL_NET=MLTCP)";
  if (handle[kVersionAt] != kBegin[kVersionAt])
    return "the peer's handle is from another version of the plug-in; install the same version on all hosts";
  const std::size_t length = get(handle.subspan(kLengthAt, 2));
  if (get(handle.subspan(kChecksumAt, 4)) != crc32c(0, handle.first(kChecksumAt)) ||
      length > endpoint::EndpointAddress::kMaxBytes)
    return "the peer's handle was damaged in transit; report it, with the log of NCCL_DEBUG=INFO";
  const endpoint::Code code = endpoint::EndpointAddress::parse(handle.subspan(kAddressAt, length), address);
  if (code != endpoint::Code::ok)
    return "the address in the peer's handle can't be read; install the same version on all hosts";
  token = get(handle.subspan(kTokenAt, 8));
  return nullptr;
}

std::uint64_t attempt_in(std::span<const std::byte, kHandleBytes> handle) noexcept {
  return get(handle.subspan(kAttemptAt, 8));
}

void note_attempt(std::span<std::byte, kHandleBytes> handle, std::uint64_t attempt) noexcept {
  put(handle.subspan(kAttemptAt, 8), attempt);
}

void write_hello(Hello& out, std::uint64_t token) noexcept {
  out.fill(std::byte{0});
  std::ranges::copy(kBegin, out.begin());
  put(std::span(out).subspan(kHelloTokenAt, 8), token);
}

bool read_hello(std::span<const std::byte> hello, std::uint64_t& token) noexcept {
  if (hello.size() != kHelloBytes || !std::equal(kBegin.begin(), kBegin.end(), hello.begin())) return false;
  token = get(hello.subspan(kHelloTokenAt, 8));
  return true;
}

}  // namespace mltcp::nccl
