// Measures the cost that an endpoint adds to its shard, and the cost of matching tags. The network consists of two
// hosts in one process that pass packets to each other directly. So only the work of the transport and of the endpoint
// is measured.
//
// The compared cases alternate within one run. A counter shows the result of the comparison:
//
//   Message    a message of 64 bytes, through shards and through endpoints, both ends in one thread; the time is
//              per operation, and a message has two operations, a send and a receive
//   Tagged     a tagged message with 10 and with 10,000 receives posted; `over_few` is the ratio of their times
//   Handover   the time from a post in one thread to its callback in a second thread, which spins; also the time of the
//              posting call. Needs two CPUs without other load:
//              chrt -f 50 build/bin/endpoint_bench --benchmark_filter=Handover
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/shard.h"

namespace {

using namespace mltcp;
using namespace mltcp::endpoint;

constexpr std::size_t kMessageBytes = 64;

/// The packet interface of a host. A ring of fixed buffers stores its packets. One thread uses both hosts of a pair.
class BenchIo final : public PacketIo {
 public:
  explicit BenchIo(const Address& address) : address_(address) {
    for (Packet& packet : packets_) packet.bytes.resize(1472);
  }
  ~BenchIo() override {
    if (peer != nullptr) peer->peer = nullptr;
  }
  BenchIo(const BenchIo&) = delete;
  BenchIo& operator=(const BenchIo&) = delete;
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override {
    begin_ = lent_;
    std::size_t count = 0;
    for (; count < out.size() && lent_ != end_; ++count, ++lent_) {
      const Packet& packet = packets_[lent_ % kPackets];
      out[count] = {};
      out[count].source = packet.from;
      out[count].bytes = std::span(packet.bytes).first(packet.length);
    }
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override {
    if (peer == nullptr) return packets.size();  // without a peer, packets are lost
    std::size_t count = 0;
    for (const TxPacket& packet : packets) {
      if (peer->end_ - peer->begin_ == kPackets) break;
      Packet& copy = peer->packets_[peer->end_ % kPackets];
      std::memcpy(copy.bytes.data(), packet.header.data(), packet.header.size());
      if (!packet.payload.empty())
        std::memcpy(copy.bytes.data() + packet.header.size(), packet.payload.data(), packet.payload.size());
      copy.length = packet.header.size() + packet.payload.size();
      copy.from = address_;
      ++peer->end_;
      ++count;
    }
    return count;
  }

  BenchIo* peer = nullptr;
  [[nodiscard]] const Address& address() const { return address_; }

 private:
  struct Packet {
    Address from;
    std::vector<std::byte> bytes;
    std::size_t length = 0;
  };
  static constexpr std::size_t kPackets = 512;
  Limits limits_;
  Address address_;
  std::array<Packet, kPackets> packets_;
  std::size_t begin_ = 0;
  std::size_t lent_ = 0;
  std::size_t end_ = 0;
};

/// The datapath of a device "bench:". The second host that is opened is connected to the first one.
class BenchDatapath final : public HostDatapath {
 public:
  BenchDatapath() : time_(clock()) {}
  [[nodiscard]] std::string description() const override { return "two hosts of one thread"; }
  [[nodiscard]] std::uint32_t mtu() const override { return 1500; }
  [[nodiscard]] TimeSource& time() override { return time_; }
  [[nodiscard]] std::string why_link_is_down() const override { return {}; }
  void take_place(const HostPlace& place) override {
    io_ = std::make_unique<BenchIo>(place.address);
    static BenchIo* first = nullptr;
    if (first == nullptr) {
      first = io_.get();
      return;
    }
    io_->peer = first;
    first->peer = io_.get();
    first = nullptr;
  }
  [[nodiscard]] std::uint16_t shards() const override { return 1; }
  [[nodiscard]] PacketIo& io(std::uint16_t /*shard*/) override { return *io_; }
  bool resolve(std::uint16_t /*shard*/, const Address& /*destination*/) override { return true; }
  [[nodiscard]] DatapathLosses losses() const override { return {}; }

  static const Clock& clock() {
    static const Clock calibrated = [] {
      Clock clock;
      Clock::sleep(Nanos(100'000'000));
      clock.calibrate();
      return clock;
    }();
    return calibrated;
  }

 private:
  SystemTime time_;
  std::unique_ptr<BenchIo> io_;
};

EndpointConfig config_of(std::uint32_t host) {
  register_host_datapath({.name = "bench",
                          .forms = "bench:",
                          .takes = [](std::string_view device) { return device == "bench:"; },
                          .check = [](const HostDatapathConfig&, const HostPlace&) {},
                          .open = [](const HostDatapathConfig&) -> std::unique_ptr<HostDatapath> {
                            return std::make_unique<BenchDatapath>();
                          }});
  EndpointConfig config;
  config.datapath.device = "bench:";
  config.address = Address::v4(0x0A000000 + host, 50'000);
  config.driving = Driving::caller;
  config.max_operations = 16'384;
  return config;
}

/// Returns the median time of a round. Other load on the machine hardly changes the median.
Nanos median(std::vector<Nanos>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// ---- A message, through shards and through endpoints ----

constexpr std::uint64_t kTaggedBatch = 8;  ///< tagged messages per round, fewer than the posted receives
constexpr int kBatch = 16;                 ///< messages per round, which are posted together

class ByHand {
 public:
  ByHand() {
    a_.peer = &b_;
    b_.peer = &a_;
    right_.listen({});
    connection_ = left_.connect(b_.address(), {}, now());
    mltcp::Completion completion;
    while (accepted_ == 0) {
      left_.poll(now());
      right_.poll(now());
      while (right_.take_completions({&completion, 1}) == 1) accepted_ = completion.connection;
    }
  }
  void round() {
    for (int i = 0; i < kBatch; ++i) {
      right_.receive(accepted_, buffers_[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i));
      left_.send(connection_, message_, static_cast<std::uint64_t>(i));
    }
    std::array<mltcp::Completion, 32> done;
    for (int ended = 0; ended < 2 * kBatch;) {
      left_.poll(now());
      ended += count(left_.take_completions(done), done);
      right_.poll(now());
      ended += count(right_.take_completions(done), done);
    }
  }

 private:
  static Nanos now() { return BenchDatapath::clock().now(); }
  static int count(std::size_t taken, const std::array<mltcp::Completion, 32>& done) {
    int ended = 0;
    for (std::size_t i = 0; i < taken; ++i)
      if (done[i].kind == mltcp::Completion::Kind::sent || done[i].kind == mltcp::Completion::Kind::received) ++ended;
    return ended;
  }
  BenchIo a_{Address::v4(0x0A000001, 1)};
  BenchIo b_{Address::v4(0x0A000002, 1)};
  Shard left_{a_, {}};
  Shard right_{b_, {}};
  ConnectionId connection_ = 0;
  ConnectionId accepted_ = 0;
  std::array<std::byte, kMessageBytes> message_{};
  std::array<std::array<std::byte, kMessageBytes>, kBatch> buffers_{};
};

class ThroughEndpoints {
 public:
  explicit ThroughEndpoints(ConnectionKind kind) : left_(config_of(1)), right_(config_of(2)) {
    OperationHandle operation = 0;
    mltcp::endpoint::Completion end;
    if (left_.connect(right_.address().bytes(), {.kind = kind, .post = {}}, here_, &operation) != Code::ok)
      std::abort();
    while (left_.test(operation, end) == Code::timed_out) progress();
    while (right_.events().poll({&end, 1}) == 0) progress();
    there_ = end.connection;
  }
  void progress() {
    left_.progress();
    right_.progress();
  }
  void round() {
    ended_ = 0;
    OperationHandle operation = 0;
    const PostOptions options{.callback = on, .context = this};
    for (int i = 0; i < kBatch; ++i) {
      (void)right_.receive(there_, buffers_[static_cast<std::size_t>(i)], 0, options, operation);
      (void)left_.send(here_, message_, 0, options, operation);
    }
    while (ended_ < 2 * kBatch) progress();
  }
  /// Posts `count` receives with different tags. Messages for some of these receives come only from tagged_round().
  void post_others(std::uint64_t count) {
    OperationHandle operation = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      (void)right_.receive_tagged(there_, buffers_[0], (std::uint64_t{1} << 40) + i, kWholeTag,
                                  {.callback = on, .context = this}, operation);
    others_ = count;
  }
  /// Sends messages for some of the posted receives, and posts these receives again when they have ended.
  void tagged_round(Random& random) {
    ended_ = 0;
    OperationHandle operation = 0;
    const PostOptions options{.callback = on, .context = this};
    std::array<std::uint64_t, kTaggedBatch> tags;
    for (std::uint64_t i = 0; i < kTaggedBatch; ++i) {
      const std::uint64_t part = std::max<std::uint64_t>(others_ / kTaggedBatch, 1);
      tags[i] = (std::uint64_t{1} << 40) + i * others_ / kTaggedBatch + random.below(part);
      (void)left_.send_tagged(here_, message_, tags[i], options, operation);
    }
    while (ended_ < 2 * static_cast<int>(kTaggedBatch)) progress();
    for (const std::uint64_t tag : tags)
      (void)right_.receive_tagged(there_, buffers_[0], tag, kWholeTag, options, operation);
  }

 private:
  static void on(void* self, const mltcp::endpoint::Completion&) noexcept {
    ++static_cast<ThroughEndpoints*>(self)->ended_;
  }
  Endpoint left_;
  Endpoint right_;
  ConnectionHandle here_ = 0;
  ConnectionHandle there_ = 0;
  int ended_ = 0;
  std::uint64_t others_ = 0;
  std::array<std::byte, kMessageBytes> message_{};
  std::array<std::array<std::byte, kMessageBytes>, kBatch> buffers_{};
};

template <typename Round>
Nanos time_of(Round round) {
  const Nanos begin = BenchDatapath::clock().now();
  round();
  return BenchDatapath::clock().now() - begin;
}

void Message(benchmark::State& state) {
  ByHand by_hand;
  ThroughEndpoints endpoints(ConnectionKind::ordered);
  std::vector<Nanos> hand_times;
  std::vector<Nanos> endpoint_times;
  for (auto _ : state) {
    hand_times.push_back(time_of([&] { by_hand.round(); }));
    endpoint_times.push_back(time_of([&] { endpoints.round(); }));
  }
  constexpr double operations = 2 * kBatch;
  const double hand = static_cast<double>(median(hand_times).count) / operations;
  const double through = static_cast<double>(median(endpoint_times).count) / operations;
  state.counters["by_hand_ns"] = hand;
  state.counters["endpoint_ns"] = through;
  state.counters["over_by_hand_ns"] = through - hand;
}
BENCHMARK(Message)->MinTime(2);

void Tagged(benchmark::State& state) {
  ThroughEndpoints few(ConnectionKind::tagged);
  ThroughEndpoints many(ConnectionKind::tagged);
  few.post_others(10);
  many.post_others(10'000);
  Random random(1);
  std::vector<Nanos> few_times;
  std::vector<Nanos> many_times;
  for (auto _ : state) {
    few_times.push_back(time_of([&] { few.tagged_round(random); }));
    many_times.push_back(time_of([&] { many.tagged_round(random); }));
  }
  const double of_few = static_cast<double>(median(few_times).count) / kTaggedBatch;
  const double of_many = static_cast<double>(median(many_times).count) / kTaggedBatch;
  state.counters["with_10_ns"] = of_few;
  state.counters["with_10000_ns"] = of_many;
  state.counters["over_few"] = of_many / of_few;
}
BENCHMARK(Tagged)->MinTime(2);

// ---- From thread to thread ----

struct Arrival {
  std::atomic<std::int64_t> at{0};
  static void on(void* self, const mltcp::endpoint::Completion&) noexcept {
    static_cast<Arrival*>(self)->at.store(BenchDatapath::clock().now().count, std::memory_order_release);
  }
};

/// Measures with a peek operation, which ends as soon as its shard has processed it.
void Handover(benchmark::State& state) {
  EndpointConfig config = config_of(1);
  config.driving = Driving::threads;
  config.idle = Idle::spin;
  Endpoint endpoint(config);
  EndpointConfig other = config_of(2);
  const Endpoint peer(other);
  std::vector<Nanos> handovers;
  std::vector<Nanos> posts;
  Arrival arrival;
  for (auto _ : state) {
    arrival.at.store(0, std::memory_order_relaxed);
    OperationHandle operation = 0;
    const Nanos begin = BenchDatapath::clock().now();
    (void)endpoint.peek(kAnyConnection, 1, kWholeTag, Take::no, {.callback = Arrival::on, .context = &arrival},
                        operation);
    posts.push_back(BenchDatapath::clock().now() - begin);
    std::int64_t at = 0;
    while ((at = arrival.at.load(std::memory_order_acquire)) == 0) {
    }
    handovers.push_back(Nanos(at) - begin);
  }
  state.counters["call_p50_ns"] = static_cast<double>(median(posts).count);
  state.counters["p50_ns"] = static_cast<double>(median(handovers).count);
  const auto ninety_ninth = handovers.begin() + static_cast<std::ptrdiff_t>(handovers.size() * 99 / 100);
  std::nth_element(handovers.begin(), ninety_ninth, handovers.end());
  state.counters["p99_ns"] = static_cast<double>(ninety_ninth->count);
}
BENCHMARK(Handover)->Iterations(20'000)->UseRealTime();

}  // namespace
