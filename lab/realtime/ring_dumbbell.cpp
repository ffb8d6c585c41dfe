// The dumbbell on ring ports (see ring_dumbbell.h).
//
// In each round, the switch takes packets from the hosts' rings into their access links. It moves packets that have
// crossed an access link into the shared link of their direction, in order of the times at which they crossed. It
// delivers packets that have crossed a shared link.
//
// Each hop uses the exact time at which the previous link delivers a packet, not the time of the round. So irregular
// rounds delay packets but do not change the rate of a link.
#include "mltcp/lab/realtime/ring_dumbbell.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/handoff.h"
#include "mltcp/base/loop_time.h"
#include "mltcp/dpdk/burst.h"
#include "mltcp/dpdk/core_thread.h"
#include "mltcp/dpdk/frame_io.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/dpdk/service.h"
#include "mltcp/transport/wire.h"

namespace mltcp::realtime {

using namespace dpdk;  // this file builds the network from the ports and rings of namespace dpdk

namespace {

constexpr std::uint32_t kRingBurst = RingIo::kBurst;
/// Maximum number of packets in an access link, like the transmit queue of a NIC.
constexpr std::uint32_t kNicQueue = 128;
/// Maximum number of packets delivered per round of run(). After a stall of the loop, this limit lets hosts empty their
/// rings between rounds.
constexpr std::uint32_t kDeliveriesPerRound = 256;

/// Metadata that the switch stores in each packet buffer.
struct PacketNote {
  std::uint32_t job;
  std::uint16_t destination;  ///< index of the receiving host
  bool ecn_capable;
  bool has_job;
};
static_assert(sizeof(PacketNote) == 8);

std::size_t note_offset() {
  const rte_mbuf_dynfield field{"mltcp_ring_note", sizeof(PacketNote), alignof(PacketNote), 0};
  const int offset = rte_mbuf_dynfield_register(&field);
  if (offset < 0) {
    throw RunError(
        fmt::format("DPDK has no room left in its packet buffers for 8 bytes of metadata ({}); use fewer libraries "
                    "that register such fields in this process",
                    rte_strerror(rte_errno)));
  }
  return static_cast<std::size_t>(offset);
}

void free_packet(rte_mbuf* packet) { free_packets(&packet, 1); }

/// Creates a link. Adds the name of the link to the message of an InputError.
fabric::Link make_link(const char* name, const fabric::LinkConfig& config) {
  try {
    return fabric::Link(config);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} link: {}", name, error.what()));
  }
}

struct Plan {
  std::uint32_t buffers = 0;
  std::uint32_t frame_bytes = 0;
};

Plan plan_for(const fabric::DumbbellConfig& config, const RingOptions& options) {
  if (config.pairs < 1 || config.pairs > RingDumbbell::max_pairs()) {
    throw InputError(
        fmt::format("{} pairs of hosts on ring ports: give 1 to {} (this DPDK is built for {} ports, and a "
                    "pair takes 4), or use the simulator",
                    config.pairs, RingDumbbell::max_pairs(), max_ports()));
  }
  if (config.mtu < 576 || config.mtu > 9000) {
    throw InputError(fmt::format("an MTU of {} bytes: give 576 to 9000", config.mtu));
  }
  for (const std::uint32_t slots : {options.transmit_slots, options.receive_slots}) {
    if (slots < 64 || slots > 65536 || !std::has_single_bit(slots)) {
      throw InputError(fmt::format("rings of {} slots: give a power of two from 64 to 65536", slots));
    }
  }
  fabric::check_buffers(config);
  Plan plan;
  // The 64 bytes more than allowed let the switch receive, and so detect and reject, frames that are too long.
  plan.frame_bytes = config.mtu + static_cast<std::uint32_t>(encap::kEthernetBytes) + 64;
  plan.buffers = options.buffers;
  if (plan.buffers == 0) {
    // The buffers need not suffice to fill all rings at once. If no buffer is free, a host waits, as it does if its
    // ring is full.
    constexpr std::uint64_t kMaxMemory = std::uint64_t{192} << 20;
    const std::uint64_t per_host =
        std::uint64_t{options.transmit_slots} + options.receive_slots / 4 + kNicQueue + kRingBurst;
    const std::uint64_t wanted = 2 * std::uint64_t{config.pairs} * per_host + fabric::packets_in(config.bottleneck) +
                                 fabric::packets_in(config.reverse) + 2048;
    const std::uint64_t per_buffer =
        (PacketPool::memory_bytes(1024, plan.frame_bytes) - (std::uint64_t{1} << 20)) / 1024;
    plan.buffers = static_cast<std::uint32_t>(std::min({wanted, kMaxMemory / per_buffer, std::uint64_t{65535}}));
  }
  return plan;
}

std::string unique_prefix() {
  static std::atomic<unsigned> instances{0};
  return fmt::format("mltcp{}", instances++);
}

struct Wire {
  Wire(const std::string& name, const RingOptions& options)
      : to_switch(name + "s", options.transmit_slots), to_host(name + "h", options.receive_slots) {}
  PacketRing to_switch;
  PacketRing to_host;
};

/// A host: its wire to the switch, and the ports at both ends of the wire.
class Host final : private Wire, public RingIo {
 public:
  Host(const std::string& name, const Address& address, std::uint32_t mtu, const RingOptions& options,
       const PacketPool& pool)
      : Wire(name, options),
        RingIo(name + "h", address, mtu, to_host, to_switch, pool),
        switch_port(name + "s", to_switch, to_host, pool) {}

  using Wire::to_host;
  using Wire::to_switch;
  RingPort switch_port;
  Pollable* pollable = nullptr;
  Nanos due;
};

}  // namespace

struct RingDumbbell::Impl {
  /// Packets that the switch collects to put them into the ring of a host together.
  struct Batch {
    std::array<rte_mbuf*, kRingBurst> packets{};
    std::uint16_t count = 0;
  };

  Impl(const Eal& eal_, const fabric::DumbbellConfig& config_, const RingOptions& options_, const Plan& plan)
      : eal(eal_),
        config(config_),
        options(options_),
        offset(note_offset()),
        prefix(unique_prefix()),
        pool(prefix + "p", plan.buffers, plan.frame_bytes),
        bottleneck(make_link("bottleneck", config_.bottleneck)),
        reverse(make_link("reverse", fabric::reverse_link(config_))),
        usage(options_.usage_bin, options_.usage_bins),
        frame_limit(config_.mtu + static_cast<std::uint32_t>(encap::kEthernetBytes)) {
    const std::uint32_t count = 2 * config.pairs;
    access.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t pair = i % config.pairs;
      const Address address = Address::v4(fabric::host_ip(i < config.pairs ? 1 : 2, pair), port);
      hosts.push_back(std::make_unique<Host>(fmt::format("{}w{}", prefix, i), address, config.mtu, options, pool));
      access.push_back(make_link("access", fabric::access_link(config)));
    }
    batches.resize(count);
  }
  ~Impl() { drain(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  PacketNote& note(rte_mbuf* packet) const { return *RTE_MBUF_DYNFIELD(packet, offset, PacketNote*); }
  static rte_mbuf* packet_of(fabric::Link::Handle handle) { return std::bit_cast<rte_mbuf*>(handle); }
  static fabric::Link::Handle handle_of(rte_mbuf* packet) { return std::bit_cast<fabric::Link::Handle>(packet); }
  [[nodiscard]] bool is_left(std::size_t host) const { return host < config.pairs; }

  /// Returns the index of the host with this address, or -1 if there is none.
  [[nodiscard]] int host_at(const Address& address) const {
    if (!address.is_v4()) return -1;
    const std::uint32_t ip = address.v4_ip();
    const std::uint32_t low = ip & 0xFF;
    const std::uint32_t network = ip >> 16;
    if (low == 0 || low > 250 || (network != 0x0A01 && network != 0x0A02)) return -1;
    const std::uint32_t pair = (ip >> 8 & 0xFF) * 250 + low - 1;
    if (pair >= config.pairs) return -1;
    return static_cast<int>(network == 0x0A01 ? pair : config.pairs + pair);
  }

  // Functions of the switch.

  Nanos step(Nanos now, std::size_t max_deliveries) {
    moved = false;
    for (std::size_t i = 0; i < hosts.size(); ++i) take_from(i, now);
    cross_access_links(now);
    std::size_t left = max_deliveries;
    cross_shared_link(bottleneck, now, left);
    cross_shared_link(reverse, now, left);
    for (std::size_t i = 0; i < hosts.size(); ++i) flush(i);
    Nanos next = std::min(bottleneck.next_delivery(), reverse.next_delivery());
    for (const auto& link : access) next = std::min(next, link.next_delivery());
    return next;
  }

  void take_from(std::size_t host, Nanos now) {
    std::array<rte_mbuf*, kRingBurst> packets;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
    for (;;) {
      const std::size_t waiting = access[host].queue_packets(now);
      if (waiting >= kNicQueue) return;
      const auto max = static_cast<std::uint16_t>(std::min<std::size_t>(kRingBurst, kNicQueue - waiting));
      const std::uint16_t count =
          receive_burst(hosts[host]->switch_port.id(), hosts[host]->to_switch, packets.data(), max);
      if (count == 0) return;
      moved = true;
      counters.received_packets += count;
      for (std::uint16_t i = 0; i < count; ++i) admit(packets[i], host, now);
      if (count < max) return;
    }
  }

  void admit(rte_mbuf* packet, std::size_t host, Nanos now) {
    encap::Frame frame;
    encap::Reject reject = encap::Reject::oversized;
    int destination = -1;
    if (packet->nb_segs == 1 && !is_oversized(packet, config.mtu)) [[likely]] {
      reject = encap::parse(frame_of(packet), encap::VerifyUdp::no, frame);
      if (reject == encap::Reject::none) {
        destination = host_at(frame.headers.destination);
        if (destination < 0) reject = encap::Reject::not_for_us;
      }
    }
    if (reject != encap::Reject::none) [[unlikely]] {
      ++counters.rejected[static_cast<std::size_t>(reject)];
      free_packet(packet);
      return;
    }
    PacketNote& n = note(packet);
    n.destination = static_cast<std::uint16_t>(destination);
    n.ecn_capable = frame.headers.ecn != Ecn::not_ect;
    const auto tag = wire::peek_job_tag(frame.payload);
    n.has_job = tag.has_value();
    n.job = tag ? tag->job : 0;
    if (!access[host].offer(handle_of(packet), packet->pkt_len, n.ecn_capable, now).admitted) [[unlikely]] {
      free_packet(packet);
    }
  }

  /// Moves packets that have crossed an access link by `now` into the shared links, ordered by time over all access
  /// links.
  void cross_access_links(Nanos now) {
    for (;;) {
      std::size_t first = 0;
      Nanos first_at = Nanos::never();
      Nanos second_at = Nanos::never();
      for (std::size_t i = 0; i < access.size(); ++i) {
        const Nanos at = access[i].next_delivery();
        if (at < first_at) {
          second_at = first_at;
          first_at = at;
          first = i;
        } else if (at < second_at) {
          second_at = at;
        }
      }
      if (first_at > now || first_at.is_never()) return;
      moved = true;
      const Nanos until = std::min(now, second_at);
      while (const auto delivery = access[first].pop(until)) {
        rte_mbuf* const packet = packet_of(delivery->packet);
        enter_shared_link(is_left(note(packet).destination) ? reverse : bottleneck, packet, delivery->at);
      }
    }
  }

  void enter_shared_link(fabric::Link& link, rte_mbuf* packet, Nanos at) {
    const PacketNote& n = note(packet);
    const auto admission = link.offer(handle_of(packet), packet->pkt_len, n.ecn_capable, at);
    if (&link == &bottleneck && n.has_job && (admission.admitted || admission.lost)) {
      usage.add(n.job, packet->pkt_len, admission.departure);
    }
    if (!admission.admitted) {
      free_packet(packet);
      return;
    }
    if (admission.mark) encap::mark_congestion(frame_of(packet));
    if (admission.duplicate) [[unlikely]] {
      rte_mbuf* const copy = rte_pktmbuf_copy(packet, pool.get(), 0, UINT32_MAX);
      if (copy != nullptr) {
        take_over(pool.get());
        link.offer_copy(handle_of(copy));
      } else {
        ++counters.no_copy;
      }
    }
    if (admission.corrupt) [[unlikely]]
      flip_bit(frame_of(packet), admission.corrupt_bits);
  }

  void cross_shared_link(fabric::Link& link, Nanos now, std::size_t& left) {
    while (left > 0) {
      const auto delivery = link.pop(now);
      if (!delivery) return;
      --left;
      deliver(packet_of(delivery->packet), now);
    }
  }

  void deliver(rte_mbuf* packet, Nanos now) {
    moved = true;
    if (tap) [[unlikely]]
      tap(frame_of(packet), now);
    const std::size_t host = note(packet).destination;
    Batch& batch = batches[host];
    batch.packets[batch.count++] = packet;
    if (batch.count == kRingBurst) flush(host);
  }

  void flush(std::size_t host) {
    Batch& batch = batches[host];
    if (batch.count == 0) return;
    const std::uint16_t sent =
        send_burst(hosts[host]->switch_port.id(), hosts[host]->to_host, batch.packets.data(), batch.count);
    counters.delivered_packets += sent;
    counters.receiver_full += batch.count - sent;
    free_packets(batch.packets.data() + sent, batch.count - sent);
    batch.count = 0;
  }

  [[nodiscard]] std::size_t packets_inside() const {
    std::size_t inside = bottleneck.packets_inside() + reverse.packets_inside();
    for (const auto& link : access) inside += link.packets_inside();
    return inside;
  }

  void drain() {
    for (auto& batch : batches) {
      free_packets(batch.packets.data(), batch.count);
      batch.count = 0;
    }
    const auto empty = [](fabric::Link& link) {
      while (const auto delivery = link.pop(Nanos(Nanos::never().count - 1))) {
        free_packet(packet_of(delivery->packet));
      }
    };
    for (auto& link : access) empty(link);
    empty(bottleneck);
    empty(reverse);
    for (auto& host : hosts) {
      host->release();
      host->to_switch.drain();
      host->to_host.drain();
    }
  }

  // Running.

  static void switch_thread(void* self) {
    take_over(self);
    static_cast<Impl*>(self)->switch_loop();
    hand_over(self);
  }

  void switch_loop() {
    prctl(PR_SET_TIMERSLACK, 1);
    std::uint64_t published = kBusy;
    const auto publish = [&](std::uint64_t value) {
      if (value != published) idle_after.store(value, std::memory_order_release);
      published = value;
    };
    while (switch_state.load(std::memory_order_acquire) == SwitchState::waiting) rte_pause();
    while (switch_state.load(std::memory_order_acquire) == SwitchState::running) {
      const Nanos now = switch_time.begin_round();
      step(now, kDeliveriesPerRound);
      if (moved || packets_inside() != 0) {
        publish(kBusy);
        continue;
      }
      publish(counters.received_packets);
      const Nanos quiet(quiet_until.load(std::memory_order_acquire));
      if (quiet > now) switch_time.sleep_towards(quiet);
    }
    publish(kBusy);
  }

  /// Returns whether nothing can happen before the next deadline of a host or a link. If the switch has its own core,
  /// the switch must have reported that all sent packets have left it. If not, no sent packets may be left in the rings
  /// to the switch.
  [[nodiscard]] bool network_is_empty(bool own_core) const {
    if (own_core) {
      std::uint64_t put = 0;
      for (const auto& host : hosts) put += host->put;
      if (idle_after.load(std::memory_order_acquire) != put) return false;
    } else {
      for (const auto& host : hosts) {
        if (rte_ring_empty(host->to_switch.get()) == 0) return false;
      }
    }
    for (const auto& host : hosts) {
      if (host->pollable != nullptr && host->ready()) return false;
    }
    return true;
  }

  bool run(Nanos until, const std::function<bool()>& stop) {
    const Clock& clock = eal.clock();
    const RunThread thread(eal.cores()[0]);
    join_dpdk();
    const bool own_core = eal.cores().size() > 1;
    if (own_core) {
      switch_state.store(SwitchState::waiting, std::memory_order_relaxed);
      quiet_until.store(0, std::memory_order_relaxed);
      idle_after.store(kBusy, std::memory_order_relaxed);
      hand_over(this);
      if (!eal.core_thread(1).start(switch_thread, this))
        throw RunError(fmt::format("the switch's core {} is busy; run one network at a time", eal.cores()[1]));
    }
    // Time resumes only now, after the start of the switch's thread, because the kernel may be slow to wake that
    // thread.
    const Nanos shift = clock.now() - paused_at;
    host_time.start(clock, shift, paused_at);
    switch_time.start(clock, shift, paused_at);
    for (auto& host : hosts) host->due = paused_at;
    if (own_core) switch_state.store(SwitchState::running, std::memory_order_release);
    running = true;
    // Ends the switch's thread with the run, even if a Pollable or `stop` throws.
    struct SwitchStop {
      SwitchStop(Impl& impl_, bool own_core_) : impl(impl_), own_core(own_core_) {}
      SwitchStop(const SwitchStop&) = delete;
      SwitchStop& operator=(const SwitchStop&) = delete;
      Impl& impl;
      bool own_core;
      ~SwitchStop() {
        if (own_core) {
          impl.switch_state.store(SwitchState::stopped, std::memory_order_release);
          impl.eal.core_thread(1).wait();
          take_over(&impl);
        }
        impl.running = false;
        impl.paused_at = std::max(impl.host_time.now(), own_core ? impl.switch_time.now() : Nanos(0));
      }
    };
    const SwitchStop switch_stop(*this, own_core);
    return loop(until, stop, own_core);
  }

  bool loop(Nanos until, const std::function<bool()>& stop, bool own_core) {
    for (;;) {
      Nanos now = host_time.begin_round();
      if (stop && stop()) return true;
      const bool last = now > until;  // after `until`, one last round handles the events that were due by `until`
      Nanos next = until;
      bool busy = false;
      if (!own_core) {
        next = std::min(next, step(now, kDeliveriesPerRound));
        busy = moved;
      }
      for (auto& host : hosts) {
        if (host->pollable == nullptr) continue;
        now = host_time.now();
        if (host->due <= now || host->ready()) {
          host->unblock();
          host->due = Nanos::never();
          const Nanos due = host->pollable->poll(now);
          host->due = std::min(host->due, due);  // poll() may have called wake() for this host
          busy = true;
        }
      }
      if (last) return false;
      if (busy || !options.sleep_when_idle) continue;
      for (const auto& host : hosts) {
        if (host->pollable != nullptr) next = std::min(next, host->due);
      }
      if (next - now < kWorthSleeping || !network_is_empty(own_core)) continue;
      if (own_core) quiet_until.store(next.count, std::memory_order_release);
      host_time.sleep_towards(next);
      if (own_core) quiet_until.store(0, std::memory_order_release);
    }
  }

  static constexpr std::uint64_t kBusy = ~std::uint64_t{0};

  const Eal& eal;
  const fabric::DumbbellConfig config;
  const RingOptions options;
  const std::size_t offset;
  const std::string prefix;
  PacketPool pool;
  /// Hosts of the left side, then hosts of the right side. Declared after `pool`, because hosts use it until they are
  /// destroyed.
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<fabric::Link> access;
  fabric::Link bottleneck;
  fabric::Link reverse;
  fabric::UsageMeter usage;
  SwitchCounters counters;
  std::vector<Batch> batches;
  std::function<void(std::span<const std::byte>, Nanos)> tap;
  const std::uint32_t frame_limit;
  bool moved = false;  ///< whether the last step moved a packet

  LoopTime host_time;
  LoopTime switch_time;
  Nanos paused_at;
  bool running = false;
  enum class SwitchState { waiting, running, stopped };
  std::atomic<SwitchState> switch_state{SwitchState::stopped};
  /// kBusy while packets are inside the switch. If no packets are inside, the number of packets that the switch has
  /// taken from the hosts so far.
  alignas(64) std::atomic<std::uint64_t> idle_after{kBusy};
  /// Time in ns before which the hosts send nothing, while their thread sleeps; 0 if it does not sleep.
  alignas(64) std::atomic<std::int64_t> quiet_until{0};
};

namespace {

Host& own(const RingHost& host, const std::vector<std::unique_ptr<Host>>& hosts) {
  for (const auto& candidate : hosts) {
    if (candidate.get() == &host) return *candidate;
  }
  throw InputError("this host belongs to another network; use the hosts of this one");
}

std::uint32_t checked(std::uint32_t pair, std::uint32_t pairs) {
  if (pair >= pairs) throw InputError(fmt::format("there is no pair {}; pairs are 0 to {}", pair, pairs - 1));
  return pair;
}

bool inject(std::uint16_t port, const PacketRing& ring, const PacketPool& pool, std::uint32_t frame_limit,
            std::span<const std::byte> frame) {
  rte_mbuf* mbuf = frame.size() <= frame_limit + 64 ? rte_pktmbuf_alloc(pool.get()) : nullptr;
  if (mbuf == nullptr) return false;
  take_over(pool.get());
  std::memcpy(rte_pktmbuf_mtod(mbuf, std::byte*), frame.data(), frame.size());
  mbuf->data_len = static_cast<std::uint16_t>(frame.size());
  mbuf->pkt_len = mbuf->data_len;
  if (send_burst(port, ring, &mbuf, 1) == 1) return true;
  free_packet(mbuf);
  return false;
}

}  // namespace

RingDumbbell::RingDumbbell(const Eal& eal, const fabric::DumbbellConfig& config, const Options& options) {
  if (eal.cores().size() > 2) {
    throw InputError(
        fmt::format("{} cores are given, but a ring network uses at most 2: hosts on the first, the switch "
                    "on the second",
                    eal.cores().size()));
  }
  impl_ = std::make_unique<Impl>(eal, config, options, plan_for(config, options));
}

RingDumbbell::~RingDumbbell() = default;

std::uint32_t RingDumbbell::memory_mb(const fabric::DumbbellConfig& config, const Options& options) {
  const Plan plan = plan_for(config, options);
  const std::uint64_t rings =
      std::uint64_t{2} * config.pairs * (options.transmit_slots + options.receive_slots) * sizeof(void*);
  const std::uint64_t bytes = PacketPool::memory_bytes(plan.buffers, plan.frame_bytes) + rings;
  // Memory in MiB for DPDK's own tables and for gaps that alignment causes.
  constexpr std::uint64_t kBaseMb = 24;
  return static_cast<std::uint32_t>(kBaseMb + bytes / (1 << 20) + bytes / (1 << 20) / 16);
}

std::uint32_t RingDumbbell::max_pairs() { return max_ports() / 4; }

RingHost& RingDumbbell::left(std::uint32_t pair) { return *impl_->hosts[checked(pair, impl_->config.pairs)]; }
RingHost& RingDumbbell::right(std::uint32_t pair) {
  return *impl_->hosts[impl_->config.pairs + checked(pair, impl_->config.pairs)];
}

void RingDumbbell::attach(const RingHost& host, Pollable& pollable) { own(host, impl_->hosts).pollable = &pollable; }

void RingDumbbell::detach(const RingHost& host) { own(host, impl_->hosts).pollable = nullptr; }
void RingDumbbell::wake(const RingHost& host) { own(host, impl_->hosts).due = Nanos(); }

bool RingDumbbell::run(Nanos until, const std::function<bool()>& stop) { return impl_->run(until, stop); }
Nanos RingDumbbell::now() const { return impl_->running ? impl_->host_time.now() : impl_->paused_at; }

Nanos RingDumbbell::switch_step(Nanos now) {
  impl_->paused_at = std::max(impl_->paused_at, now);
  return impl_->step(now, SIZE_MAX);
}

std::uint32_t RingDumbbell::pairs() const { return impl_->config.pairs; }
const fabric::Link& RingDumbbell::bottleneck() const { return impl_->bottleneck; }
const fabric::Link& RingDumbbell::reverse() const { return impl_->reverse; }
const fabric::UsageMeter& RingDumbbell::usage() const { return impl_->usage; }
const SwitchCounters& RingDumbbell::switch_counters() const { return impl_->counters; }
const LoopCounters& RingDumbbell::host_loop() const { return impl_->host_time.counters; }
const LoopCounters& RingDumbbell::switch_loop() const { return impl_->switch_time.counters; }

void RingDumbbell::set_tap(std::function<void(std::span<const std::byte>, Nanos)> tap) { impl_->tap = std::move(tap); }

bool RingDumbbell::inject_from(const RingHost& host, std::span<const std::byte> frame) {
  Host& from = own(host, impl_->hosts);
  if (!inject(from.host_port.id(), from.to_switch, impl_->pool, impl_->frame_limit, frame)) return false;
  ++from.put;
  return true;
}

bool RingDumbbell::inject_to(const RingHost& host, std::span<const std::byte> frame) {
  const Host& to = own(host, impl_->hosts);
  return inject(to.switch_port.id(), to.to_host, impl_->pool, impl_->frame_limit, frame);
}

std::uint32_t RingDumbbell::buffers() const { return impl_->pool.size(); }
std::uint32_t RingDumbbell::buffers_in_use() const { return impl_->pool.in_use(); }

std::uint32_t RingDumbbell::drain() {
  impl_->drain();
  return impl_->pool.in_use();
}

}  // namespace mltcp::realtime
