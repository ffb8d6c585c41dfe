// Reads and writes address blobs; see address.h.
#include "mltcp/endpoint/address.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/transport/crc32c.h"

namespace mltcp::endpoint {
namespace {

constexpr std::uint32_t kMagic = 0x4D4C5441;  // "MLTA"
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kSummed = 44;

void put(std::byte* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) at[i] = static_cast<std::byte>(value);
}
std::uint64_t get(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<std::uint8_t>(at[i]);
  return value;
}

}  // namespace

EndpointAddress::EndpointAddress(const Address& base, std::uint16_t shards, const Id& id) noexcept
    : base_(base), shards_(shards), size_(kSizeV1), id_(id) {
  put(blob_.data(), kMagic, 4);
  put(&blob_[4], kVersion, 1);
  put(&blob_[5], base.is_v4() ? 4 : 6, 1);
  put(&blob_[6], shards, 2);
  put(&blob_[8], base.port, 2);
  for (std::size_t i = 0; i < 16; ++i) {
    blob_[12 + i] = static_cast<std::byte>(base.ip[i]);
    blob_[28 + i] = static_cast<std::byte>(id[i]);
  }
  put(&blob_[kSummed], crc32c(0, std::span(blob_).first(kSummed)), 4);
}

Code EndpointAddress::parse(std::span<const std::byte> blob, EndpointAddress& out, std::string* why) {
  const auto refuse = [&](Code code, std::string text) {
    if (why != nullptr) *why = std::move(text);
    return code;
  };
  constexpr std::size_t kFixedBytes = 5;
  if (blob.size() < kFixedBytes)
    return refuse(
        Code::bad_address,
        fmt::format("the address has only {} bytes; pass all bytes that the peer's address() returned", blob.size()));
  if (get(blob.data(), 4) != kMagic)
    return refuse(Code::bad_address,
                  "these bytes are not an endpoint's address; pass the bytes that address() returned");
  if (const auto version = get(&blob[4], 1); version != kVersion)
    return refuse(
        Code::version,
        fmt::format("the address has format {}, but this build needs format {}; use the same build on both sides",
                    version, kVersion));
  if (blob.size() != kSizeV1)
    return refuse(Code::bad_address,
                  fmt::format("the address has {} bytes instead of {}; pass all its bytes, and nothing else",
                              blob.size(), kSizeV1));
  if (get(&blob[kSummed], 4) != crc32c(0, blob.first(kSummed)))
    return refuse(Code::bad_address, "the address is damaged; check how it is passed between the processes");
  Address base;
  Id id;
  for (std::size_t i = 0; i < 16; ++i) {
    base.ip[i] = static_cast<std::uint8_t>(blob[12 + i]);
    id[i] = static_cast<std::uint8_t>(blob[28 + i]);
  }
  base.port = static_cast<std::uint16_t>(get(&blob[8], 2));
  const auto family = get(&blob[5], 1);
  const auto shards = static_cast<std::uint16_t>(get(&blob[6], 2));
  const bool wildcard = std::all_of(base.ip.begin(), base.ip.end(), [](std::uint8_t byte) { return byte == 0; }) ||
                        (base.is_v4() && base.v4_ip() == 0);
  if (family != (base.is_v4() ? 4U : 6U) || shards == 0 || base.port == 0 || base.port + shards - 1 > 65'535 ||
      wildcard)
    return refuse(Code::bad_address,
                  "the address has impossible values; use the bytes that address() of an endpoint returned");
  out = EndpointAddress(base, shards, id);
  return Code::ok;
}

std::string to_text(const EndpointAddress& address) {
  if (address.empty()) return "no address";
  const auto& id = address.id();
  return fmt::format("{} ({} shard{}, endpoint {:02x}{:02x}{:02x}{:02x})", to_text(address.base()), address.shards(),
                     address.shards() == 1 ? "" : "s", id[0], id[1], id[2], id[3]);
}

}  // namespace mltcp::endpoint
