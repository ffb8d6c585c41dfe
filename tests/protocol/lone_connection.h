// A connection without a shard and a network. The test takes the place of the clock, the peer and the congestion
// controller. It decides about every packet that arrives, inspects every packet that is built, and reads the exact
// events of the controller.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../transport/test_network.h"
#include "mltcp/transport/internal/connection.h"

namespace mltcp::testing_network {

using namespace transport;

/// An event as the congestion controller received it.
struct Event {
  enum class Kind : std::uint8_t { ack, congestion, timeout, undone, timer, idle_restart };
  Kind kind = Kind::ack;
  Nanos now;
  cc::AckSample sample;         ///< valid if `kind` is ack
  cc::CongestionEvent event{};  ///< valid if `kind` is congestion
};

/// A congestion controller that records its events, and whose output the test sets. The record is static, because the
/// state of an algorithm is plain bytes. Therefore, only one connection may use a Recorder at a time.
struct Recorder {
  static constexpr std::string_view name = "recorder";
  static constexpr cc::Capabilities capabilities{.needs_timer = true};
  static inline std::vector<Event> events;
  static inline cc::Output wanted;

  static void write(Event event, cc::Output& out) {
    events.push_back(event);
    out = wanted;
  }
  void start(const cc::PathInfo&, cc::Output& out) { out = wanted; }
  void on_ack(const cc::AckSample& ack, cc::Output& out) { write({Event::Kind::ack, ack.now, ack}, out); }
  void on_congestion(const cc::CongestionEvent& event, cc::Output& out) {
    write({Event::Kind::congestion, event.now, {}, event}, out);
  }
  void on_timeout(Nanos now, cc::Output& out) { write({Event::Kind::timeout, now, {}}, out); }
  void on_spurious_congestion(Nanos now, cc::Output& out) { write({Event::Kind::undone, now, {}}, out); }
  void on_timer(Nanos now, cc::Output& out) { write({Event::Kind::timer, now, {}}, out); }
  void on_idle_restart(Nanos now, cc::Output& out) { write({Event::Kind::idle_restart, now, {}}, out); }
};

/// Returns a configuration with simple timers: with a round trip of 100 us, a packet is late after 1 ms, and a probe is
/// due after 1.1 ms.
inline ConnectionConfig round_timers() {
  ConnectionConfig config;
  config.timer_granularity = 1_ms;
  config.max_ack_delay = Nanos(0);
  config.max_sends = 65'536;
  config.pack_messages = false;
  return config;
}

inline ConnectionConfig with_ecn(ConnectionConfig config = round_timers()) {
  config.ecn = true;
  return config;
}

/// The server side of an accepted connection, by default with credit for a million messages. By default, it has sent
/// packet 0, its ACCEPT, and the peer acknowledged this packet after a round trip of 100 us.
class LoneConnection {
 public:
  static constexpr Nanos kRoundTrip{100'000};
  static constexpr std::uint32_t kPacket = 1472;   ///< bytes of a full packet
  static constexpr std::uint32_t kPayload = 1424;  ///< bytes of data in a full packet
  static constexpr double kHuge = 1e9;             ///< a window in bytes, so large that it never limits sending
  static constexpr Rate kUnpaced{1'000'000'000'000'000'000};
  static constexpr std::uint64_t kFirstOfPeer = 10;  ///< packet number of the first packet that arrives

  enum class Start : std::uint8_t { acknowledged, accepted, connecting };
  struct Options {
    ConnectionConfig config = round_timers();
    Start start = Start::acknowledged;
    double window = kHuge;
    std::uint32_t credit = 1'000'000;
    std::uint16_t peers_max_packet = kPacket;
  };

  LoneConnection() : LoneConnection(Options{}) {}
  explicit LoneConnection(const ConnectionConfig& config) : LoneConnection(Options{.config = config}) {}
  explicit LoneConnection(const Options& options)
      : jobs_(1),
        holds_(16),
        acks_{std::vector<AckBatch>(1), 0, {}},
        links_{&queue, &tx, &holds_, &acks_, jobs_, &shard, &frame_, {.virtual_payload = true}},
        buffer_(kPacket),
        connection(7, Address::v4(0x0A000002, 4793), std::make_shared<const ConnectionConfig>(options.config),
                   table(options.window), links_, now) {
    jobs_[0].used = true;
    if (options.start == Start::connecting) {
      connection.start_connect(1);
      build();
      return;
    }
    connection.start_accept(
        {.max_packet = options.peers_max_packet, .source_connection = 99, .credit = options.credit, .tag = 1}, 2, true,
        now);
    build();
    if (options.start == Start::accepted) return;
    now += kRoundTrip;
    ack({{0, 0}}, {.ect0_packets = 1});
    events.clear();
  }

  // Actions of the program.

  /// Sends `count` messages now, by default of one full packet each. Returns the number of the first packet.
  std::uint64_t send(std::uint64_t count = 1, Bytes bytes = kPayload) {
    const std::uint64_t first = connection.next_packet_number();
    for (std::uint64_t i = 0; i < count; ++i) post(bytes);
    build();
    return first;
  }
  void post(Bytes bytes) { ASSERT_EQ(connection.send(nullptr, bytes, 0, Nanos::never(), 0), PostResult::ok); }
  JobState& job() { return jobs_[0]; }

  // Actions of the peer.

  using Ranges = std::vector<wire::PacketRange>;
  /// Acknowledges `ranges`, in rising order, in a separate burst of packets. Then sends all packets that may leave.
  void ack(const Ranges& ranges, const wire::EcnCounts& ecn = {}, Nanos delay = {}) {
    take_ack(ranges, ecn, delay);
    end_burst();
  }
  /// Acknowledges `ranges` as ack() does, a round trip later.
  void answer(const Ranges& ranges, const wire::EcnCounts& ecn = {}) {
    now += kRoundTrip;
    ack(ranges, ecn);
  }
  void take_ack(const Ranges& ranges, const wire::EcnCounts& ecn = {}, Nanos delay = {}) {
    arrive([&](wire::Writer& w) {
      wire::AckFrame frame;
      frame.ecn = ecn;
      frame.delay_ns = static_cast<std::uint32_t>(delay.count);
      frame.range_count = static_cast<std::uint32_t>(ranges.size());
      std::reverse_copy(ranges.begin(), ranges.end(), frame.ranges.begin());
      w.ack(frame);
    });
  }
  /// Lets a packet arrive whose number follows all earlier ones.
  void arrive(const std::function<void(wire::Writer&)>& write, Ecn ecn = Ecn::not_ect, std::uint8_t flags = 0) {
    wire::Header header = header_for(7, next_of_peer++, 1000);
    header.flags = flags;
    arrive(header, write, ecn);
  }
  void arrive(const wire::Header& header, const std::function<void(wire::Writer&)>& write, Ecn ecn = Ecn::not_ect) {
    arrive(forge(header, write), ecn);
  }
  void arrive(const ByteVector& bytes, Ecn ecn = Ecn::not_ect, std::uint8_t hops = 0) {
    arrive(RxPacket{.source = {}, .bytes = bytes, .ecn = ecn, .hops = hops});
  }
  void arrive(const RxPacket& arrived) {
    wire::Reader reader;
    wire::Header header;
    ASSERT_EQ(reader.begin(arrived.bytes, arrived.tail, arrived.virtual_bytes, header), wire::ParseError::none);
    connection.on_packet(header, reader, arrived, now);
  }
  /// Lets a packet arrive in a separate burst. Then sends all packets that may leave.
  void take(const std::function<void(wire::Writer&)>& write, Ecn ecn = Ecn::not_ect, std::uint8_t flags = 0) {
    arrive(write, ecn, flags);
    end_burst();
  }
  void take(const wire::Header& header, const std::function<void(wire::Writer&)>& write) {
    arrive(header, write);
    end_burst();
  }
  void end_burst() {
    connection.end_of_batch(now);
    acks_.used = 0;
    build();
  }

  // Actions of the shard.

  /// Builds all packets that may leave now. Returns the reason why no more packets may leave.
  Connection::Blocked build() {
    for (;;) {
      BuiltPacket built;
      const Connection::Blocked blocked = connection.build(now, buffer_, built);
      if (blocked != Connection::Blocked::no) return blocked;
      Parsed parsed = TestNetwork::parse(built.header, static_cast<std::uint32_t>(built.payload.size()));
      parsed.at = now;
      parsed.ecn = built.ecn;
      sent.push_back(std::move(parsed));
    }
  }
  void fire_timers() {
    connection.on_timer(now);
    build();
  }
  /// Lets time pass, and calls every timer when it is due.
  void run_until(Nanos end) {
    while (connection.state() != Connection::State::dead && connection.next_deadline() <= end) {
      now = std::max(now, connection.next_deadline());
      fire_timers();
    }
    now = end;
  }
  void run_for(Nanos duration) { run_until(now + duration); }

  // Observations.

  [[nodiscard]] ConnectionStats stats() const { return connection.stats(); }
  [[nodiscard]] std::size_t undone() const { return count(Event::Kind::undone); }
  [[nodiscard]] std::size_t count(Event::Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [=](const Event& event) { return event.kind == kind; }));
  }
  /// Returns the latest acknowledgement sample.
  [[nodiscard]] const cc::AckSample& sample() const {
    const auto at =
        std::find_if(events.rbegin(), events.rend(), [](const Event& event) { return event.kind == Event::Kind::ack; });
    static const cc::AckSample none;
    EXPECT_NE(at, events.rend()) << "no sample yet";
    return at == events.rend() ? none : at->sample;
  }
  /// Returns the sent packet with the packet number `number`.
  [[nodiscard]] const Parsed& packet_of(std::uint64_t number) const {
    const auto at =
        std::find_if(sent.begin(), sent.end(), [=](const Parsed& one) { return one.header.packet_number == number; });
    static const Parsed none;
    EXPECT_NE(at, sent.end()) << "no packet " << number;
    return at == sent.end() ? none : *at;
  }
  std::vector<Completion> completions() {
    std::vector<Completion> taken;
    for (; !queue.empty(); queue.pop()) taken.push_back(queue.front());
    return taken;
  }

  Nanos now{1'000'000};
  GrowableRing<Completion> queue;
  ShardStats shard;
  /// One packet that waits in the datapath. The test may set it.
  TxQueue tx{std::vector<TxPacket>(1), std::vector<std::uint64_t>(1)};
  std::vector<Parsed> sent;
  std::uint64_t next_of_peer = kFirstOfPeer;
  std::vector<Event>& events = Recorder::events;

 private:
  static const cc::AlgorithmTable& table(double window) {
    Recorder::events.clear();
    Recorder::wanted = {.cwnd_bytes = window, .pacing_rate = kUnpaced};
    return cc::table_of<Recorder>();
  }

  std::vector<JobState> jobs_;
  PayloadHolds holds_;
  AckBatches acks_;
  wire::Frame frame_;
  ShardLinks links_;
  ByteVector buffer_;

 public:
  Connection connection;
};

/// A connection with ten packets in flight, whose acknowledgements may arrive now.
struct Flight : LoneConnection {
  explicit Flight(const ConnectionConfig& config = round_timers()) : LoneConnection(config), first(send(10)) {
    now += kRoundTrip;
  }
  /// Acknowledges packets `from` to `to`. Here, 0 is the first of the ten packets, and packets sent after the ten are
  /// counted from 10 on.
  void arrived(std::uint64_t from, std::uint64_t to, const wire::EcnCounts& ecn = {}) {
    ack({{first + from, first + to}}, ecn);
  }
  std::uint64_t first;
};

}  // namespace mltcp::testing_network
