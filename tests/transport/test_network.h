// A network of a few shards in virtual time, for tests. The test decides the fate of each packet, sees the packets on
// the wire, and can limit what a host's datapath accepts. Packets take a fixed time, and nothing is random.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../random_bytes.h"
#include "mltcp/transport/crc32c.h"
#include "mltcp/transport/shard.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

inline std::ostream& operator<<(std::ostream& out, Status status) { return out << to_text(status); }

namespace testing_network {

using namespace mltcp::literals;
using ByteVector = std::vector<std::byte>;
using Statuses = std::vector<Status>;
using Kind = Completion::Kind;
using wire::FrameType;

/// Number of data bytes in a packet of 1472 bytes that carries a part of one message and nothing else.
constexpr std::size_t kFullPayload = 1472 - wire::kHeaderBytes - wire::kDataFrameBytes;
static_assert(kFullPayload == 1424, "the documents say so");

/// A parsed packet and its way through the network.
struct Parsed {
  std::size_t from = 0;
  std::size_t to = 0;
  Nanos at;
  std::size_t size = 0;  ///< length of the UDP payload in bytes
  Ecn ecn = Ecn::not_ect;
  std::uint8_t path = 0;
  wire::Header header;
  std::vector<wire::Frame> frames;

  [[nodiscard]] const wire::Frame* find(FrameType type) const {
    for (const wire::Frame& frame : frames)
      if (frame.type == type) return &frame;
    return nullptr;
  }
  [[nodiscard]] bool has(FrameType type) const { return find(type) != nullptr; }
  [[nodiscard]] bool eliciting() const {
    return std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.type != FrameType::ack; });
  }
};

/// What the network does with a packet: drops, trims, duplicates or delays it, or changes its ECN field.
struct Fate {
  bool drop = false;
  bool trim = false;  ///< only the first 48 bytes of the UDP payload arrive
  int copies = 1;
  Nanos extra_delay;
  std::optional<Ecn> ecn;
};

class TestNetwork;

/// A payload that the network reads in place. Checks at its destruction that the payload has not changed meanwhile.
class KeptPayload {
 public:
  KeptPayload(std::span<const std::byte> payload, PayloadHold& hold)
      : payload_(payload), hold_(hold), checksum_(crc32c(0, payload)) {
    hold_.packets.fetch_add(1);
  }
  ~KeptPayload() {
    EXPECT_EQ(crc32c(0, payload_), checksum_) << "changed while the datapath was reading";
    EXPECT_GT(hold_.packets.fetch_sub(1), 0U);
  }
  KeptPayload(const KeptPayload&) = delete;
  KeptPayload& operator=(const KeptPayload&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return payload_; }

 private:
  std::span<const std::byte> payload_;
  PayloadHold& hold_;
  std::uint32_t checksum_;
};

/// A host of the test network, which is the datapath of one shard.
class TestHost final : public PacketIo {
  friend class TestNetwork;

 public:
  TestHost(TestNetwork& network, std::size_t number, const Limits& limits)
      : address(Address::v4(0x0A000001 + static_cast<std::uint32_t>(number), 4793)),
        number_(number),
        network_(network),
        limits_(limits) {}

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override {
    ++receive_calls;
    lent_.clear();  // frees the buffers of the previous call, so that a sanitizer detects late reads
    std::size_t count = 0;
    for (; count < out.size() && !arrived.empty(); ++count) {
      lent_.push_back(std::move(arrived.front()));
      arrived.pop_front();
      const Arrived& packet = lent_.back();
      out[count] = {packet.source, packet.bytes, packet.virtual_bytes, packet.ecn};
      if (packet.kept != nullptr) out[count].tail = packet.kept->bytes();
      out[count].is_trimmed = packet.is_trimmed;
    }
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override;

  /// All completions that the test has taken, in order.
  std::vector<Completion> completions;
  /// If set, called with each completion when the test takes it.
  std::function<void(const Completion&)> on_completion;
  /// If true, leaves completions in the shard.
  bool keep_completions = false;
  /// Number of packets that the datapath still accepts.
  std::size_t free_places = ~std::size_t{0};
  std::size_t send_calls = 0;
  std::size_t receive_calls = 0;
  Address address;
  std::unique_ptr<Shard> shard;
  Nanos deadline;  ///< time of the next poll
  Nanos clock;     ///< difference of this host's clock from the network's clock; positive if it is ahead
  bool dead = false;

  struct Arrived {
    Address source;
    ByteVector bytes;
    std::uint32_t virtual_bytes = 0;
    Ecn ecn = Ecn::not_ect;
    std::shared_ptr<const KeptPayload> kept = nullptr;  ///< payload that follows `bytes`
    bool is_trimmed = false;
  };
  std::deque<Arrived> arrived;

  [[nodiscard]] std::vector<Completion> of(Completion::Kind kind) const {
    std::vector<Completion> result;
    std::copy_if(completions.begin(), completions.end(), std::back_inserter(result),
                 [&](const Completion& c) { return c.kind == kind; });
    return result;
  }
  [[nodiscard]] std::vector<Status> statuses(Completion::Kind kind) const {
    std::vector<Status> result;
    for (const Completion& completion : of(kind)) result.push_back(completion.status);
    return result;
  }
  /// Returns the number of completions of one kind. Tests call this function after each poll, so it does not search
  /// `completions`.
  [[nodiscard]] std::size_t count(Completion::Kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  void take(const Completion& completion) {
    completions.push_back(completion);
    ++counts_[static_cast<std::size_t>(completion.kind)];
    if (on_completion) on_completion(completion);
  }
  void forget_completions() {
    completions.clear();
    counts_ = {};
  }

 private:
  std::size_t number_;
  TestNetwork& network_;
  Limits limits_;
  std::vector<Arrived> lent_;
  std::array<std::size_t, 5> counts_{};  // number of completions, by kind
};

class TestNetwork {
 public:
  static constexpr Nanos kDefaultDelay{50'000};

  explicit TestNetwork(Nanos delay = kDefaultDelay) : delay_(delay) {}

  /// Adds a host. Its seed is 1 if `config` has none.
  TestHost& add(ShardConfig config = {}, const PacketIo::Limits& limits = {}) {
    config.seed = config.seed.value_or(1);
    hosts_.push_back(std::make_unique<TestHost>(*this, hosts_.size(), limits));
    hosts_.back()->shard = std::make_unique<Shard>(*hosts_.back(), config);
    return *hosts_.back();
  }
  TestHost& host(std::size_t number) { return *hosts_[number]; }

  [[nodiscard]] Nanos now() const { return now_; }
  /// If set, called with each sent packet to decide its fate.
  std::function<void(const Parsed&, Fate&)> fate;
  /// lose_first() drops the next `count` packets that contain a frame of type `type`. lose_first_of() drops the next
  /// `count` packets from host `host`.
  void lose_first(int count, FrameType type) {
    fate = [=](const Parsed& packet, Fate& its) mutable { its.drop = packet.has(type) && count-- > 0; };
  }
  void lose_first_of(std::size_t host, int count) {
    fate = [=](const Parsed& packet, Fate& its) mutable { its.drop = packet.from == host && count-- > 0; };
  }
  /// If set, called with the number of the sending host and the raw bytes of each sent packet.
  std::function<void(std::size_t, const ByteVector&)> raw;
  /// Records sent packets in `log` if true.
  bool logging = true;
  std::vector<Parsed> log;
  /// If set, the network keeps each payload that is sent by reference, until the test removes it here. If null, the
  /// network keeps a payload only as long as its packet.
  std::unique_ptr<std::deque<std::shared_ptr<const KeptPayload>>> keep;
  /// Rate in each direction between two hosts; 0 if unlimited. Packets above the rate wait in a queue.
  Rate rate;

  [[nodiscard]] std::size_t count(const std::function<bool(const Parsed&)>& matches) const {
    return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), matches));
  }

  /// Polls `host` at the current time, for example after its program has done something.
  void wake(TestHost& host) { host.deadline = now_; }
  void wake_all() {
    for (const auto& host : hosts_) host->deadline = now_;
  }

  void run_until(Nanos end) {
    run([] { return false; }, end);
  }
  void run_for(Nanos duration) { run_until(now_ + duration); }
  /// Simulates a busy machine: no host is polled for `duration`, and packets that arrive are read afterwards.
  void stand_still(Nanos duration) { now_ += duration; }
  /// Runs until `stop` returns true; calls it after each poll. Returns false if it has not returned true by `end`.
  bool run(const std::function<bool()>& stop, Nanos end) {
    wake_all();
    int polls_at_once = 0;
    while (true) {
      Nanos next = flying_.empty() ? Nanos::never() : flying_.begin()->first.first;
      for (const auto& host : hosts_)
        if (!host->dead) next = std::min(next, host->deadline);
      if (next > end) {
        now_ = end;
        return false;
      }
      if (next > now_) polls_at_once = 0;
      now_ = std::max(now_, next);
      while (!flying_.empty() && flying_.begin()->first.first <= now_) {
        auto& [to, packet] = flying_.begin()->second;
        if (!hosts_[to]->dead) {
          hosts_[to]->arrived.push_back(std::move(packet));
          hosts_[to]->deadline = now_;
        }
        flying_.erase(flying_.begin());
      }
      for (const auto& host : hosts_) {
        if (host->dead || host->deadline > now_) continue;
        poll(*host);
        if (stop()) return true;
      }
      if (++polls_at_once > 20'000) {
        ADD_FAILURE() << "polled for ever at " << now_.count << " ns";
        return false;
      }
    }
  }

  void poll(TestHost& host) {
    const Nanos wanted = host.shard->poll(now_ + host.clock);
    host.deadline = wanted.is_never() ? wanted : wanted - host.clock;
    if (host.keep_completions) return;
    std::array<Completion, 16> taken;
    while (const std::size_t count = host.shard->take_completions(taken)) {
      for (const Completion& completion : std::span(taken).first(count)) host.take(completion);
      host.deadline = now_;
    }
    if (!host.arrived.empty()) host.deadline = now_;
  }

  /// Returns the tag that a connection of `host` has sent to its peer; 0 if it has sent none yet.
  [[nodiscard]] std::uint64_t tag_of(const TestHost& host, ConnectionId id) const;
  /// Delivers to `to`, at the current time, a packet that no shard has sent. If the packet is for a connection and has
  /// no tag, it gets the right tag, as if the peer or an attacker on the path had sent it.
  void inject(TestHost& to, const Address& source, ByteVector bytes, std::uint32_t virtual_bytes = 0,
              Ecn ecn = Ecn::not_ect) {
    put_tag(to, bytes, virtual_bytes);
    inject_as_it_is(to, source, std::move(bytes), virtual_bytes, ecn);
  }
  void inject_as_it_is(TestHost& to, const Address& source, ByteVector bytes, std::uint32_t virtual_bytes = 0,
                       Ecn ecn = Ecn::not_ect) {
    to.arrived.push_back({source, std::move(bytes), virtual_bytes, ecn});
    wake(to);
  }

  static Parsed parse(std::span<const std::byte> bytes, std::uint32_t virtual_bytes,
                      std::span<const std::byte> tail = {}) {
    Parsed parsed;
    parsed.size = bytes.size() + tail.size() + virtual_bytes;
    wire::Reader reader;
    if (wire::is_sealed(bytes)) {  // only the two endpoints can read a sealed packet
      EXPECT_EQ(wire::Reader::sealed_header(bytes, parsed.header), wire::ParseError::none);
      return parsed;
    }
    if (reader.begin(bytes, tail, virtual_bytes, parsed.header) != wire::ParseError::none) {
      ADD_FAILURE() << "a shard sent a packet that can't be read";
      return parsed;
    }
    for (wire::Frame frame; reader.next(frame);) parsed.frames.push_back(frame);
    for (wire::Frame& frame : parsed.frames) frame.data.bytes = {};  // the packet's bytes are freed before `parsed`
    EXPECT_EQ(reader.error(), wire::ParseError::none) << "a shard sent a malformed packet";
    return parsed;
  }

 private:
  friend class TestHost;

  void launch(std::size_t from, const TxPacket& packet) {
    TestHost::Arrived copy;
    copy.source = hosts_[from]->address;
    copy.source.port = static_cast<std::uint16_t>(copy.source.port + packet.path);
    copy.bytes.assign(packet.header.begin(), packet.header.end());
    if (packet.hold != nullptr) {
      EXPECT_GE(packet.payload.size(), hosts_[from]->limits().keeps_payload_from);
      copy.kept = std::make_shared<const KeptPayload>(packet.payload, *packet.hold);
      if (keep != nullptr) keep->push_back(copy.kept);
    } else if (packet.payload.data() != nullptr) {
      copy.bytes.insert(copy.bytes.end(), packet.payload.begin(), packet.payload.end());
    } else {
      copy.virtual_bytes = static_cast<std::uint32_t>(packet.payload.size());
    }
    copy.ecn = packet.ecn;
    const auto& limits = hosts_[from]->limits();
    const std::span<const std::byte> tail = copy.kept == nullptr ? std::span<const std::byte>{} : copy.kept->bytes();
    const std::size_t size = copy.bytes.size() + tail.size() + copy.virtual_bytes;
    EXPECT_LE(size, limits.max_packet_bytes);
    learn_tag(from, copy.bytes);
    if (raw) raw(from, copy.bytes);
    std::size_t to = 0;
    while (to < hosts_.size() && hosts_[to]->address != *packet.destination) ++to;

    Fate decided;
    if (fate || logging) {
      Parsed parsed = parse(copy.bytes, copy.virtual_bytes, tail);
      parsed.from = from;
      parsed.to = to;
      parsed.at = now_;
      parsed.ecn = packet.ecn;
      parsed.path = packet.path;
      if (fate) fate(parsed, decided);
      if (logging) log.push_back(std::move(parsed));
    }
    Nanos departure = now_;
    if (!rate.is_zero()) {
      Nanos& free_at = free_at_[{from, to}];
      free_at = std::max(free_at, now_) + rate.time_for(size + limits.overhead_bytes);
      departure = free_at;
    }
    if (decided.drop || to == hosts_.size()) return;
    if (decided.trim) {
      copy.is_trimmed = true;
      copy.bytes.resize(std::min<std::size_t>(copy.bytes.size(), wire::kHeaderBytes + wire::kDataFrameBytes));
      copy.kept = nullptr;
      copy.virtual_bytes = 0;
    }
    if (decided.ecn && copy.ecn != Ecn::not_ect) copy.ecn = *decided.ecn;
    for (int i = 0; i < decided.copies; ++i)
      flying_.emplace(std::pair(departure + delay_ + decided.extra_delay, launched_++), std::pair(to, copy));
  }

  void learn_tag(std::size_t from, std::span<const std::byte> bytes) {
    wire::Reader reader;
    wire::Header header;
    if (wire::is_sealed(bytes)) return;
    wire::Frame frame;
    const auto is = [&](FrameType type) { return bytes[wire::kHeaderBytes] == static_cast<std::byte>(type); };
    if (bytes.size() <= wire::kHeaderBytes || (!is(FrameType::connect) && !is(FrameType::accept))) return;
    if (reader.begin(bytes, 0, header) == wire::ParseError::none && reader.next(frame))
      tags_[{from, frame.connect.source_connection}] = frame.connect.tag;
  }
  void put_tag(const TestHost& to, ByteVector& bytes, std::uint32_t virtual_bytes) const {
    wire::Reader reader;
    wire::Header header;
    if (reader.begin(bytes, virtual_bytes, header) != wire::ParseError::none || header.tag != 0) return;
    const std::uint64_t tag = tag_of(to, header.connection);
    std::uint16_t covered = 0;
    std::memcpy(&covered, bytes.data() + 2, 2);
    std::memcpy(bytes.data() + 8, &tag, 8);
    std::memset(bytes.data() + 4, 0, 4);
    const bool full = (header.flags & wire::full_integrity) != 0;
    const std::uint32_t checksum = crc32c(0, std::span(bytes).first(full ? bytes.size() : covered));
    std::memcpy(bytes.data() + 4, &checksum, 4);
  }

  Nanos now_{1'000'000};
  Nanos delay_;
  std::vector<std::unique_ptr<TestHost>> hosts_;
  std::map<std::pair<Nanos, std::uint64_t>, std::pair<std::size_t, TestHost::Arrived>> flying_;
  std::map<std::pair<std::size_t, std::size_t>, Nanos> free_at_;
  std::map<std::pair<std::size_t, ConnectionId>, std::uint64_t> tags_;  ///< tags by host and connection id
  std::uint64_t launched_ = 0;
};

inline std::uint64_t TestNetwork::tag_of(const TestHost& host, ConnectionId id) const {
  const auto known = tags_.find({host.number_, id});
  return known == tags_.end() ? 0 : known->second;
}

inline std::size_t TestHost::send(std::span<const TxPacket> packets) {
  EXPECT_LE(packets.size(), limits_.burst);
  EXPECT_FALSE(packets.empty());
  ++send_calls;
  std::size_t count = 0;
  for (; count < packets.size() && free_places > 0; ++count) {
    if (free_places != ~std::size_t{0}) --free_places;
    network_.launch(number_, packets[count]);
  }
  return count;
}

/// Two hosts: a client that connects and a server that listens.
class Pair : public TestNetwork {
 public:
  explicit Pair(ConnectionConfig client_config = {}, const ConnectionConfig& server_config = {},
                Nanos delay = kDefaultDelay, const PacketIo::Limits& limits = {}, const ShardConfig& shards = {})
      : TestNetwork(delay), client_config_(std::move(client_config)) {
    client_ = &add(shards, limits);
    server_ = &add(shards, limits);
    server_->shard->listen(server_config);
  }

  [[nodiscard]] TestHost& client() { return *client_; }
  [[nodiscard]] TestHost& server() { return *server_; }
  Shard& c() { return *client_->shard; }
  Shard& s() { return *server_->shard; }

  /// Opens a connection. Returns its ids at the client and at the server.
  std::pair<ConnectionId, ConnectionId> connect() {
    const std::size_t before = server_->count(Completion::Kind::accepted);
    const std::size_t connected = client_->count(Completion::Kind::connected);
    const ConnectionId id = c().connect(server_->address, client_config_, now());
    const bool done = run(
        [&] {
          return client_->count(Completion::Kind::connected) > connected &&
                 server_->count(Completion::Kind::accepted) > before;
        },
        now() + 10_s);
    EXPECT_TRUE(done) << "no connection";
    run_for(10_ms);  // lets packets in flight arrive
    if (!done) return {id, 0};
    return {id, server_->of(Completion::Kind::accepted).back().connection};
  }
  /// Runs until the client has completed `sent` further sends and the server `received` further receives. Returns false
  /// if that takes longer than `within`.
  bool transfer(std::size_t sent, std::size_t received, Nanos within = 60_s) {
    const std::size_t sent_before = client_->count(Completion::Kind::sent);
    const std::size_t received_before = server_->count(Completion::Kind::received);
    return run(
        [&] {
          return client_->count(Completion::Kind::sent) >= sent_before + sent &&
                 server_->count(Completion::Kind::received) >= received_before + received;
        },
        now() + within);
  }
  /// Expects that each host has had one connection, which has ended with `status`.
  void expect_both_closed(Status status) {
    for (const TestHost* host : {client_, server_}) EXPECT_EQ(host->statuses(Kind::closed), Statuses{status});
  }
  /// Makes the server send `message` on each connection that it accepts.
  void serve(std::span<const std::byte> message) {
    server_->on_completion = [this, message](const Completion& completion) {
      if (completion.kind != Kind::accepted) return;
      EXPECT_EQ(s().send(completion.connection, message, 9), PostResult::ok);
    };
  }
  [[nodiscard]] bool client_receives(Nanos within) {
    return run([&] { return client_->count(Kind::received) == 1; }, now() + within);
  }
  /// Sends `message` from client to server. Returns whether it arrived unchanged.
  bool delivers(ConnectionId from, ConnectionId to, const ByteVector& message = ByteVector(1, std::byte{0x42}),
                Nanos within = 60_s) {
    ByteVector buffer(message.size());
    EXPECT_EQ(s().receive(to, buffer, 1), PostResult::ok);
    EXPECT_EQ(c().send(from, message, 2), PostResult::ok);
    return transfer(1, 1, within) && buffer == message;
  }

 private:
  ConnectionConfig client_config_;
  TestHost* client_ = nullptr;
  TestHost* server_ = nullptr;
};

/// A test with a connected pair. The connection's id is `c` at the client and `s` at the server.
class ConnectedTest : public ::testing::Test {
 protected:
  ConnectedTest() { std::tie(c, s) = pair.connect(); }
  Pair pair;
  ConnectionId c = 0;
  ConnectionId s = 0;
  std::byte byte{};  ///< the message of tests in which the content does not matter
};

template <typename Set>
ConnectionConfig config_with(Set set) {
  ConnectionConfig config;
  set(config);
  return config;
}

inline ConnectionConfig keyed(const std::vector<std::shared_ptr<const PacketKey>>& keys) {
  return config_with([&](ConnectionConfig& config) { config.keys = keys; });
}

inline wire::Header header_for(ConnectionId connection, std::uint64_t packet_number = 0, std::uint32_t span = 0) {
  wire::Header header;
  header.connection = connection;
  header.packet_number = packet_number;
  header.span = span;
  return header;
}

/// Returns a packet with any header and frames, as a hostile peer can send it.
inline ByteVector forge(const wire::Header& header, const std::function<void(wire::Writer&)>& write) {
  ByteVector buffer(2000);
  wire::Writer writer(buffer);
  write(writer);
  const auto bytes = writer.finish(header, {});
  return {bytes.begin(), bytes.end()};
}

inline void acknowledge(wire::Writer& writer, std::uint64_t first, std::uint64_t last) {
  wire::AckFrame ack;
  ack.range_count = 1;
  ack.ranges[0] = {first, last};
  writer.ack(ack);
}

inline bool is_data(const Parsed& packet) { return packet.has(FrameType::data); }

}  // namespace testing_network
}  // namespace mltcp
