// Fuzzes the reader of the wire format. The target reads a packet, writes it, and reads it again. Both readings must
// give the same packet.
//
// Input: a byte of options, then the packet.
#include <algorithm>
#include <cstring>
#include <optional>

#include "mltcp/transport/wire.h"
#include "seal.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

struct Packet {
  wire::Header header;
  struct Part {
    wire::Frame frame;
    Bytes data;
  };
  std::vector<Part> parts;
  bool whole = false;  ///< whether all frames were read without an error
};

std::optional<Packet> read(std::span<const std::byte> bytes, std::span<const std::byte> tail,
                           std::uint32_t virtual_bytes) {
  Packet packet;
  wire::Reader reader;
  if (reader.begin(bytes, tail, virtual_bytes, packet.header) != wire::ParseError::none) return std::nullopt;
  wire::Frame frame;
  std::size_t data = 0;
  while (reader.next(frame)) {
    Packet::Part& part = packet.parts.emplace_back();
    part.frame = frame;
    if (frame.type != wire::FrameType::data) continue;
    if (frame.data.bytes != nullptr) part.data.assign(frame.data.bytes, frame.data.bytes + frame.data.length);
    data += frame.data.length;
  }
  require(data <= bytes.size() + tail.size() + virtual_bytes, "more data than the packet is long");
  packet.whole = reader.error() == wire::ParseError::none;
  if (packet.whole) require(!reader.next(frame), "a frame behind the last");
  return packet;
}

bool same(const wire::EcnCounts& a, const wire::EcnCounts& b) {
  return a.ect0_packets == b.ect0_packets && a.ect1_packets == b.ect1_packets && a.ce_packets == b.ce_packets &&
         a.ce_bytes == b.ce_bytes;
}

bool same(const wire::AckFrame& a, const wire::AckFrame& b) {
  return a.delay_ns == b.delay_ns && a.hops == b.hops && same(a.ecn, b.ecn) && a.has_credit == b.has_credit &&
         a.credit == b.credit && a.has_whole == b.has_whole && a.whole == b.whole && a.marks == b.marks &&
         a.range_count == b.range_count &&
         std::equal(a.ranges.begin(), a.ranges.begin() + a.range_count, b.ranges.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first && x.last == y.last; });
}

bool same(const Packet::Part& a, const Packet::Part& b) {
  if (a.frame.type != b.frame.type) return false;
  switch (a.frame.type) {
    case wire::FrameType::data:
      return a.frame.data.last == b.frame.data.last && a.frame.data.message == b.frame.data.message &&
             a.frame.data.offset == b.frame.data.offset && a.frame.data.length == b.frame.data.length &&
             a.data == b.data;
    case wire::FrameType::ack:
      return same(a.frame.ack, b.frame.ack);
    case wire::FrameType::credit:
      return a.frame.credit.messages == b.frame.credit.messages && a.frame.credit.final == b.frame.credit.final;
    case wire::FrameType::connect:
    case wire::FrameType::accept:
      return a.frame.connect.version == b.frame.connect.version &&
             a.frame.connect.max_packet == b.frame.connect.max_packet &&
             a.frame.connect.source_connection == b.frame.connect.source_connection &&
             a.frame.connect.credit == b.frame.connect.credit && a.frame.connect.tag == b.frame.connect.tag &&
             a.frame.connect.lowest == b.frame.connect.lowest && a.frame.connect.highest == b.frame.connect.highest &&
             a.frame.connect.paths == b.frame.connect.paths;
    case wire::FrameType::close:
      return a.frame.close == b.frame.close;
    case wire::FrameType::ping:
      return true;
    case wire::FrameType::trimmed:
      return a.frame.trimmed.largest == b.frame.trimmed.largest && a.frame.trimmed.map == b.frame.trimmed.map;
    case wire::FrameType::padding:
      return a.frame.padding == b.frame.padding;
    case wire::FrameType::retry:
    case wire::FrameType::token:
      return a.frame.cookie == b.frame.cookie;
    case wire::FrameType::reset:
      return a.frame.reset == b.frame.reset;
    case wire::FrameType::key:
      return a.frame.key.id == b.frame.key.id && a.frame.key.random == b.frame.key.random;
  }
  return false;
}

bool same(const Packet& a, const Packet& b) {
  return a.header.flags == b.header.flags && a.header.connection == b.header.connection &&
         a.header.span == b.header.span && a.header.packet_number == b.header.packet_number &&
         a.header.tag == b.header.tag && a.header.job.job == b.header.job.job &&
         a.header.job.iteration == b.header.job.iteration && a.header.job.progress == b.header.job.progress &&
         a.whole == b.whole &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

void write(const Packet::Part& part, wire::Writer& writer) {
  switch (part.frame.type) {
    case wire::FrameType::data:
      writer.data(part.frame.data);
      writer.copy(part.data.data(), part.data.size());
      return;
    case wire::FrameType::ack:
      return writer.ack(part.frame.ack);
    case wire::FrameType::credit:
      return writer.credit(part.frame.credit);
    case wire::FrameType::connect:
      return writer.connect(part.frame.connect);
    case wire::FrameType::accept:
      return writer.accept(part.frame.connect);
    case wire::FrameType::close:
      return writer.close(part.frame.close);
    case wire::FrameType::ping:
      return writer.ping();
    case wire::FrameType::trimmed:
      return writer.trimmed(part.frame.trimmed);
    case wire::FrameType::padding:
      return writer.padding(part.frame.padding);
    case wire::FrameType::retry:
      return writer.retry(part.frame.cookie);
    case wire::FrameType::token:
      return writer.token(part.frame.cookie);
    case wire::FrameType::reset:
      return writer.reset(part.frame.reset);
    case wire::FrameType::key:
      return writer.key(part.frame.key);
  }
}

}  // namespace

void fuzz_wire(Input input) {
  Program program(input);
  const std::uint8_t choices = program.byte();
  const std::uint32_t virtual_bytes = (choices & 2) != 0 ? program.byte() : 0;
  Bytes bytes = program.rest();
  if ((choices & 1) == 0) {
    if (!bytes.empty()) bytes[0] = std::byte{wire::magic};
    seal(bytes);
  }
  static_cast<void>(wire::peek_job_tag(bytes));
  static_cast<void>(wire::peek_connection(bytes));
  if (wire::is_sealed(bytes)) {
    wire::Header header;
    static_cast<void>(wire::Reader::sealed_header(bytes, header));
  }
  const std::optional<Packet> packet = read(bytes, {}, virtual_bytes);
  if (!packet) return;
  require(wire::peek_connection(bytes) == packet->header.connection, "a switch sees another connection");
  require(wire::peek_job_tag(bytes).has_value() == ((packet->header.flags & wire::has_job) != 0),
          "a switch sees another job");

  // A datapath may deliver a packet in two pieces.
  std::uint16_t covered = 0;
  std::memcpy(&covered, bytes.data() + 2, sizeof covered);
  if (covered < bytes.size() && virtual_bytes == 0) {
    const Bytes first(bytes.begin(), bytes.begin() + covered);
    const Bytes tail(bytes.begin() + covered, bytes.end());
    const std::optional<Packet> split = read(first, tail, 0);
    require(split.has_value(), "it can't be read in two pieces");
    if (split->whole) require(same(*packet, *split), "it says something else in two pieces");
  }

  if (!packet->whole || virtual_bytes != 0) return;
  Bytes buffer(bytes.size());
  wire::Writer writer(buffer);
  for (const Packet::Part& part : packet->parts) write(part, writer);
  const auto written = writer.finish(packet->header, {});
  require(written.size() == bytes.size(), "it is written in another length");
  const std::optional<Packet> again = read(written, {}, 0);
  require(again.has_value() && same(*packet, *again), "it is not read as it was written");
}

}  // namespace mltcp::fuzz
