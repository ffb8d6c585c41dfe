// Measures, in virtual time, which share of a link of 1 Gbit/s a peer gains by false reports of received packets. A
// server sends for two seconds to an honest receiver and to a cheating receiver. Either the server or the receivers
// connect.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "mltcp/cc/swift.h"
#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/transport/shard.h"
#include "mltcp/transport/wire.h"

namespace mltcp::attack::share_test {
namespace {

using namespace mltcp::literals;
using Kind = Completion::Kind;

struct Cheating {
  std::uint64_t lost = 0;       ///< acknowledges lost packets if at least this many in a row were lost; 0 for never
  bool by_bytes = false;        ///< fills a gap in packet numbers only if the bytes have a gap of the same length
  double hidden_marks = 0;      ///< share of the congestion marks that the peer does not report
  bool no_ecn = false;          ///< reports all packets as received without ECN, as if the path cleared the ECN field
  std::uint8_t hops = 0;        ///< number of hops that the peer reports; 0 for the true number
  Nanos held{};                 ///< time for which the peer claims to have held each packet
  bool held_queue = false;      ///< claims to have held each packet for about the queueing delay
  bool many_ranges = false;     ///< acknowledges as many ranges as an ACK can contain
  double marked_bytes = 1;      ///< share of the bytes of marked packets that the peer reports
  std::uint32_t ack_every = 0;  ///< packets per acknowledgement; 0 for the default
  bool first_marks = false;     ///< reports only the first of several marks in one acknowledgement
  bool bare = false;            ///< the largest acknowledged packet contains only ACKs; PINGs provoke these packets
  bool last_first = false;      ///< acknowledges the last of several packets before the rest
  Nanos late{};                 ///< every 40 ms, acknowledges one packet this much later
  double dropped_marks = 0;     ///< share of the marked packets that the peer reports as lost
  int cleared = 0;              ///< number of packets whose ECN field the path clears, after 5000 unchanged packets
};

/// Addresses of two hosts in one IPv6 subnet as the server sees them. The cheating host changes its address.
struct SubnetAddresses {
  Address fixed;  ///< real address of the honest host; `changing` is the real address of the cheater
  Address changing;
  std::uint32_t changes = 0;

  [[nodiscard]] Address seen(const Address& real) const {
    Address address = real;
    address.ip = {0xFD, 1};
    const std::uint32_t host = real.ip == changing.ip ? 2 + changes : 1;
    for (std::size_t i = 0; i < sizeof host; ++i) address.ip[15 - i] = static_cast<std::uint8_t>(host >> (8 * i));
    return address;
  }
  [[nodiscard]] Address real(const Address& seen) const {
    Address address = seen;
    const bool is_fixed = seen.ip == this->seen(fixed).ip;
    address.ip = is_fixed ? fixed.ip : changing.ip;
    return address;
  }
};

/// A host's datapath that makes an honest shard send false reports, because it changes the packets that the shard
/// receives and sends.
class CheatingIo final : public PacketIo {
 public:
  CheatingIo(sim::Host& host, const Cheating& cheating) : host_(host), cheating_(cheating) {}

  [[nodiscard]] const Limits& limits() const override { return host_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override {
    lent_.clear();
    take();
    std::size_t count = 0;
    for (; count < out.size() && !waiting_.empty(); ++count) {
      lent_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      const Packet& packet = lent_.back();
      out[count] = packet.as;
      out[count].bytes = packet.bytes;
    }
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override {
    if (addresses != nullptr) {
      for (TxPacket packet : packets) {
        const Address to = addresses->real(*packet.destination);
        packet.destination = &to;
        host_.send({&packet, 1});
      }
      return packets.size();
    }
    has_reported_mark_ = false;
    if (cheating_.held == 0_ns && !cheating_.held_queue && !cheating_.many_ranges && cheating_.marked_bytes == 1 &&
        !cheating_.bare && !cheating_.last_first && cheating_.late == 0_ns)
      return host_.send(packets);
    for (const TxPacket& packet : packets) {
      TxPacket copy = packet;
      for (const std::vector<std::byte>& changed : changed_acks(packet)) {
        if (!changed.empty()) copy.header = changed;
        host_.send({&copy, 1});
      }
    }
    return packets.size();
  }

  Bytes received = 0;                          ///< bytes received, including headers
  const SubnetAddresses* addresses = nullptr;  ///< translates the addresses of peers; null for no translation
  Nanos now;

 private:
  struct Packet {
    std::vector<std::byte> bytes;
    RxPacket as;
  };

  void take() {
    std::array<RxPacket, 32> burst;
    while (const std::size_t count = host_.receive(burst)) {
      for (const RxPacket& packet : std::span(burst).first(count)) {
        received += packet.bytes.size() + packet.virtual_bytes;
        if (cheating_.lost > 0) fill_gap(packet);
        if (cheating_.held_queue) look_at_queue(packet);
        if (cheating_.bare) look_for_bare(packet);
        if (packet.ecn == Ecn::ce && random_.chance(cheating_.dropped_marks)) continue;
        Packet& kept = waiting_.emplace_back();
        kept.bytes.assign(packet.bytes.begin(), packet.bytes.end());
        kept.as = packet;
        if (addresses != nullptr) kept.as.source = addresses->seen(packet.source);
        if (cheating_.hops != 0) kept.as.hops = cheating_.hops;
        if (cheating_.no_ecn) kept.as.ecn = Ecn::not_ect;
        if (packet.ecn == Ecn::ce && random_.chance(cheating_.hidden_marks)) kept.as.ecn = Ecn::ect0;
        if (cheating_.first_marks && packet.ecn == Ecn::ce && std::exchange(has_reported_mark_, true))
          kept.as.ecn = Ecn::ect0;
        if (++packets_ > 5000 && packets_ <= 5000 + cheating_.cleared) kept.as.ecn = Ecn::not_ect;
      }
    }
  }
  /// Inserts a made-up packet in place of each missing packet.
  void fill_gap(const RxPacket& packet) {
    wire::Reader reader;
    wire::Header header;
    if (reader.begin(packet.bytes, packet.tail, packet.virtual_bytes, header) != wire::ParseError::none) return;
    if (header.connection == 0) return;
    wire::Frame frame;
    wire::DataFrame data;
    while (reader.next(frame))
      if (frame.type == wire::FrameType::data) data = frame.data;
    auto [next, is_new] = next_.try_emplace(header.connection, header.packet_number + 1);
    wire::DataFrame& before = last_data_[header.connection];
    const std::uint64_t last = header.packet_number;
    const std::uint64_t missing = last - std::min(last, next->second);
    const std::uint64_t end = std::uint64_t{before.offset} + before.length;
    const bool misses_bytes = before.length > 0 && data.message == before.message && data.offset > end &&
                              data.offset - end == missing * before.length;
    const bool fills = !is_new && missing >= cheating_.lost && (!cheating_.by_bytes || misses_bytes);
    for (std::uint64_t number = next->second; fills && number < last; ++number) {
      header.packet_number = number;
      header.flags = 0;
      std::vector<std::byte> buffer(100);
      wire::Writer writer(buffer);
      if (cheating_.by_bytes)
        writer.data({.message = data.message,
                     .offset = static_cast<std::uint32_t>(end + (number - next->second) * before.length),
                     .length = before.length});
      else
        writer.ping();
      const auto bytes = writer.finish(header, {});
      Packet& made = waiting_.emplace_back();
      made.bytes.assign(bytes.begin(), bytes.end());
      made.as.source = packet.source;
      made.as.virtual_bytes = cheating_.by_bytes ? before.length : 0;
    }
    if (data.length > 0 && (is_new || last >= next->second)) before = data;
    next->second = std::max(next->second, last + 1);
  }
  /// Measures this host's round trip with the PINGs that changed_acks() sends.
  void look_at_queue(const RxPacket& packet) {
    wire::Reader reader;
    wire::Header header;
    wire::Frame frame;
    if (reader.begin(packet.bytes, packet.tail, packet.virtual_bytes, header) != wire::ParseError::none) return;
    while (reader.next(frame)) {
      if (frame.type != wire::FrameType::ack) continue;
      const auto at = sent_at_.find(static_cast<std::uint32_t>(frame.ack.ranges[0].last));
      if (at == sent_at_.end()) continue;
      latest_ = now - at->second;
      min_ = std::min(min_, latest_);
      sent_at_.erase(sent_at_.begin(), std::next(at));
    }
  }
  void look_for_bare(const RxPacket& packet) {
    wire::Reader reader;
    wire::Header header;
    wire::Frame frame;
    if (reader.begin(packet.bytes, packet.tail, packet.virtual_bytes, header) != wire::ParseError::none) return;
    bool is_bare = true;
    while (reader.next(frame)) is_bare = is_bare && frame.type == wire::FrameType::ack;
    if (is_bare) bare_.insert(header.packet_number);
  }
  /// Returns `ack` without the packet numbers from `first` to `last`.
  static wire::AckFrame without(const wire::AckFrame& ack, std::uint64_t first, std::uint64_t last) {
    wire::AckFrame less = ack;
    less.range_count = 0;
    const auto add = [&](std::uint64_t from, std::uint64_t to) {
      if (less.range_count < wire::kMaxAckRanges) less.ranges[less.range_count++] = {from, to};
    };
    for (const wire::PacketRange& range : std::span(ack.ranges).first(ack.range_count)) {
      if (range.last > last) add(std::max(range.first, last + 1), range.last);
      if (range.first < first) add(range.first, std::min(range.last, first - 1));
    }
    return less;
  }
  /// Returns the packets to send in place of `packet`. An empty element stands for `packet` itself.
  [[nodiscard]] std::vector<std::vector<std::byte>> changed_acks(const TxPacket& packet) {
    wire::Reader reader;
    wire::Header header;
    wire::Frame frame;
    if (!packet.payload.empty() || reader.begin(packet.header, 0, header) != wire::ParseError::none ||
        !reader.next(frame) || frame.type != wire::FrameType::ack)
      return {{}};
    wire::AckFrame ack = frame.ack;
    if (reader.next(frame)) return {{}};
    Nanos held = cheating_.held;
    if (cheating_.held_queue && !min_.is_never()) held = (latest_ - min_) * 97 / 100;
    ack.delay_ns = std::max(ack.delay_ns, static_cast<std::uint32_t>(held.count));
    // Adds ranges of old numbers, which may leave no space for current ones.
    if (cheating_.many_ranges && ack.ranges[ack.range_count - 1].first > 66)
      for (std::uint32_t old = 64; ack.range_count < wire::kMaxAckRanges; old -= 2)
        ack.ranges[ack.range_count++] = {old, old};
    ack.ecn.ce_bytes = static_cast<std::uint32_t>(ack.ecn.ce_bytes * cheating_.marked_bytes);
    const auto made = [&](const wire::AckFrame& frame_of_it, bool pings) {
      wire::Header head = header;
      std::vector<std::byte> buffer(1472);
      wire::Writer writer(buffer);
      if (frame_of_it.range_count > 0) writer.ack(frame_of_it);
      if (pings) {
        writer.ping();
        head.flags |= wire::ack_now;
        sent_at_[static_cast<std::uint32_t>(header.packet_number)] = now;
      }
      buffer.resize(writer.finish(head, {}).size());
      return buffer;
    };
    const std::uint64_t largest = ack.ranges[0].last;
    if (cheating_.bare) {
      const auto above = bare_.upper_bound(largest);
      if (above == bare_.begin()) return {made({}, true)};
      return {made(without(ack, *std::prev(above) + 1, largest), true)};
    }
    if (cheating_.last_first && ack.ranges[0].first < largest && largest > largest_acked_) {
      const wire::AckFrame last_alone = without(ack, largest_acked_ + 1, largest - 1);
      largest_acked_ = largest;
      return {made(last_alone, false), made(without(ack, largest, largest), false)};
    }
    if (cheating_.late > 0_ns) {
      if (omitted_ == 0 && now - omitted_at_ > 40_ms) {
        omitted_ = largest;
        omitted_at_ = now;
      }
      if (now - omitted_at_ < cheating_.late) {
        ack = without(ack, omitted_, omitted_);
      } else if (const std::uint64_t late = std::exchange(omitted_, 0);
                 ack.ranges[ack.range_count - 1].first > late + 1 && late > 0 &&
                 ack.range_count < wire::kMaxAckRanges) {
        ack.ranges[ack.range_count++] = {late, late};
      }
    }
    return {made(ack, cheating_.held_queue)};
  }

  sim::Host& host_;
  Cheating cheating_;
  Random random_{1};
  std::deque<Packet> waiting_;
  std::vector<Packet> lent_;
  std::map<std::uint32_t, std::uint64_t> next_;  ///< next expected packet number, by connection
  std::map<std::uint32_t, wire::DataFrame> last_data_;
  std::map<std::uint32_t, Nanos> sent_at_;  ///< send times of this host's PINGs, by packet number
  Nanos latest_;
  Nanos min_ = Nanos::never();
  bool has_reported_mark_ = false;
  int packets_ = 0;
  std::set<std::uint64_t> bare_;     ///< numbers of the peer's packets that contain only ACKs
  std::uint64_t largest_acked_ = 0;  ///< largest packet number that was acknowledged so far
  std::uint64_t omitted_ = 0;
  Nanos omitted_at_;
};

/// A host, and a program that calls `on_completion` for each completion.
class Program final : public Pollable {
 public:
  Program(sim::Host& host, const Cheating& cheating = {})
      : io(host, cheating), shard(io, {.seed = host.number() + 1}) {}

  Nanos poll(Nanos now) override {
    now_ = io.now = now;
    Nanos next = shard.poll(now);
    Completion completion;
    while (shard.take_completions({&completion, 1}) == 1) {
      if (completion.kind == Kind::closed) ++closed[completion.status];
      if (on_completion) on_completion(completion);
      next = now;
    }
    return next;
  }
  void connect(const Address& to, const ConnectionConfig& config) { shard.connect(to, config, now_); }
  void send(ConnectionId id) { EXPECT_EQ(shard.send_virtual(id, kWhole, 0), PostResult::ok); }
  void receive(ConnectionId id) { EXPECT_EQ(shard.receive_virtual(id, kWhole, 0), PostResult::ok); }

  static constexpr Bytes kWhole = Bytes{1} << 32;
  CheatingIo io;
  Shard shard;
  std::function<void(const Completion&)> on_completion;
  std::map<Status, int> closed;

 private:
  Nanos now_;
};

struct Shares {
  double honest = 0;  ///< rate in Mbit/s of UDP payload; `other` is the cheater's rate
  double other = 0;
  std::uint64_t found_out = 0;
};

enum class Who { other_connects, server_connects };

struct Scene {
  Cheating cheating{};
  ConnectionConfig config{};
  Who who = Who::other_connects;
  int connections = 1;     ///< number of connections of the cheating peer at one time
  bool alone = false;      ///< only the cheating peer uses the link
  bool renumbers = false;  ///< the cheating peer changes its address within the subnet after each detected violation
  Bytes buffer = 250'000;
  fabric::EcnConfig marking{};
  Nanos duration = 2_s;
};

Shares shares_of(const Scene& scene) {
  fabric::DumbbellConfig network_config;
  network_config.pairs = 2;
  network_config.bottleneck.rate = network_config.reverse.rate = Rate(1'000'000'000);
  network_config.bottleneck.delay = network_config.reverse.delay = 10_us;
  network_config.bottleneck.buffer_bytes = scene.buffer;
  network_config.bottleneck.ecn = scene.marking;
  sim::DumbbellOptions options;
  options.virtual_payload = true;
  sim::Dumbbell network(network_config, options);
  Program server(network.left(0));
  Program honest(network.right(0));
  Program cheater(network.right(1), scene.cheating);
  ConnectionConfig cheater_config = scene.config;
  if (scene.cheating.ack_every > 0) {
    cheater_config.ack_every = scene.cheating.ack_every;
    cheater_config.max_ack_delay = 1_ms;
  }
  for (auto* const program : {&server, &honest}) program->shard.listen(scene.config);
  cheater.shard.listen(cheater_config);
  network.attach(network.left(0), server);
  network.attach(network.right(0), honest);
  network.attach(network.right(1), cheater);
  SubnetAddresses addresses{network.right(0).address(), network.right(1).address()};
  if (scene.renumbers) server.io.addresses = &addresses;
  server.on_completion = [&](const Completion& completion) {
    if (completion.status == Status::violation) ++addresses.changes;
    if (completion.kind == Kind::accepted || completion.kind == Kind::connected) server.send(completion.connection);
    // The server reconnects to the cheating peer, like a program with unfinished work.
    if (completion.kind == Kind::closed && scene.who == Who::server_connects)
      server.connect(network.right(1).address(), scene.config);
  };
  honest.on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::connected) honest.receive(completion.connection);
  };
  cheater.on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::accepted || completion.kind == Kind::connected) cheater.receive(completion.connection);
    if (completion.kind == Kind::closed && scene.who == Who::other_connects)
      cheater.connect(network.left(0).address(), cheater_config);
  };
  if (!scene.alone) honest.connect(network.left(0).address(), scene.config);
  for (int i = 0; i < scene.connections; ++i)
    if (scene.who == Who::other_connects)
      cheater.connect(network.left(0).address(), cheater_config);
    else
      server.connect(network.right(1).address(), scene.config);
  network.run_until(scene.duration);
  const auto rate = [&](const Program& program) {
    return static_cast<double>(program.io.received) * 8e-6 / scene.duration.seconds();
  };
  const Shares shares{rate(honest), rate(cheater), server.shard.stats().violations};
  std::printf("honest %.1f other %.1f Mbit/s, found out %lu times\n", shares.honest, shares.other, shares.found_out);
  return shares;
}

TEST(Share, two_honest_receivers__share_evenly) {
  const Shares shares = shares_of({});
  EXPECT_GT(shares.honest, 450);
  EXPECT_GT(shares.other, 450);
  EXPECT_EQ(shares.found_out, 0U);
}

// The cheating peer receives a few hundred packets on each connection before the server detects the violation.
TEST(Share, who_acknowledges_what_was_lost__gains_nothing_by_connecting_again) {
  for (const Who who : {Who::other_connects, Who::server_connects}) {
    const Shares shares = shares_of({.cheating = {.lost = 1}, .who = who});
    EXPECT_LT(shares.other, 10);
    EXPECT_GT(shares.honest, 950);
    EXPECT_EQ(shares.found_out, 2U) << "at the beginning, and a second later";
  }
}

// The sender skips packet numbers on purpose. A skipped number leaves no gap in the bytes, but a loss does.
TEST(Share, who_tells_losses_by_missing_bytes__gains_nothing_from_honest_looking_gaps) {
  for (const char* algorithm : {"reno", "cubic"})
    for (const Who who : {Who::other_connects, Who::server_connects})
      for (const bool check : {false, true}) {
        Scene scene{.cheating = {.lost = 1, .by_bytes = true}, .who = who, .duration = 4_s};
        scene.config.congestion_control = algorithm;
        scene.config.check_peer = check;
        const Shares shares = shares_of(scene);
        if (check) {
          EXPECT_LT(shares.other, 50);
          EXPECT_GT(shares.honest, 900);
        } else {
          EXPECT_GT(shares.other, 800);
        }
      }
}

TEST(Share, who_does_so_with_many_connections__gains_little_more) {
  const Shares shares = shares_of({.cheating = {.lost = 1}, .connections = 16, .duration = 10_s});
  EXPECT_LT(shares.other, 30);
  EXPECT_GT(shares.honest, 930);
  EXPECT_LE(shares.found_out, 64U) << "16 after 0, 1, 3 and 7 s";
}

// A host may use any address of its IPv6 subnet. The server cannot refuse the whole subnet, because an honest neighbour
// uses it as well.
TEST(Share, who_does_so_from_a_new_address_each_time__gains_nothing) {
  for (const int connections : {1, 16}) {
    const Shares shares = shares_of({.cheating = {.lost = 1}, .connections = connections, .renumbers = true});
    EXPECT_LT(shares.other, 972.0 * connections / (1 + connections));
    EXPECT_GT(shares.found_out, 10U);
  }
}

// The sender may have skipped a single missing number on purpose. The cheating peer therefore conceals only losses of
// two or more packets in a row. It still reports single losses, and the sender reacts to them.
TEST(Share, who_conceals_no_single_losses__gains_nothing) {
  for (const Who who : {Who::other_connects, Who::server_connects}) {
    const Shares shares = shares_of({.cheating = {.lost = 2}, .who = who});
    EXPECT_LT(shares.other, 550);
    EXPECT_GT(shares.honest, 430);
  }
}

/// Returns a configuration of Swift with a fixed target delay. An operator must set this delay if peers are not
/// trusted.
ConnectionConfig swift() {
  ConnectionConfig config;
  config.congestion_control = "swift";
  auto parameters = std::make_shared<cc::Parameters>();
  parameters->edit<cc::Swift>().base_target = 100_us;
  config.parameters = parameters;
  return config;
}

TEST(Share, hops_that_are_not_there__give_no_more_than_a_few_would) {
  for (const std::uint8_t hops : {std::uint8_t{0}, std::uint8_t{255}}) {
    const Shares shares = shares_of({.cheating = {.hops = hops}, .config = swift()});
    EXPECT_GT(shares.honest, 470) << hops;
    EXPECT_LT(shares.other, 500) << hops;
  }
}

// No sender can verify how long a peer has held a packet. With check_peer, a peer must therefore not hold packets.
TEST(Share, holding_that_is_not_there__gains_nothing_where_peers_are_checked) {
  for (const Nanos held : {10_us, 50_us, 140_us})
    for (const bool check : {false, true}) {
      Scene scene{.cheating = {.held = held}, .config = swift()};
      scene.config.check_peer = check;
      const Shares shares = shares_of(scene);
      if (check) {
        EXPECT_GT(shares.honest, 450) << held.count;
        EXPECT_LT(shares.other, 520) << held.count;
      } else if (held == 50_us) {
        EXPECT_GT(shares.other, 900);
      }
    }
}

// With 31 connections, each flow sends less than one packet within the maximum acknowledgement delay.
TEST(Share, honest_peers_that_are_checked_under_swift__lose_nothing) {
  for (const int connections : {1, 31}) {
    for (const bool check : {false, true}) {
      Scene scene{.config = swift(), .connections = connections};
      scene.config.check_peer = check;
      const Shares shares = shares_of(scene);
      EXPECT_GT(shares.honest + shares.other, 955) << connections << check;
      EXPECT_NEAR(shares.honest, (shares.honest + shares.other) / (1 + connections), connections == 1 ? 25 : 12)
          << check;
    }
  }
}

Scene marking_scene(double hidden, bool check, const std::string& algorithm = "dctcp") {
  Scene scene;
  scene.cheating.hidden_marks = hidden;
  scene.config.congestion_control = algorithm;
  scene.config.ecn = true;
  scene.config.check_peer = check;
  scene.marking = {.enabled = true, .kmin_bytes = 30'000, .kmax_bytes = 30'000};
  return scene;
}

/// Returns a scene in which max_rate gives the senders the rate of their link.
Scene rated_scene(double hidden, bool check, const std::string& algorithm) {
  Scene scene = marking_scene(hidden, check, algorithm);
  scene.config.max_rate = Rate(1'000'000'000);
  return scene;
}

TEST(Share, marks_that_are_hidden__are_found_missing) {
  for (const double hidden : {1.0, 0.5, 0.2}) {
    const Shares shares = shares_of(marking_scene(hidden, true));
    EXPECT_LT(shares.other, 500) << hidden;
    EXPECT_GT(shares.honest, 450) << hidden;
    EXPECT_EQ(shares.found_out, 0U) << "the path may have cleared them";
  }
}

// The peer reports the right number of marked packets but too few marked bytes. The sender's tests do not detect this.
TEST(Share, bytes_of_marked_packets__are_not_what_the_peer_says) {
  for (const char* algorithm : {"dctcp", "dcqcn"})
    for (const double share : {0.5, 0.0}) {
      Scene scene = rated_scene(0, true, algorithm);
      scene.cheating.marked_bytes = share;
      const Shares shares = shares_of(scene);
      EXPECT_LT(shares.other, 530) << algorithm << share;
      EXPECT_GT(shares.honest, 440) << algorithm << share;
    }
}

TEST(Share, marks_that_come_together__are_to_be_told_each) {
  for (const std::uint32_t ack_every : {2U, 8U, 64U}) {
    Scene scene = marking_scene(0, true);
    scene.cheating.first_marks = true;
    scene.cheating.ack_every = ack_every;
    const Shares shares = shares_of(scene);
    EXPECT_LT(shares.other, 450) << ack_every;
    EXPECT_GT(shares.honest, 520) << ack_every;
  }
}

TEST(Share, marks_that_are_hidden__are_missed_though_acknowledgements_seem_to_lack_room) {
  Scene scene = marking_scene(1, true);
  scene.cheating.many_ranges = true;
  const Shares shares = shares_of(scene);
  EXPECT_LT(shares.other, 500);
  EXPECT_GT(shares.honest, 450);
}

TEST(Share, holding_that_is_not_there__hides_no_queue_where_marks_are_hidden) {
  for (const double hidden : {1.0, 0.5, 0.0}) {
    Scene scene = marking_scene(hidden, true);
    scene.cheating.held_queue = true;
    scene.cheating.no_ecn = hidden == 0;
    const Shares shares = shares_of(scene);
    EXPECT_LT(shares.other, 500) << hidden;
    EXPECT_GT(shares.honest, 450) << hidden;
  }
}

// An acknowledgement of a packet that contains only ACKs gives the sender no round-trip time. A peer that sends only
// such acknowledgements could hide a growing queue.
TEST(Share, acknowledging_up_to_what_asks_for_none__hides_no_queue) {
  for (const std::string algorithm : {"swift", "dctcp", "dcqcn"}) {
    Scene scene = rated_scene(algorithm == "swift" ? 0 : 1, true, algorithm);
    if (algorithm == "swift") {
      scene.config.parameters = swift().parameters;
      scene.marking = {};
    }
    scene.cheating.bare = true;
    scene.cheating.ack_every = 8;
    const Shares shares = shares_of(scene);
    EXPECT_LT(shares.other, 250) << algorithm;
    EXPECT_GT(shares.honest, 700) << algorithm;
  }
}

TEST(Share, packets_that_are_acknowledged_late__do_not_put_off_the_answer_to_losses) {
  for (const char* algorithm : {"reno", "cubic"})
    for (const Bytes buffer : {Bytes{30'000}, Bytes{60'000}}) {
      Scene scene{.cheating = {.late = 9_ms}, .buffer = buffer, .duration = 4_s};
      scene.config.congestion_control = algorithm;
      scene.config.check_peer = true;
      const Shares shares = shares_of(scene);
      EXPECT_LT(shares.other, 510) << algorithm << buffer;
      EXPECT_GT(shares.honest, 460) << algorithm << buffer;
    }
}

// The peer pretends that the path loses marked packets, because a loss reduces the rate less than a mark.
TEST(Share, marked_packets_that_are_said_to_be_lost__are_found_missing) {
  for (const char* algorithm : {"dctcp", "dcqcn"})
    for (const double dropped : {1.0, 0.9, 0.5}) {
      Scene scene = rated_scene(0, true, algorithm);
      scene.cheating.dropped_marks = dropped;
      const Shares shares = shares_of(scene);
      EXPECT_LT(shares.other, 300) << algorithm << dropped;
      EXPECT_GT(shares.honest, 650) << algorithm << dropped;
    }
}

TEST(Share, few_acknowledgements__tell_of_as_many_marks_as_many) {
  for (const bool last_first : {false, true})
    for (const char* algorithm : {"dctcp", "dcqcn"})
      for (const std::uint32_t ack_every : {4U, 8U}) {
        Scene scene = rated_scene(0, true, algorithm);
        scene.cheating.ack_every = ack_every;
        scene.cheating.last_first = last_first;
        const Shares shares = shares_of(scene);
        EXPECT_LT(shares.other, 540) << algorithm << ack_every << last_first;
        EXPECT_GT(shares.honest, 440) << algorithm << ack_every << last_first;
      }
}

// A switch, or an attacker on the path, clears the ECN field.
TEST(Share, one_ecn_field_that_is_cleared__turns_ecn_off_for_a_while_only) {
  for (const bool check : {false, true})
    for (const char* algorithm : {"dctcp", "dcqcn"}) {
      Scene scene = rated_scene(0, check, algorithm);
      scene.cheating.cleared = 1;
      scene.duration = 4_s;
      const Shares shares = shares_of(scene);
      EXPECT_NEAR(shares.other, 485, 80) << algorithm << check;
      EXPECT_NEAR(shares.honest, 485, 80) << algorithm << check;
    }
}

TEST(Share, path_that_is_said_to_clear_marks__is_judged_by_its_round_trip) {
  for (const bool check : {false, true}) {
    Scene scene = marking_scene(0, check);
    scene.cheating.no_ecn = true;
    const Shares shares = shares_of(scene);
    if (check) {
      EXPECT_LT(shares.other, 500);
      EXPECT_GT(shares.honest, 450);
    } else {
      EXPECT_GT(shares.other, 900);
    }
    EXPECT_EQ(shares.found_out, 0U) << "it may be true";
  }
  Scene scene = marking_scene(0, true);
  scene.cheating.no_ecn = scene.alone = true;
  EXPECT_GT(shares_of(scene).other, 900) << "and then costs little";
}

TEST(Share, marks_that_are_told__cost_nothing_to_check) {
  for (const bool check : {false, true}) {
    const Shares shares = shares_of(marking_scene(0, check));
    EXPECT_GT(shares.honest, 450);
    EXPECT_GT(shares.other, 450);
    EXPECT_EQ(shares.found_out, 0U);
  }
}

// Without check_peer, DCTCP trusts a peer that reports no marks. This peer then gets most of the link.
TEST(Share, marks_that_are_not_checked__pay_under_dctcp) {
  const Shares shares = shares_of(marking_scene(1, false));
  EXPECT_LT(shares.honest, 100);
  EXPECT_GT(shares.other, 900);
}

}  // namespace
}  // namespace mltcp::attack::share_test
