#include "mltcp/lab/experiment/traffic/faulty_io.h"

#include <algorithm>
#include <cstring>

#include "mltcp/lab/experiment/traffic/ledger.h"
#include "mltcp/transport/crc32c.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

// Offsets of fields in a packet header (wire.h).
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kCoveredAt = 2;
constexpr std::size_t kChecksumAt = 4;
constexpr std::size_t kTagAt = 8;
constexpr std::size_t kConnectionAt = 16;

bool has_flag(std::span<const std::byte> packet, std::uint8_t flag) {
  return packet.size() >= wire::kHeaderBytes && (std::to_integer<unsigned>(packet[kFlagsAt]) & flag) != 0;
}

std::size_t covered_bytes(std::span<const std::byte> packet) {
  std::uint16_t covered = 0;
  if (packet.size() >= wire::kHeaderBytes) std::memcpy(&covered, packet.data() + kCoveredAt, sizeof covered);
  return std::min<std::size_t>(covered, packet.size());
}

void set_checksum(std::vector<std::byte>& packet) {
  std::memset(packet.data() + kChecksumAt, 0, 4);
  const std::size_t bytes = has_flag(packet, wire::full_integrity) ? packet.size() : covered_bytes(packet);
  const std::uint32_t checksum = crc32c(0, std::span(packet).first(bytes));
  std::memcpy(packet.data() + kChecksumAt, &checksum, sizeof checksum);
}

}  // namespace

FaultyIo::FaultyIo(PacketIo& below, const Limits& limits, const Random& random)
    : below_(below), limits_(limits), random_(random), burst_(below.limits().burst) {
  // Reserves memory, so that send() does not allocate.
  sending_.reserve(limits_.burst);
}

void FaultyIo::set_time(Nanos now) {
  now_ = now;
  while (!kept_.empty() && kept_.front().until <= now_) {
    release(kept_.front());
    kept_.pop_front();
  }
  while (!delayed_.empty() && delayed_.begin()->first <= now_)
    ready_.push_back(std::move(delayed_.extract(delayed_.begin()).mapped()));
}

void FaultyIo::release(const Kept& kept) {
  require(crc32c(0, kept.payload) == kept.checksum,
          "a message's buffer was returned to the program before the datapath had read it");
  require(kept.hold->packets.fetch_sub(1) > 0, "a payload is released twice");
}

void FaultyIo::forget() {
  for (const Kept& kept : kept_) release(kept);
  kept_.clear();
  ready_.clear();
  delayed_.clear();
  lent_.clear();
}

Nanos FaultyIo::deadline() const {
  Nanos next = below_.deadline();
  if (!ready_.empty()) next = std::min(next, now_);
  if (!delayed_.empty()) next = std::min(next, delayed_.begin()->first);
  if (!kept_.empty()) next = std::min(next, kept_.front().until);
  if (blocked_) next = std::min(next, now_ + kRetry);
  return next;
}

bool FaultyIo::take_burst() {
  const std::size_t count = below_.receive(burst_);
  for (const RxPacket& packet : std::span(burst_).first(count)) take(packet);
  if (count > 0 && random_.chance(faults_.forgery)) forge();
  return count == burst_.size();
}

void FaultyIo::absorb() {
  while (take_burst()) continue;
}

std::size_t FaultyIo::receive(std::span<RxPacket> out) {
  lent_.clear();  // frees the packets of the last call, so that a sanitizer detects a read after this
  while (ready_.size() < out.size() && take_burst()) continue;
  const std::size_t count = std::min(out.size(), ready_.size());
  lent_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Packet& packet = lent_.emplace_back(std::move(ready_.front()));
    ready_.pop_front();
    out[i] = {.source = packet.source,
              .bytes = packet.bytes,
              .ecn = packet.ecn,
              .priority = packet.priority,
              .hops = packet.hops,
              .tail = packet.tail};
  }
  return count;
}

void FaultyIo::take(const RxPacket& arrived) {
  ++counts_.received;
  Packet packet{.source = arrived.source,
                .bytes = {arrived.bytes.begin(), arrived.bytes.end()},
                .tail = {arrived.tail.begin(), arrived.tail.end()},
                .ecn = arrived.ecn,
                .priority = arrived.priority,
                .hops = arrived.hops};
  if (random_.below(16) == 0) {
    Packet& seen = seen_[next_seen_++ % seen_.size()];
    seen = packet;
    seen.bytes.insert(seen.bytes.end(), seen.tail.begin(), seen.tail.end());
    seen.tail.clear();
  }
  if (random_.chance(faults_.loss)) {
    ++counts_.lost;
    return;
  }
  if (random_.chance(faults_.duplication)) {
    ++counts_.doubled;
    // One half of the copies arrive at once, the others after up to 50 ms.
    const Nanos at = random_.below(2) == 0 ? now_ : now_ + Nanos(static_cast<std::int64_t>(random_.below(50'000'000)));
    delayed_.emplace(at, packet);
  }
  if (packet.ecn != Ecn::not_ect && random_.chance(faults_.marking)) {
    ++counts_.marked;
    packet.ecn = Ecn::ce;
  }
  if (random_.chance(faults_.corruption)) damage(packet);
  if (faults_.max_delay.count > 0 && random_.chance(faults_.delaying)) {
    ++counts_.delayed;
    const auto delay = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(faults_.max_delay.count)));
    delayed_.emplace(now_ + Nanos(delay), std::move(packet));
    return;
  }
  ready_.push_back(std::move(packet));
}

void FaultyIo::damage(Packet& packet) {
  ++counts_.damaged;
  packet.bytes.insert(packet.bytes.end(), packet.tail.begin(), packet.tail.end());
  packet.tail.clear();
  const bool all = has_flag(packet.bytes, wire::sealed) || has_flag(packet.bytes, wire::full_integrity);
  const std::size_t guarded = all ? packet.bytes.size() : covered_bytes(packet.bytes);
  if (guarded == 0) return;
  if (random_.below(8) == 0) {  // truncates the packet within its protected bytes, so that the transport can detect it
    packet.bytes.resize(random_.below(guarded));
    return;
  }
  packet.bytes[random_.below(guarded)] ^= static_cast<std::byte>(1U << random_.below(8));
}

void FaultyIo::forge() {
  Packet packet = seen_[random_.below(seen_.size())];
  if (packet.bytes.size() < wire::kHeaderBytes) return;
  ++counts_.forged;
  const std::uint64_t act = random_.below(6);
  if (act == 0) {  // replays the packet
    ready_.push_back(std::move(packet));
    return;
  }
  if (act == 1) {  // invents all bytes; only magic number, size and checksum are valid
    packet.bytes.resize(random_.below(limits_.max_packet_bytes));
    for (std::byte& byte : packet.bytes) byte = static_cast<std::byte>(random_.next());
    if (packet.bytes.size() < wire::kHeaderBytes) packet.bytes.resize(wire::kHeaderBytes);
    packet.bytes[0] = std::byte{wire::magic};
    const auto size = static_cast<std::uint16_t>(packet.bytes.size());
    std::memcpy(packet.bytes.data() + kCoveredAt, &size, sizeof size);
    set_checksum(packet.bytes);
    ready_.push_back(std::move(packet));
    return;
  }
  // Changes some bytes of the packet.
  for (std::uint64_t changes = 1 + random_.below(4); changes > 0; --changes) {
    const bool in_header = random_.below(2) == 0;
    const std::size_t at =
        in_header ? kTagAt + random_.below(wire::kHeaderBytes - kTagAt) : random_.below(packet.bytes.size());
    packet.bytes[at] = static_cast<std::byte>(random_.next());
  }
  packet.bytes[0] = std::byte{wire::magic};
  if (!has_flag(packet.bytes, wire::sealed)) {
    std::uint32_t connection = 0;
    std::memcpy(&connection, packet.bytes.data() + kConnectionAt, sizeof connection);
    // The forger knows the tag of a CONNECT, because this tag is part of the packet's contents. For any other packet it
    // draws a random tag.
    if (connection != 0 || act == 2)
      for (std::size_t i = 0; i < 8; ++i) packet.bytes[kTagAt + i] = static_cast<std::byte>(random_.next());
    if (covered_bytes(packet.bytes) >= wire::kHeaderBytes) set_checksum(packet.bytes);
  }
  ready_.push_back(std::move(packet));
}

void FaultyIo::watch_epoch(const TxPacket& packet) {
  if (!has_flag(packet.header, wire::sealed) || has_flag(packet.header, wire::clear)) return;
  std::uint32_t connection = 0;
  std::memcpy(&connection, packet.header.data() + kConnectionAt, sizeof connection);
  const bool bit = has_flag(packet.header, wire::epoch);
  bool& before = epoch_bits_[std::uint64_t{connection} << 32 ^ AddressHash{}(*packet.destination)];
  if (before != bit) ++counts_.epochs;
  before = bit;
}

std::size_t FaultyIo::send(std::span<const TxPacket> packets) {
  blocked_ = random_.chance(faults_.refusal);
  if (blocked_) {
    ++counts_.refused;
    packets = packets.first(random_.below(packets.size()));
    if (packets.empty()) return 0;
  }
  sending_.assign(packets.begin(), packets.end());
  for (TxPacket& packet : sending_) packet.hold = nullptr;
  const std::size_t count = below_.send(sending_);
  for (const TxPacket& packet : packets.first(count)) {
    watch_epoch(packet);
    if (packet.hold == nullptr) continue;
    ++counts_.kept;
    packet.hold->packets.fetch_add(1);
    const Nanos until = now_ + Nanos(static_cast<std::int64_t>(random_.below(300'000)));
    kept_.push_back({packet.payload, packet.hold, crc32c(0, packet.payload),
                     kept_.empty() ? until : std::max(until, kept_.back().until)});
  }
  return count;
}

}  // namespace mltcp::experiment
