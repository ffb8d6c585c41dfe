// Measures the cost of datapaths per packet, without a transport. One PacketIo sends bursts of packets, and a second
// one receives them, in one thread. `verbs` and `frames` use simulated queue pairs, for datagrams and for Ethernet
// frames. `ports` uses DPDK's ring ports, with the same code as AF_XDP, AF_PACKET and NICs. bench/packet_io counts the
// instructions.
//
//   verbs/64/0            payloads of 64 bytes; all are copied or inline
//   verbs/1400/1          payloads of 1400 bytes in registered memory, which the device reads in place
#include <benchmark/benchmark.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/registered_memory.h"
#if MLTCP_HAS_DPDK
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port_io.h"
#endif

namespace {

using namespace mltcp;

constexpr std::size_t kBurst = 32;
constexpr std::size_t kHeaderBytes = 40;
constexpr Nanos kPatience{20'000'000'000};

// ---- A simulated device ----

class MemoryQueuePair;
std::map<std::uint32_t, MemoryQueuePair*>& queue_pairs() {
  static std::map<std::uint32_t, MemoryQueuePair*> all;
  return all;
}

struct MemoryHandle {
  ibv_ah handle{};
  std::array<std::byte, encap::kIpv4Bytes> ip{};
};

/// A queue pair in memory. Posted packets arrive at once and in order, and completions wait in rings. Only one thread
/// may use it.
class MemoryQueuePair final : public rdma::QueuePair {
 public:
  static constexpr std::size_t kDepth = 4096;

  MemoryQueuePair(const rdma::QueuePairConfig& config, ibv_context& context)
      : is_of_frames_(config.kind == rdma::PairKind::frames) {
    channel_.context = sent_.context = received_.context = queue_.context = &context;
    channel_.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue_.qp_context = sent_.cq_context = received_.cq_context = this;
    queue = &queue_;
    sent = &sent_;
    received = &received_;
    channel = &channel_;
    inline_bytes = config.inline_bytes;
    number = queue_.qp_num = static_cast<std::uint32_t>(100 + queue_pairs().size());
    queue_pairs()[number] = this;
  }
  ~MemoryQueuePair() override {
    queue_pairs().erase(number);
    close(channel_.fd);
  }
  bool take_event() override { return false; }
  Recovery recover(bool /*must_reset*/) override { return Recovery::none_needed; }
  void stop() override {}
  int steer(const rdma::FrameRule& /*rule*/) noexcept override { return 0; }

  // These are separate functions, so that callgrind separates their cost from that of their callers.
  [[gnu::noinline]] static int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** /*refused*/) {
    auto& self = *static_cast<MemoryQueuePair*>(qp->qp_context);
    for (; request != nullptr; request = request->next) {
      if (self.peer_ == nullptr)
        self.peer_ = self.is_of_frames_ ? self.other() : queue_pairs().at(request->wr.ud.remote_qpn);
      self.peer_->deliver(*request);
      if ((request->send_flags & IBV_SEND_SIGNALED) == 0) continue;
      ibv_wc& done = self.sends_[self.sends_end_++ % kDepth];
      done.wr_id = request->wr_id;
      done.status = IBV_WC_SUCCESS;
    }
    return 0;
  }
  [[gnu::noinline]] static int post_receive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** /*refused*/) {
    auto& self = *static_cast<MemoryQueuePair*>(qp->qp_context);
    for (; request != nullptr; request = request->next)
      self.posted_[self.posted_end_++ % kDepth] = {request->wr_id, *request->sg_list};
    return 0;
  }
  [[gnu::noinline]] static int poll(ibv_cq* cq, int max, ibv_wc* out) {
    auto& self = *static_cast<MemoryQueuePair*>(cq->cq_context);
    const bool of_sends = cq == &self.sent_;
    const auto& from = of_sends ? self.sends_ : self.receives_;
    std::uint64_t& begin = of_sends ? self.sends_begin_ : self.receives_begin_;
    const std::uint64_t end = of_sends ? self.sends_end_ : self.receives_end_;
    int count = 0;
    while (count < max && begin != end) out[count++] = from[begin++ % kDepth];
    return count;
  }

 private:
  /// Returns the peer of this queue pair. A frame of one of the two devices arrives at the other device.
  [[nodiscard]] MemoryQueuePair* other() const {
    const auto& first = queue_pairs().begin()->second;
    return first == this ? queue_pairs().rbegin()->second : first;
  }
  void deliver(const ibv_send_wr& request) {
    if (posted_begin_ == posted_end_) return;
    const auto& [id, piece] = posted_[posted_begin_++ % kDepth];
    auto* out = reinterpret_cast<std::byte*>(piece.addr);
    std::uint32_t bytes = 0;
    if (!is_of_frames_) {
      const auto& handle = *reinterpret_cast<const MemoryHandle*>(request.wr.ud.ah);
      out += rdma::kGrhBytes - handle.ip.size();
      out = std::copy(handle.ip.begin(), handle.ip.end(), out);
      bytes = rdma::kGrhBytes;
    }
    for (int i = 0; i < request.num_sge; ++i) {
      std::memcpy(out, reinterpret_cast<const void*>(request.sg_list[i].addr), request.sg_list[i].length);
      out += request.sg_list[i].length;
      bytes += request.sg_list[i].length;
    }
    ibv_wc& done = receives_[receives_end_++ % kDepth];
    done.wr_id = id;
    done.status = IBV_WC_SUCCESS;
    done.byte_len = bytes;
    done.wc_flags = IBV_WC_GRH;
  }

  struct Posted {
    std::uint64_t id;
    ibv_sge piece;
  };
  const bool is_of_frames_;
  MemoryQueuePair* peer_ = nullptr;
  ibv_qp queue_{};
  ibv_cq sent_{};
  ibv_cq received_{};
  ibv_comp_channel channel_{};
  std::vector<Posted> posted_ = std::vector<Posted>(kDepth);
  std::vector<ibv_wc> sends_ = std::vector<ibv_wc>(kDepth);
  std::vector<ibv_wc> receives_ = std::vector<ibv_wc>(kDepth);
  std::uint64_t posted_begin_ = 0, posted_end_ = 0;
  std::uint64_t sends_begin_ = 0, sends_end_ = 0;
  std::uint64_t receives_begin_ = 0, receives_end_ = 0;
};

class MemoryDevice final : public rdma::Device {
 public:
  explicit MemoryDevice(const std::string& ip) {
    context_.ops.post_send = MemoryQueuePair::post_send;
    context_.ops.post_recv = MemoryQueuePair::post_receive;
    context_.ops.poll_cq = MemoryQueuePair::poll;
    context_.ops.req_notify_cq = [](ibv_cq* /*cq*/, int /*solicited*/) { return 0; };
    facts_.name = "memory0";
    facts_.longest_message = 4096;
    facts_.max_requests = facts_.max_completions = MemoryQueuePair::kDepth;
    facts_.max_pieces = 4;
    facts_.gids = {{.index = 0, .ip = Address::parse(ip), .is_roce_v2 = true}};
    facts_.interfaces = {1};
  }
  [[nodiscard]] const rdma::DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<rdma::QueuePair> make_queue_pair(const rdma::QueuePairConfig& config) override {
    return std::make_unique<MemoryQueuePair>(config, context_);
  }
  ibv_ah* make_handle(const rdma::HandleConfig& config) noexcept override {
    auto* const made = new MemoryHandle;
    std::array<unsigned char, encap::kIpv4Bytes> ip{0x45, config.traffic_class, 0, 0, 0, 0, 0x40, 0, 64, 17};
    std::memcpy(&ip[12], facts_.gids[0].ip.ip.data() + 12, 4);
    std::memcpy(&ip[16], config.destination.ip.data() + 12, 4);
    const auto sum = static_cast<std::uint16_t>(~encap::sum(ip.data(), ip.size()));
    std::memcpy(&ip[10], &sum, sizeof sum);
    std::memcpy(made->ip.data(), ip.data(), ip.size());
    return &made->handle;
  }
  void free_handle(ibv_ah* handle) noexcept override { delete reinterpret_cast<MemoryHandle*>(handle); }
  [[nodiscard]] int event_file() const override { return -1; }
  bool take_events() override { return false; }
  [[nodiscard]] std::uint8_t gid_index() const override { return 0; }
  rdma::RawPackets try_raw_packets() override { return {}; }
  [[nodiscard]] std::string why_down() const override { return {}; }
  [[nodiscard]] bool is_gone() const override { return false; }
  void watch(const rdma::Gid& /*gid*/) override {}
  [[nodiscard]] std::uint64_t wrong_keys() const override { return 0; }
  [[nodiscard]] bool needs_mapping() const override { return true; }
  std::uint64_t map(std::span<std::byte> /*memory*/) override { return 1; }
  void unmap(std::span<std::byte> /*memory*/, std::uint64_t /*key*/) noexcept override {}

 private:
  ibv_context context_{};
  rdma::DeviceFacts facts_;
};

/// A resolver of addresses that finds every host on the local link.
class MemoryNetwork final : public rdma::KernelNetwork {
 public:
  explicit MemoryNetwork(const std::string& ip)
      : interface_{.index = 1,
                   .name = "memory0",
                   .is_ethernet = true,
                   .mac = {2, 0, 0, 0, 0, 1},
                   .mtu = 4200,
                   .addresses = {Address::parse(ip)}} {}
  std::vector<rdma::KernelInterface> interfaces(std::span<const std::uint32_t> /*indices*/) override {
    return {interface_};
  }
  std::unique_ptr<rdma::KernelRoutes> routes_of(const rdma::KernelInterface& /*interface*/,
                                                const Address& /*address*/) override {
    class Routes final : public rdma::KernelRoutes {
      Way find(const Address& /*destination*/, bool /*may_ask*/) override {
        return {State::known, {2, 0, 0, 0, 0, 1}};  // all hosts have this MAC address
      }
      [[nodiscard]] int event_file() const override { return -1; }
      void take_events() override {}
      [[nodiscard]] std::string why_lost() const override { return ""; }
    };
    return std::make_unique<Routes>();
  }

 private:
  rdma::KernelInterface interface_;
};

std::unique_ptr<HostDatapath> memory_host(const std::string& ip, bool is_raw, Address& address) {
  auto datapath = is_raw
                      ? rdma::make_raw_datapath({.device = "verbs:memory0:1:raw"}, std::make_unique<MemoryDevice>(ip),
                                                std::make_unique<MemoryNetwork>(ip))
                      : rdma::make_datapath({.device = "verbs:memory0"}, std::make_unique<MemoryDevice>(ip));
  HostPlace place;
  place.address = Address::parse(ip, 47620);
  datapath->take_place(place);
  address = place.address;
  return datapath;
}

// ---- Measurements ----

/// Sends bursts from `a` to `b`. If `hold` is set, as by the transport, the device may read payloads in place.
void exchange(benchmark::State& state, PacketIo& a, PacketIo& b, const Address& to, std::span<std::byte> payload,
              PayloadHold* hold) {
  const std::vector<std::byte> header(kHeaderBytes, std::byte{'h'});
  const std::vector<TxPacket> packets(
      kBurst, {.destination = &to, .header = header, .payload = payload, .ecn = Ecn::ect0, .hold = hold});
  std::array<RxPacket, kBurst> arrived;
  std::array<RxPacket, 1> none;
  std::uint64_t received = 0;
  const auto turn = [&] {
    std::size_t sent = 0;
    while (sent < packets.size()) sent += a.send(std::span(packets).subspan(sent));
    std::size_t got = 0;
    while (const std::size_t count = b.receive(arrived)) got += count;
    received += got;
    a.receive(none);  // a sending host also polls for acknowledgements
  };
  // The first packets wait until a thread has resolved the peer's address.
  const Nanos give_up = monotonic_now() + kPatience;
  for (std::uint64_t before = 0; received < 1000 * kBurst && monotonic_now() < give_up; before = received) {
    turn();
    if (received == before) std::this_thread::yield();
  }
  received = 0;
  CALLGRIND_START_INSTRUMENTATION;
  for (auto _ : state) turn();
  CALLGRIND_STOP_INSTRUMENTATION;
  if (received == 0) {
    state.SkipWithError("nothing came through");
    return;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(received));
  // A case runs several times with more and more iterations. callgrind counts the instructions of all runs together, so
  // count the packets of all runs, too.
  static std::uint64_t counted = 0;
  counted += received;
  state.counters["counted_packets"] = static_cast<double>(counted);
}

struct FreePages {
  void operator()(std::byte* memory) const { std::free(memory); }
};

void over_verbs(benchmark::State& state, bool is_raw) {
  Address left;
  Address right;
  const auto a = memory_host("127.0.0.1", is_raw, left);
  const auto b = memory_host("127.0.0.2", is_raw, right);
  PacketIo& io = a->io(0);
  std::array<RxPacket, 1> none;
  for (const Nanos give_up = monotonic_now() + kPatience; !a->resolve(0, right);) {
    io.receive(none);
    if (monotonic_now() > give_up) {
      state.SkipWithError("the peer was not found");
      return;
    }
  }
  const std::unique_ptr<std::byte, FreePages> memory(static_cast<std::byte*>(std::aligned_alloc(4096, 4096)));
  const RegisteredMemory registration({memory.get(), 4096}, a->dma_devices());
  PayloadHold hold;
  exchange(state, io, b->io(0), right, {memory.get(), static_cast<std::size_t>(state.range(0))},
           state.range(1) != 0 ? &hold : nullptr);
  while (hold.packets.load() != 0) io.receive(none);
}
void verbs(benchmark::State& state) { over_verbs(state, false); }
BENCHMARK(verbs)->Args({64, 0})->Args({960, 0})->Args({1400, 0})->Args({1400, 1})->Args({4000, 0})->Args({4000, 1});
void frames(benchmark::State& state) { over_verbs(state, true); }
BENCHMARK(frames)->Args({64, 0})->Args({960, 0})->Args({1400, 0})->Args({1400, 1})->Args({4000, 0})->Args({4000, 1});

#if MLTCP_HAS_DPDK
dpdk::Eal* eal = nullptr;

void ports(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  dpdk::PortConfig port{.device = "ring:left,to=right", .mtu = 4200};
  const dpdk::Port left(*eal, port);
  port.device = "ring:right,to=left";
  const dpdk::Port right(*eal, port);
  dpdk::PortHostConfig host;
  host.zero_copy_from = state.range(1) != 0 ? 1024 : 0;
  host.address = Address::v4(0x0A010001, 4793);
  const dpdk::PortHost a(*eal, left, host);
  host.address = Address::v4(0x0A010002, 4793);
  const dpdk::PortHost b(*eal, right, host);
  std::vector<std::byte> payload(bytes, std::byte{'p'});
  PayloadHold hold;
  exchange(state, a.io(), b.io(), host.address, payload, state.range(1) != 0 ? &hold : nullptr);
  a.io().release();
  b.io().release();
}
BENCHMARK(ports)->Args({64, 0})->Args({960, 0})->Args({1400, 0})->Args({1400, 1})->Args({4000, 0})->Args({4000, 1});
#endif

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
#if MLTCP_HAS_DPDK
  dpdk::EalOptions options;
  options.memory_mb = 256;
  dpdk::Eal made(options);
  eal = &made;
#endif
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
