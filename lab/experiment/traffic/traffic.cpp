#include "mltcp/lab/experiment/traffic/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/transport/security/packet_key.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {

using namespace mltcp::literals;

namespace {

constexpr Nanos kTickTime = 2_ms;
constexpr Nanos kLongestOutage = 300_ms;
// Maximum time for which a shard repeats to the peer that a connection has ended: eight probe timeouts.
constexpr Nanos kLongestDraining = 10_s;
constexpr Nanos kLongestPhase = 3'600_s;
constexpr Bytes kCrampedBytes = 4096;
// Time limit for a message without progress. Applies to messages whose pieces the receiver accepts one by one.
constexpr Nanos kLongestStall = 120_s;
constexpr Bytes kMaxBytesOfARound = 64'000'000;  // limits the length of a round, so that a test can run many rounds
constexpr std::array<const char*, 6> kPhaseNames{"busy", "settling", "closing", "proving", "ending", "over"};

/// Returns a random number between `min` and `max`, uniform on a logarithmic scale.
double any_scale(Random& random, double min, double max) { return min * std::pow(max / min, random.uniform()); }

std::shared_ptr<const PacketKey> draw_key(Random& random, security::Protection protection) {
  std::array<std::byte, security::JobKey::kSize> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  const security::Secret<security::JobKey::kSize> secret{std::span<const std::byte, security::JobKey::kSize>(bytes)};
  return security::packet_key(security::JobKey(secret), protection, std::uint64_t{1} << (4 + random.below(9)));
}

}  // namespace

void TrafficCounts::add(const TrafficCounts& other) {
  connections += other.connections;
  messages += other.messages;
  bytes += other.bytes;
  operations += other.operations;
  refused += other.refused;
  restarts += other.restarts;
  stand_stills += other.stand_stills;
  faults.lost += other.faults.lost;
  faults.doubled += other.faults.doubled;
  faults.damaged += other.faults.damaged;
  faults.marked += other.faults.marked;
  faults.delayed += other.faults.delayed;
  faults.refused += other.faults.refused;
  faults.forged += other.faults.forged;
  faults.kept += other.faults.kept;
  faults.epochs += other.faults.epochs;
  faults.received += other.faults.received;
}

struct Traffic::Host final : public Pollable {
  Host(Traffic& of, std::size_t own_number, const Place& place, const PacketIo::Limits& limits, const Random& random)
      : traffic(of), number(own_number), address(place.address), below(*place.io), io(*place.io, limits, random) {}
  Nanos poll(Nanos now) override { return traffic.poll(*this, now); }
  [[nodiscard]] std::size_t connections() const { return sides.size() + introductions.size(); }

  Traffic& traffic;
  const std::size_t number;
  const Address address;
  PacketIo& below;
  FaultyIo io;
  ShardConfig shard_config;
  ConnectionConfig listens_with;
  std::unique_ptr<Shard> shard;
  JobId job = 0;
  std::map<ConnectionId, Side> sides;
  std::map<ConnectionId, Introduction> introductions;
  Nanos next_act;
  Nanos stands_until;
  bool has_timer = false;  ///< true if the shard has set a timer, in addition to that of its PacketIo
};

Traffic::Traffic(const TrafficSettings& settings, const std::vector<Place>& places)
    : settings_(settings), random_(Random::stream(settings.seed, 1)) {
  draw_settings();
  for (const Place& place : places) {
    PacketIo::Limits limits = place.io->limits();
    limits.virtual_payload = false;
    limits.keeps_payload_from = below(2) == 0 ? 0 : static_cast<std::uint32_t>(1 + below(1000));
    if (below(4) == 0) limits.burst = std::min(limits.burst, static_cast<std::uint32_t>(1 + below(8)));
    if (below(4) == 0)
      limits.max_packet_bytes = static_cast<std::uint32_t>(wire::kSmallestPacket +
                                                           below(limits.max_packet_bytes - wire::kSmallestPacket + 1));
    limits.batch = std::min<std::uint32_t>(below(3) == 0 ? 4 : 1, limits.burst);
    Host& host = *hosts_.emplace_back(std::make_unique<Host>(*this, hosts_.size(), place, limits,
                                                             Random::stream(settings.seed, 100 + hosts_.size())));
    ShardConfig& shard = host.shard_config;
    shard.max_connections = static_cast<std::uint32_t>(max_links_ + 2 + below(16));
    if (below(2) == 0) shard.max_half_open = static_cast<std::uint32_t>(below(4));
    if (below(4) == 0) shard.max_accepted_per_address = static_cast<std::uint32_t>(1 + below(max_links_ + 1));
    shard.reassembly_bytes = below(2) == 0 ? Bytes{1} << (8 + below(8)) : Bytes{4} << 20;
    shard.max_jobs = 2;
    shard.max_completions = static_cast<std::uint32_t>(64 << below(5));
    shard.max_zero_copy_sends = static_cast<std::uint32_t>(below(3) == 0 ? 0 : 1 + below(32));
    shard.prefetch = below(2) == 0;
    shard.seed = random_.next();
    host.listens_with = draw_connection();
    host.listens_with.keys = keys_;
    start(host);
  }
}

Traffic::~Traffic() = default;

void Traffic::draw_settings() {
  // Half of the rounds have no keys. In these rounds only checksums and tags reject wrong packets.
  const std::uint64_t protection = below(4);
  if (protection > 1) {
    const auto how = protection == 2 ? security::Protection::encrypt : security::Protection::authenticate;
    for (std::uint64_t keys = 1 + below(2); keys > 0; --keys) keys_.push_back(draw_key(random_, how));
    strange_key_ = draw_key(random_, how);
  }
  max_links_ = 1 + below(12);
  constexpr std::array<Bytes, 6> sizes{64, 1000, 5000, 20'000, 200'000, 1'000'000};
  max_bytes_ = sizes[below(sizes.size())];
  depth_ = 1 + below(std::clamp<Bytes>(2'000'000 / max_bytes_, 1, 16));
  pace_ = Nanos(
      static_cast<std::int64_t>(settings_.real_time ? any_scale(random_, 100e3, 2e6) : any_scale(random_, 10e3, 1e6)));
  patient_ = settings_.real_time ? 5_s : std::array{300_ms, 1_s, 3_s}[below(3)];
  // In half of the rounds in virtual time, shards do not give up silent peers. So no connection ends because its peer
  // is silent.
  is_endless_ = !settings_.real_time && below(2) == 0;
  give_up_after_ = is_endless_ ? Nanos(1'000'000'000'000) : patient_;
  badness_ = below(4) == 0 ? 0 : random_.uniform();
  // The ids of a shard's first connections contain only 12 bits of the shard's seed. So a restarted shard may reuse an
  // id. With keys, packets of the old connection are then invalid and get no RESET. If silent peers are not given up,
  // the peer of the old connection would never end.
  const bool may_restart = !is_endless_ || keys_.empty();
  restarting_ = below(3) == 0 && may_restart ? any_scale(random_, 1e-4, 1e-2) : 0;
  standing_ = below(3) == 0 ? any_scale(random_, 1e-4, 1e-2) : 0;
  ending_ = any_scale(random_, 1e-4, 3e-2);
  with_jobs_ = below(2) == 0;
  with_deadlines_ = below(2) == 0;
  // The timeouts of probes double while no answer arrives. After an outage, the next probe is sent within the length of
  // the outage.
  stall_bound_ = std::max(settings_.real_time ? 8_s : 3_s, patient_ * 2 + 1_s);
  // If a receiver has refused pieces, the sender sends data again only after eight failed probes, and then two pieces
  // per probe.
  if (is_endless_) stall_bound_ = kLongestStall;
  // The give-up time may pass twice: first for a connection, and then for its close. A half-open connection lasts for
  // up to three seconds.
  patience_ = patient_ * 4 + (settings_.real_time ? 10_s : 4_s);
}

ConnectionConfig Traffic::draw_connection() {
  const auto algorithms = cc::algorithms();
  const cc::AlgorithmTable& algorithm = *algorithms[below(algorithms.size())];
  ConnectionConfig config;
  config.congestion_control = algorithm.name;
  config.ecn = algorithm.capabilities.needs_ecn || below(2) == 0;
  config.check_peer = config.ecn;
  config.max_rate = Rate(10'000'000'000);  // initial rate of DCQCN
  config.full_integrity = below(2) == 0;
  config.pack_messages = below(2) == 0;
  config.credit_in_acks = below(4) != 0;
  config.await_answer = below(2) == 0;
  config.max_sends = static_cast<std::uint32_t>(depth_ + below(4));
  config.max_receives = static_cast<std::uint32_t>(depth_ + 1 + below(4));
  config.max_packets_in_flight = below(3) == 0 ? 16 : 4096;
  config.ack_every = static_cast<std::uint32_t>(1 + below(4));
  config.adapt_ack_ratio = below(2) == 0;
  config.priority = static_cast<std::uint8_t>(below(8));
  config.give_up_after = give_up_after_;
  if (below(3) == 0) config.keep_alive = patient_;
  if (below(4) == 0 && !is_endless_) config.idle_limit = patient_ * 3;
  return config;
}

Pollable& Traffic::pollable(std::size_t host) { return *hosts_[host]; }
PacketIo& Traffic::io(std::size_t host) { return hosts_[host]->io; }

void Traffic::start(Host& host) {
  host.shard = std::make_unique<Shard>(host.io, host.shard_config);
  host.shard->listen(host.listens_with);
  JobConfig job;
  job.number = static_cast<std::uint32_t>(host.number + 1);
  job.augmentation = cc::Augmentation::mltcp({});
  job.learn_iterations = below(2) == 0;
  host.job = host.shard->add_job(job);
}

void Traffic::restart(Host& host) {
  ++counts_.restarts;
  host.io.forget();
  host.shard.reset();
  for (const auto& [id, side] : host.sides) {
    end_of(side).ended = true;
    out_of(side).lose_sender();
    in_of(side).lose_receiver();
  }
  host.sides.clear();
  host.introductions.clear();
  host.shard_config.seed = random_.next();
  start(host);
}

// ---- Steps ----

Nanos Traffic::poll(Host& host, Nanos now) {
  now_ = std::max(now_, now);
  if (began_.count < 0) {
    began_ = phase_since_ = next_tick_ = next_weather_ = well_since_ = now_;
    for (const auto& one : hosts_) one->next_act = now_;
  }
  if (now_ >= next_tick_) tick(now_);
  host.io.set_time(now_);
  if (host.stands_until > now_) {
    host.io.absorb();
    return std::min(host.stands_until, next_tick_);
  }

  std::array<Completion, 16> taken;
  Nanos next = host.shard->poll(now_);
  while (const std::size_t count = host.shard->take_completions(taken)) {
    for (const Completion& completion : std::span(taken).first(count)) take(host, completion);
    next = now_;
  }
  check(host);
  host.has_timer = next != host.io.deadline();
  if (phase_ == Phase::busy && now_ >= host.next_act) {
    act(host);
    host.next_act = now_ + up_to(pace_ * 2);
    next = now_;
  }
  if (phase_ == Phase::over) return next;
  next = std::min(next, next_tick_);
  return phase_ == Phase::busy ? std::min(next, host.next_act) : next;
}

void Traffic::check(const Host& host) const {
  const ShardStats& stats = host.shard->stats();
  require(stats.hole_bytes <= host.shard_config.reassembly_bytes, "holes take more memory than allowed");
  if (host.shard_config.max_half_open)
    require(stats.half_open <= *host.shard_config.max_half_open, "more connections are half open than allowed");
  require(stats.connections <= host.shard_config.max_connections, "more connections than allowed");
  require(stats.ends_held <= host.shard_config.max_zero_copy_sends, "more ends are held than there are payloads");
  // A shard may have removed an ended connection although the program has not yet taken the connection's last
  // completion.
  require(host.connections() <= stats.connections + stats.ends_held,
          "a connection is gone without a completion of its end");
}

void Traffic::take(Host& host, const Completion& completion) {
  using Kind = Completion::Kind;
  if (completion.kind == Kind::accepted) {
    Introduction& introduction = host.introductions[completion.connection];
    require(introduction.buffer.empty() && !host.sides.contains(completion.connection),
            "the connection is opened twice");
    introduction.buffer.resize(kHelloBytes);
    // Without a buffer for the first message, which identifies the connection, the connection is useless.
    if (host.shard->receive(completion.connection, introduction.buffer, 0) == PostResult::queue_full)
      static_cast<void>(host.shard->abort(completion.connection, now_));
    return;
  }
  const auto known = host.sides.find(completion.connection);
  if (known == host.sides.end()) return take_introduction(host, completion);
  const Side side = known->second;
  End& end = end_of(side);
  switch (completion.kind) {
    case Kind::connected:
      require(side.is_client && !end.open, "the connection is opened twice");
      require(!links_[side.link].has_no_key, "a connection without the key is accepted");
      end.open = true;
      return;
    case Kind::sent:
      ++counts_.operations;
      return out_of(side).on_sent(completion.tag, completion.status);
    case Kind::received: {
      ++counts_.operations;
      const std::uint64_t tag = completion.tag >= kDiscardedTag ? completion.tag - kDiscardedTag : completion.tag;
      Ledger& in = in_of(side);
      const std::uint64_t before = in.delivered();
      counts_.bytes += in.on_received(tag, completion.status, completion.bytes);
      counts_.messages += in.delivered() - before;
      return;
    }
    case Kind::closed:
      require(out_of(side).sends_open() == 0 && in_of(side).receives_open() == 0,
              "a connection ends before the operations posted to it");
      end.ended = true;
      end.how = completion.status;
      // A reachable peer that has ended the connection, or that never knew it, answers with RESET.
      require(!is_endless_ || other_end_of(side).id == 0 || end.how != Status::unreachable || !end.open ||
                  counts_.restarts > 0 || other_end_of(side).closing || other_end_of(side).ended,
              "a connection is given up although its peer is reachable");
      if (side.is_client && !end.open) ++counts_.refused;
      host.sides.erase(known);
      return;
    case Kind::accepted:
      return;
  }
}

void Traffic::take_introduction(Host& host, const Completion& completion) {
  const auto known = host.introductions.find(completion.connection);
  require(known != host.introductions.end(), "a completion after the connection's last");
  if (completion.kind == Completion::Kind::closed) {
    host.introductions.erase(known);
    return;
  }
  require(completion.kind == Completion::Kind::received && completion.tag == 0, "a completion without an operation");
  if (completion.status != Status::ok) return;  // the receive failed because the connection is about to end
  std::vector<std::byte> hello = std::move(known->second.buffer);
  host.introductions.erase(known);
  bind(host, completion.connection, completion, std::move(hello));
}

void Traffic::bind(Host& host, ConnectionId id, const Completion& completion, std::vector<std::byte> hello) {
  const Ledger::Name name = Ledger::name_of(std::span<const std::byte>(hello).first<Ledger::kNameBytes>());
  require(name.stream % 2 == 0 && name.stream / 2 < links_.size() && name.serial == 0,
          "a connection begins with bytes that were not sent");
  const std::size_t number = name.stream / 2;
  Link& link = links_[number];
  require(link.server.host == host.number && link.server.id == 0, "a connection is accepted twice");
  require(!link.has_no_key, "a message from a peer without the key");
  const Address* const from = host.shard->remote(id);
  require(from == nullptr || *from == hosts_[link.client.host]->address, "a connection from a wrong address");
  link.server.id = id;
  link.server.open = true;
  link.down_watch.since = link.up_watch.since = now_;
  host.sides[id] = {.link = number, .is_client = false};
  const std::span<std::byte> buffer = link.up.make_buffer(kHelloBytes);
  std::copy(hello.begin(), hello.end(), buffer.begin());
  counts_.bytes += link.up.on_received(0, completion.status, completion.bytes);
  ++counts_.messages;
  ++counts_.connections;
}

// ---- Phases ----

void Traffic::go_to(Phase phase) {
  phase_ = phase;
  phase_since_ = now_;
}

void Traffic::tick(Nanos now) {
  next_tick_ = now + kTickTime;
  // A closing connection first sends its remaining data, however long that takes. So `patience_` limits the time since
  // the latest progress.
  if (const std::uint64_t before = std::exchange(progress_, progress()); before != progress_) progress_since_ = now;
  require(now - phase_since_ <= kLongestPhase, "a round does not end");
  const bool impatient = now - std::max(phase_since_, progress_since_) > patience_;
  const auto expects = [this](Link& link) {
    return is_expected({link.up, link.client, link.server, link.up_watch}) ||
           is_expected({link.down, link.server, link.client, link.down_watch});
  };
  switch (phase_) {
    case Phase::busy:
      if (now - began_ >= settings_.busy || counts_.bytes >= kMaxBytesOfARound || wants_end_) {
        make_well();
        go_to(Phase::settling);
      } else if (now >= next_weather_) {
        change_weather();
      }
      return watch();
    case Phase::settling:
      watch();
      if (now - phase_since_ < 10_ms || std::ranges::any_of(links_, expects)) return;
      close_all();
      return go_to(Phase::closing);
    case Phase::closing:
      close_all();  // again at each tick, because more connections may have been accepted
      if (!all_ended()) return require(!impatient, "a connection does not end");
      if (!is_quiet())
        return require(!impatient || (has_connections() && now - phase_since_ <= patience_ + kLongestDraining),
                       "a timer is due after the end of all connections");
      prove();
      return go_to(Phase::proving);
    case Phase::proving: {
      const bool proven = std::ranges::all_of(links_, [](const Link& link) {
        return !link.is_proof || (link.server.open && link.up.sends_open() == 0 && link.up.delivered() == 1);
      });
      if (!proven) return require(!impatient, "a new connection does not work");
      close_all();
      return go_to(Phase::ending);
    }
    case Phase::ending:
      close_all();
      if (!all_ended()) return require(!impatient, "a new connection does not end");
      if (!is_quiet())
        return require(!impatient || (has_connections() && now - phase_since_ <= patience_ + kLongestDraining),
                       "a timer is due after the end of all connections");
      expect_nothing_left();
      return go_to(Phase::over);
    case Phase::over:
      return;
  }
}

void Traffic::make_well() {
  for (const auto& host : hosts_) {
    host->io.set_faults({});
    host->stands_until = {};
    static_cast<void>(host->shard->set_job_rate(host->job, Rate(0)));
  }
  is_well_ = true;
  well_since_ = now_;
}

void Traffic::change_weather() {
  next_weather_ = now_ + up_to(kLongestOutage);
  if (badness_ == 0 || below(2) == 0) {
    if (!is_well_) well_since_ = now_;
    is_well_ = true;
    for (const auto& host : hosts_) host->io.set_faults({});
    return;
  }
  is_well_ = false;
  const auto maybe = [this](double max) { return below(2) == 0 ? random_.uniform() * max * badness_ : 0; };
  for (const auto& host : hosts_) {
    Faults faults;
    faults.loss = below(8) == 0 ? 1 : maybe(0.3);
    faults.duplication = maybe(0.3);
    faults.corruption = maybe(0.3);
    faults.marking = maybe(1);
    faults.delaying = maybe(0.5);
    faults.max_delay = Nanos(static_cast<std::int64_t>(any_scale(random_, 10e3, 50e6)));
    faults.refusal = maybe(0.5);
    faults.forgery = maybe(0.5);
    host->io.set_faults(faults);
  }
}

bool Traffic::is_expected(const Direction& direction) const {
  if (!direction.sender.is_live()) return false;
  // The server always has a buffer for the client's first message, which identifies the connection.
  if (direction.receiver.id == 0 && !direction.receiver.ended) return direction.ledger.sends_open() > 0;
  return direction.receiver.is_live() && direction.ledger.sends_open() > 0 && direction.ledger.receives_open() > 0;
}

void Traffic::watch() {
  for (Link& link : links_) {
    if (link.client.ended) continue;
    watch({link.up, link.client, link.server, link.up_watch});
    watch({link.down, link.server, link.client, link.down_watch});
  }
}

void Traffic::watch(const Direction& direction) {
  Watch& watch = direction.watch;
  std::uint64_t messages = direction.ledger.sends() - direction.ledger.sends_open() + direction.ledger.delivered();
  Bytes end_of_next = 0;
  if (direction.receiver.id != 0 && !direction.receiver.ended) {
    const auto stats = hosts_[direction.receiver.host]->shard->stats(direction.receiver.id);
    if (stats) {
      messages += stats->messages_received;
      end_of_next = stats->end_of_next;
    }
  }
  const bool moves = messages != watch.messages || end_of_next != watch.end_of_next;
  if (!is_well_ || moves || !is_expected(direction) || hosts_[direction.sender.host]->stands_until > now_ ||
      hosts_[direction.receiver.host]->stands_until > now_) {
    watch.since = now_;
    watch.between = {};
  }
  watch.messages = messages;
  watch.end_of_next = end_of_next;
  // If the processor did other work, the host measures long round trips. It paces packets by these until the next
  // packet arrives.
  if (now_ - watch.since > kLongestOutage) watch.between = std::max(watch.between, between_packets(direction.sender));
  // With very little memory for holes, a receiver accepts only data that directly follows the data that it has
  // received. But the sender repeats lost pieces in the order in which it detected their losses.
  const bool is_cramped = hosts_[direction.receiver.host]->shard_config.reassembly_bytes < kCrampedBytes;
  if (now_ - watch.since <= (is_cramped ? kLongestStall : stall_bound_)) return;
  require(now_ - watch.since <= stall_bound_ + watch.between * 2,
          "a message that has a buffer makes no progress over a network without faults");
}

// Swift's minimum congestion window is a hundredth of a packet. With this window and a round-trip time of 50 ms, a
// sender sends one packet in 5 s.
Nanos Traffic::between_packets(const End& sender) const {
  constexpr double longest = 20e9;
  const auto stats = hosts_[sender.host]->shard->stats(sender.id);
  if (!stats || stats->pacing_rate.is_zero() || stats->cwnd_bytes >= stats->packet_bytes) return {};
  const double between = stats->packet_bytes * 8e9 / static_cast<double>(stats->pacing_rate.bits_per_second);
  return Nanos(static_cast<std::int64_t>(std::min(between, longest)));
}

void Traffic::close_all() {
  for (const auto& host : hosts_) {
    for (const auto& [id, side] : host->sides) {
      End& end = end_of(side);
      if (!std::exchange(end.closing, true)) static_cast<void>(host->shard->close(id));
    }
    // Closes accepted connections that no client has identified yet. Most of these end when the client identifies or
    // closes them. A connection from a duplicate CONNECT has no client, so the shard gives it up only after
    // give_up_after. If give_up_after is endless, these connections are aborted.
    for (const auto& [id, introduction] : host->introductions)
      static_cast<void>(is_endless_ ? host->shard->abort(id, now_) : host->shard->close(id));
  }
}

bool Traffic::all_ended() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->connections() == 0; });
}

// A shard stores an ended connection until the peer knows of the end.
bool Traffic::is_quiet() const {
  return std::ranges::all_of(hosts_, [](const auto& host) {
    return host->shard->stats().connections == 0 && !host->has_timer && !host->io.holds_packets();
  });
}

bool Traffic::has_connections() const {
  return std::ranges::any_of(hosts_, [](const auto& host) { return host->shard->stats().connections > 0; });
}

std::uint64_t Traffic::progress() const {
  std::uint64_t progress = 0;
  for (const auto& host : hosts_) {
    for (const auto& [id, side] : host->sides) {
      const auto stats = host->shard->stats(id);
      if (stats) progress += stats->end_of_next;
    }
  }
  return progress + counts_.bytes + counts_.operations;
}

void Traffic::prove() {
  for (const auto& host : hosts_)
    require(connect(*host, (host->number + 1) % hosts_.size(), true),
            "no connection can be opened after all have ended");
}

void Traffic::expect_nothing_left() {
  for (const Link& link : links_) {
    link.up.expect_all_done();
    link.down.expect_all_done();
  }
  for (const auto& host : hosts_) {
    const ShardStats& stats = host->shard->stats();
    require(stats.half_open == 0, "connections are half open after the end of all");
    require(stats.ends_held == 0, "an end is held after the end of all connections");
    require(stats.hole_bytes == 0, "holes take memory after the end of all connections");
  }
}

// ---- What programs do ----

void Traffic::act(Host& host) {
  if (random_.chance(restarting_)) return restart(host);
  if (random_.chance(standing_)) {
    ++counts_.stand_stills;
    host.stands_until = now_ + up_to(50_ms);
    return;
  }
  if (host.sides.empty() || (host.connections() < max_links_ && below(8) == 0)) {
    // With two sides, the numbers of client and server must differ by an odd number.
    std::size_t to = below(hosts_.size());
    if (settings_.two_sides && (to + host.number) % 2 == 0) to = (to + 1) % hosts_.size();
    if (to == host.number) to = (to + 1) % hosts_.size();
    if (host.connections() < max_links_) static_cast<void>(connect(host, to, false));
    return;
  }
  const auto chosen = std::next(host.sides.begin(), static_cast<std::ptrdiff_t>(below(host.sides.size())));
  act_on(host, chosen->second);
}

bool Traffic::connect(Host& host, std::size_t to, bool is_proof) {
  ConnectionConfig config = draw_connection();
  bool has_no_key = false;
  if (!keys_.empty()) {
    has_no_key = !is_proof && below(16) == 0;
    if (!has_no_key)
      config.keys = {keys_[below(keys_.size())]};
    else if (below(2) == 0)
      config.keys = {strange_key_};
  }
  ConnectionId id = 0;
  try {
    id = host.shard->connect(hosts_[to]->address, config, now_);
  } catch (const RunError&) {
    return false;  // the shard has its maximum number of connections
  }
  const std::size_t number = links_.size();
  Link& link = links_.emplace_back(static_cast<std::uint32_t>(number), host.number, to);
  link.client.id = id;
  link.has_no_key = has_no_key;
  link.is_proof = is_proof;
  link.up_watch.since = link.down_watch.since = now_;
  host.sides[id] = {.link = number, .is_client = true};
  if (with_jobs_ && below(2) == 0) static_cast<void>(host.shard->attach(id, host.job));
  const PostResult posted = host.shard->send(id, link.up.make(kHelloBytes), 0);
  require(posted == PostResult::ok || posted == PostResult::queue_full, "a new connection accepts no message");
  if (posted == PostResult::ok) return true;
  // The shard has no room for another completion. Close the connection, because its first message, which identifies it,
  // cannot be sent.
  link.up.take_back();
  link.client.closing = true;
  static_cast<void>(host.shard->close(id));
  return !is_proof;
}

Nanos Traffic::deadline() { return with_deadlines_ && below(16) == 0 ? now_ + up_to(50_ms) : Nanos::never(); }

void Traffic::post_sends(Host& host, Link& link, const Side& side, std::uint64_t max) {
  Ledger& out = side.is_client ? link.up : link.down;
  const ConnectionId id = side.is_client ? link.client.id : link.server.id;
  for (; max > 0 && out.sends_open() < depth_; --max) {
    const Bytes bytes = below(3) == 0 ? below(std::min<Bytes>(max_bytes_, 200) + 1) : below(max_bytes_ + 1);
    const auto message = out.make(bytes);
    const auto uncharged = static_cast<std::uint8_t>(below(4) == 0 ? std::min<Bytes>(bytes, below(40)) : 0);
    if (host.shard->send(id, message, out.sends() - 1, deadline(), uncharged) == PostResult::ok) continue;
    return out.take_back();
  }
}

void Traffic::post_receives(Host& host, Link& link, const Side& side, std::uint64_t max) {
  Ledger& in = side.is_client ? link.down : link.up;
  const ConnectionId id = side.is_client ? link.client.id : link.server.id;
  for (; max > 0 && in.receives_open() < depth_; --max) {
    const auto buffer = in.make_buffer(below(16) == 0 ? below(max_bytes_ + 1) : max_bytes_ + below(16));
    if (host.shard->receive(id, buffer, in.receives() - 1, deadline()) == PostResult::ok) continue;
    return in.take_back_buffer();
  }
}

void Traffic::act_on(Host& host, const Side& side) {
  Link& link = links_[side.link];
  End& end = end_of(side);
  Ledger& out = out_of(side);
  Ledger& in = in_of(side);
  if (end.closing || link.has_no_key) return;
  if (random_.chance(ending_)) {
    end.closing = true;
    static_cast<void>(below(3) == 0 ? host.shard->abort(end.id, now_) : host.shard->close(end.id));
    return;
  }
  // Returns one of the last eight operations. Callers make sure that it is not the first operation, which identifies
  // the connection.
  const auto recent = [this](std::uint64_t count) { return count - 1 - below(std::min<std::uint64_t>(count, 8)); };
  switch (below(16)) {
    case 0:
      if (out.sends() > 9) static_cast<void>(host.shard->cancel_send(end.id, recent(out.sends())));
      return;
    case 1:
      if (in.receives() > 9) static_cast<void>(host.shard->cancel_receive(end.id, recent(in.receives())));
      return;
    case 2: {
      if (in.receives() <= 9) return;
      const std::uint64_t tag = recent(in.receives());
      if (host.shard->discard_receive(end.id, tag, tag + kDiscardedTag)) in.discard(tag);
      return;
    }
    case 3:
      if (with_jobs_) act_on_job(host, end.id);
      return;
    default:
      post_sends(host, link, side, 1 + below(depth_));
      post_receives(host, link, side, 1 + below(depth_));
  }
}

void Traffic::act_on_job(Host& host, ConnectionId id) {
  switch (below(4)) {
    case 0:
      static_cast<void>(host.shard->begin_iteration(host.job, below(2) == 0 ? 0 : below(20 * max_bytes_)));
      return;
    case 1:
      static_cast<void>(host.shard->learn_iterations(host.job));
      return;
    case 2:
      static_cast<void>(host.shard->set_job_rate(
          host.job, below(2) == 0 ? Rate(0) : Rate(static_cast<std::uint64_t>(any_scale(random_, 10e6, 10e9)))));
      return;
    default:
      static_cast<void>(host.shard->attach(id, host.job));
  }
}

// ---- For people ----

TrafficCounts Traffic::counts() const {
  TrafficCounts counts = counts_;
  for (const auto& host : hosts_) counts.add({.faults = host->io.counts()});
  return counts;
}

std::string Traffic::state() const {
  const auto when = [this](Nanos time) {
    return time < now_ ? to_text(now_ - time) + " ago" : "in " + to_text(time - now_);
  };
  std::string text = fmt::format(
      "phase {} for {}, {} after the beginning; the network is {} for {}; keys: {}, messages to {} bytes, {} at a "
      "time, "
      "given up after {}\n",
      kPhaseNames[static_cast<std::size_t>(phase_)], to_text(now_ - phase_since_), to_text(now_ - began_),
      is_well_ ? "without faults" : "faulty", to_text(now_ - well_since_), keys_.size(), max_bytes_, depth_,
      to_text(give_up_after_));
  for (const auto& host : hosts_) {
    if (host->shard == nullptr) continue;
    const ShardStats& stats = host->shard->stats();
    text += fmt::format(
        "host {}: {} connections, {} places taken, {} half open, {} bytes of holes, {}, {}, {} packets in, {} out\n",
        host->number, host->connections(), stats.connections, stats.half_open, stats.hole_bytes,
        host->stands_until > now_ ? "paused" : "running", host->has_timer ? "has a timer" : "waits for packets",
        stats.packets_received, stats.packets_sent);
    for (const auto& [id, side] : host->sides) {
      const Link& link = links_[side.link];
      const End& end = side.is_client ? link.client : link.server;
      const Ledger& out = side.is_client ? link.up : link.down;
      const Ledger& in = side.is_client ? link.down : link.up;
      text += fmt::format("  {} {} of link {} to host {}{}{}: {} sends of {} and {} receives of {} open, {} arrived",
                          side.is_client ? "client" : "server", id, side.link,
                          side.is_client ? link.server.host : link.client.host, end.open ? "" : ", not open",
                          end.closing ? ", closing" : "", out.sends_open(), out.sends(), in.receives_open(),
                          in.receives(), in.delivered());
      if (const auto of = host->shard->stats(id))
        text += fmt::format(
            "; {}, {}, window {:.0f}, {} in flight, paced at {}, RTT {}, {} packets out, {} in, {} lost, {} messages "
            "and {} bytes in",
            of->held_until.is_never() ? "not held" : "held until " + when(of->held_until),
            of->due.is_never() ? "no timer" : "due " + when(of->due), of->cwnd_bytes, of->in_flight,
            to_text(of->pacing_rate), to_text(of->smoothed_rtt), of->packets_sent, of->packets_received,
            of->lost_packets, of->messages_received, of->end_of_next);
      text += '\n';
    }
    for (const auto& [id, introduction] : host->introductions)
      text += fmt::format("  {}: has not identified itself\n", id);
  }
  for (const Link& link : links_)
    if (link.is_proof && link.client.ended)
      text += fmt::format("the new connection of host {} to host {} has ended: {}\n", link.client.host,
                          link.server.host, to_text(link.client.how));
  return text;
}

}  // namespace mltcp::experiment
