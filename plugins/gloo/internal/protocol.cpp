#include "mltcp/plugins/gloo/internal/protocol.h"

#include <algorithm>
#include <cstring>

#include "gloo/common/error.h"
#include "gloo/config.h"
#include "gloo/transport/address.h"

namespace gloo::transport::mltcp {
namespace {

constexpr std::uint32_t kHelloMagic = 0x4D4C4748;    // "MLGH"
constexpr std::uint32_t kAddressMagic = 0x4D4C4741;  // "MLGA"
constexpr std::uint32_t kFormat = 2;
constexpr std::size_t kMaxEndpointBytes = 64;
static_assert(kPairAddressBytes <= Address::kMaxByteSize);

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}
  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }

 private:
  void number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = bytes; i-- > 0; value >>= 8) out_[at_ + i] = static_cast<std::byte>(value & 0xFF);
    at_ += bytes;
  }
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

/// Reads numbers and bytes. The caller has checked that there are enough bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }

 private:
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(in_[at_ + i]);
    at_ += bytes;
    return value;
  }
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

}  // namespace

void append_record(std::vector<std::byte>& out, Record record, std::span<const std::byte> data) {
  const std::size_t at = out.size();
  out.resize(at + kRecordBytes + padded(data.size()));
  Writer writer(std::span<std::byte>(out).subspan(at));
  writer.u32(static_cast<std::uint32_t>(record.kind));
  writer.u32(static_cast<std::uint32_t>(data.size()));
  writer.u64(record.slot);
  writer.u64(record.id);
  writer.u64(record.length);
  writer.u64(record.offset);
  if (!data.empty()) std::memcpy(out.data() + at + kRecordBytes, data.data(), data.size());
}

bool take_record(std::span<const std::byte>& in, Record& record, std::span<const std::byte>& data) {
  if (in.size() < kRecordBytes) return false;
  Reader reader(in);
  record.kind = static_cast<Record::Kind>(reader.u32());
  record.inline_bytes = reader.u32();
  record.slot = reader.u64();
  record.id = reader.u64();
  record.length = reader.u64();
  record.offset = reader.u64();
  if (record.kind < Record::Kind::receive_ready || record.kind > Record::Kind::failure) return false;
  if (padded(record.inline_bytes) > in.size() - kRecordBytes) return false;
  if (record.kind == Record::Kind::write_inline && record.length != record.inline_bytes) return false;
  data = in.subspan(kRecordBytes, record.inline_bytes);
  in = in.subspan(kRecordBytes + padded(record.inline_bytes));
  return true;
}

std::size_t whole_records(std::span<const std::byte> records) {
  std::size_t bytes = 0;
  while (bytes + kRecordBytes <= records.size()) {
    Reader reader(records.subspan(bytes + 4));
    const std::size_t next = kRecordBytes + padded(reader.u32());
    if (bytes + next > kFrameBytes) break;
    bytes += next;
  }
  return bytes;
}

std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello) {
  std::array<std::byte, kHelloBytes> out{};
  Writer writer(out);
  writer.u32(kHelloMagic);
  writer.u32(kFormat);
  writer.u64(hello.to);
  writer.u64(hello.from);
  writer.u32(hello.rank);
  return out;
}

std::optional<Hello> parse_hello(std::span<const std::byte> in) {
  if (in.size() != kHelloBytes) return std::nullopt;
  Reader reader(in);
  if (reader.u32() != kHelloMagic || reader.u32() != kFormat) return std::nullopt;
  Hello hello;
  hello.to = reader.u64();
  hello.from = reader.u64();
  hello.rank = reader.u32();
  return hello;
}

std::vector<char> to_bytes(const PairAddress& address) {
  std::array<std::byte, kPairAddressBytes> out{};
  Writer writer(out);
  writer.u32(kAddressMagic);
  writer.u32(kFormat);
  writer.u64(address.id);
  writer.u32(address.rank);
  writer.u32(address.gloo_version);
  writer.u32(static_cast<std::uint32_t>(address.endpoint.size()));
  constexpr std::size_t head = kPairAddressBytes - kMaxEndpointBytes;
  std::memcpy(out.data() + head, address.endpoint.data(), std::min(address.endpoint.size(), kMaxEndpointBytes));
  std::vector<char> bytes(out.size());
  std::memcpy(bytes.data(), out.data(), out.size());
  return bytes;
}

PairAddress parse_pair_address(std::span<const char> in) {
  const auto bytes = std::as_bytes(in);
  Reader reader(bytes);
  if (bytes.size() != kPairAddressBytes || reader.u32() != kAddressMagic)
    throw InvalidOperationException(
        "the address of a pair is not from the MLTCP transport; give all ranks the same transport");
  if (const std::uint32_t format = reader.u32(); format != kFormat)
    throw InvalidOperationException("the address of a pair has format " + std::to_string(format) + " and not " +
                                    std::to_string(kFormat) + "; install the same MLTCP on all hosts");
  PairAddress out;
  out.id = reader.u64();
  out.rank = reader.u32();
  out.gloo_version = reader.u32();
  const std::uint32_t size = reader.u32();
  if (size > kMaxEndpointBytes)
    throw InvalidOperationException("the address of a pair is damaged; pass all its bytes unchanged");
  if (out.gloo_version != GLOO_VERSION)
    throw InvalidOperationException("rank " + std::to_string(out.rank) + " has Gloo " +
                                    std::to_string(out.gloo_version) + " and this one " + std::to_string(GLOO_VERSION) +
                                    "; install the same Gloo on all hosts");
  const auto blob = bytes.subspan(kPairAddressBytes - kMaxEndpointBytes, size);
  out.endpoint.assign(blob.begin(), blob.end());
  return out;
}

}  // namespace gloo::transport::mltcp
