// The software switch; see soft_switch.h.
#include "mltcp/lab/realtime/soft_switch.h"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pause.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/burst.h"
#include "mltcp/dpdk/receive_interrupts.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/dpdk/service.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::realtime {

using namespace dpdk;  // this file builds the switch from the ports and buffers of namespace dpdk

namespace {

using Handle = fabric::EthernetSwitch::Handle;

constexpr std::uint16_t kBurst = 32;
/// Maximum number of frames received per port and round: about as many as arrive in 1 ms at 10 Gbps.
constexpr std::size_t kRound = 1024;
/// Maximum number of frames that wait while a port accepts no more. At 1 Gbps, sending 1024 full frames takes 12 ms.
constexpr std::size_t kWaiting = 1024;
/// Bytes of two VLAN tags.
constexpr std::uint32_t kTagBytes = 8;
constexpr Nanos kAskEvery{1'000'000};
constexpr Nanos kLookEvery{100'000'000};
constexpr Nanos kLongestNap{50'000};
constexpr Nanos kShortestNap{10'000};
/// A nap (short sleep) takes at most the time in which the smallest buffer drains, divided by this number.
constexpr std::int64_t kNapPart = 12;
/// Rate of an output that only its port limits. An output with this rate never has a queue.
constexpr Rate kPortsOwn{1'000'000'000'000'000};
/// A switch whose naps would be too short sleeps only if the next event is at least this far away. A shorter sleep
/// would end after the event.
constexpr Nanos kFarAway{150'000};
/// For this time after the last frame, the switch naps even if it has interrupts, because these would wake it for every
/// frame.
constexpr Nanos kAwake{200'000};
/// Number of idle rounds before a sleep.
constexpr std::uint32_t kIdleRounds = 4;

/// The switch verifies the checksums of the first 64 frames of each port, and then of one frame in 256.
constexpr std::uint64_t kLookAtFirst = 64;
constexpr std::uint64_t kLookAtEach = 255;

rte_mbuf* packet_of(Handle handle) { return std::bit_cast<rte_mbuf*>(handle); }
Handle handle_of(rte_mbuf* packet) { return std::bit_cast<Handle>(packet); }

fabric::MacNumber number_of(const encap::MacAddress& mac) {
  fabric::MacNumber number = 0;
  for (const std::uint8_t octet : mac) number = number << 8 | octet;
  return number;
}

std::vector<fabric::SwitchPortConfig> configs_of(const std::vector<SoftSwitchPort>& ports) {
  std::vector<fabric::SwitchPortConfig> configs;
  for (const SoftSwitchPort& port : ports) configs.push_back(port.config);
  return configs;
}

std::uint32_t longest_of(const std::vector<SoftSwitchPort>& ports) {
  std::uint32_t longest = 0;
  for (const SoftSwitchPort& port : ports) longest = std::max(longest, port.frame_bytes);
  if (longest < 64 || longest > 16384)
    throw InputError(fmt::format("frames of {} bytes at a port; give 64 to 16384", longest));
  return longest + kTagBytes;
}

/// Returns the maximum number of copies inside the switch: 2048, plus the number of packets that each link with
/// duplication can hold.
std::uint32_t copies_for(const std::vector<SoftSwitchPort>& ports) {
  std::uint32_t copies = 2048;
  for (const SoftSwitchPort& port : ports)
    if (port.config.output.faults.duplication > 0) copies += fabric::packets_in(port.config.output);
  return std::min(copies, 65535U);
}

std::string unique_name() {
  static std::atomic<unsigned> instances{0};
  return fmt::format("switch{}", instances++);
}

}  // namespace

struct SoftSwitch::Impl {
  struct Port {
    SoftSwitchPort given;
    SoftSwitchCounters counters;
    std::array<rte_mbuf*, kWaiting> waiting{};
    std::size_t count = 0;
    /// Frames received in this round. Those with indices from `admitted` to `taken` - 1 are not yet processed.
    std::array<rte_mbuf*, kRound> received{};
    std::size_t taken = 0;
    std::size_t admitted = 0;
    Nanos next;   ///< time at which the next frame is assumed to have arrived
    Nanos apart;  ///< assumed time between two consecutive frames
    std::uint64_t looked_at = 0;
  };

  Impl(const Eal& eal_, std::vector<SoftSwitchPort> given, const SoftSwitchOptions& options_)
      : eal(eal_),
        options(options_),
        pool(unique_name(), copies_for(given), longest_of(given)),
        bridge(configs_of(given), options_.table),
        begun(eal_.clock().now()) {
    for (SoftSwitchPort& port : given) ports.emplace_back().given = std::move(port);
    loop.start(eal.clock(), begun, Nanos());
  }
  ~Impl() {
    for (Port& port : ports) {
      free_packets(port.waiting.data(), port.count);
    }
    bridge.drain(*this);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Functions for fabric::SwitchFrames. Copies use the switch's own buffers. A port that sends its own buffers without
  // a copy, such as AF_XDP, can distinguish these copies.
  Handle copy(Handle frame) {
    rte_mbuf* const copied = rte_pktmbuf_copy(packet_of(frame), pool.get(), 0, UINT32_MAX);
    if (copied == nullptr) return 0;
    take_over(pool.get());
    return handle_of(copied);
  }
  static void mark(Handle frame) { encap::mark_congestion(frame_of(packet_of(frame))); }
  static void damage(Handle frame, std::uint64_t bits) { flip_bit(frame_of(packet_of(frame)), bits); }
  static void discard(Handle frame) {
    rte_mbuf* packet = packet_of(frame);
    free_packets(&packet, 1);
  }
  void deliver(std::uint32_t number, Handle frame, Nanos /*at*/) {
    moved = true;
    Port& port = ports[number];
    if (packet_of(frame)->pkt_len > port.given.frame_bytes + kTagBytes) [[unlikely]] {
      ++port.counters.too_long;
      discard(frame);
      return;
    }
    if (port.count == kWaiting) flush(port);
    if (port.count == kWaiting) [[unlikely]] {
      ++port.counters.transmit_full;
      discard(frame);
      return;
    }
    port.waiting[port.count++] = packet_of(frame);
    if (port.given.tap != nullptr) [[unlikely]]
      show(*port.given.tap, encap::FrameTap::Way::out, packet_of(frame));
  }

  static void show(encap::FrameTap& tap, encap::FrameTap::Way way, const rte_mbuf* packet) {
    tap.frame(way, {rte_pktmbuf_mtod(packet, const std::byte*), packet->data_len}, packet->pkt_len);
  }

  /// Receives from all ports. Must be called before the time is read. If the thread is preempted after receive(), the
  /// frames get arrival times that are too late. If the time were read first, all frames that arrive during the
  /// preemption would get nearly the same arrival time.
  void receive() {
    for (Port& port : ports) {
      port.taken = 0;
      for (std::uint16_t count = kBurst; count == kBurst && port.taken < kRound; port.taken += count)
        count = receive_burst(port.given.id, std::uint16_t{0}, port.received.data() + port.taken, kBurst);
      if (port.given.tap != nullptr) [[unlikely]]
        for (std::size_t i = 0; i < port.taken; ++i) show(*port.given.tap, encap::FrameTap::Way::in, port.received[i]);
    }
  }

  /// Processes the received frames at time `now`. Returns when the next round is due.
  Nanos process(Nanos now) {
    moved = false;
    admit_all(now);
    before = now;
    Nanos next = Nanos::never();
    for (std::uint32_t number = 0; number < ports.size(); ++number) {
      bridge.advance(number, now, *this);
      next = std::min(next, bridge.next_event(number));
      if (ports[number].count > 0) flush(ports[number]);
      if (ports[number].count > 0) next = now;
    }
    return next;
  }

  /// Processes received frames in the order of their arrival. Assumes that the frames of each port have arrived evenly
  /// spaced since the previous round.
  void admit_all(Nanos now) {
    std::array<std::uint32_t, fabric::EthernetSwitch::kMaxPorts> active;  // NOLINT(*-member-init): up to `count`
    std::uint32_t count = 0;
    for (std::uint32_t number = 0; number < ports.size(); ++number) {
      Port& port = ports[number];
      if (port.taken == 0) continue;
      take_over(&port);
      port.admitted = 0;
      port.apart = (now - before) / static_cast<std::int64_t>(port.taken);
      port.next = before + port.apart;
      active[count++] = number;
    }
    if (count > 0) moved = true;
    while (count > 0) {
      std::uint32_t first = 0;
      for (std::uint32_t i = 1; i < count; ++i)
        if (ports[active[i]].next < ports[active[first]].next) first = i;
      Port& port = ports[active[first]];
      admit(port.received[port.admitted], active[first], port.next);
      port.next += port.apart;
      if (++port.admitted == port.taken) active[first] = active[--count];
    }
  }

  void admit(rte_mbuf* packet, std::uint32_t number, Nanos now) {
    Port& port = ports[number];
    SoftSwitchCounters& counters = port.counters;
    encap::Glance seen;
    // Each port has buffers for its longest frame, so a frame in several buffers (segments) is too long.
    const bool fits = packet->nb_segs == 1 && packet->pkt_len <= port.given.frame_bytes + kTagBytes;
    const encap::FrameFault fault =
        fits ? encap::glance(frame_of(packet), packet->pkt_len, seen) : encap::FrameFault::none;
    if (!fits || fault != encap::FrameFault::none) [[unlikely]] {
      ++(!fits                                    ? counters.oversized
         : fault == encap::FrameFault::runt       ? counters.runts
         : fault == encap::FrameFault::bad_source ? counters.bad_sources
                                                  : counters.cut_short);
      free_packets(&packet, 1);
      return;
    }
    if (((port.looked_at++ & kLookAtEach) == 0 || port.looked_at <= kLookAtFirst) &&
        encap::transport_checksum_is_wrong(frame_of(packet), seen)) [[unlikely]]
      ++counters.bad_checksums;
    bridge.receive(number, handle_of(packet),
                   {number_of(seen.destination_mac), number_of(seen.source_mac), packet->pkt_len, seen.priority,
                    seen.ecn != Ecn::not_ect},
                   now, *this);
  }

  /// Sends the frames that wait for a port, as far as the port accepts them.
  static void flush(Port& port) {
    hand_over(&port);
    std::size_t sent = 0;
    for (std::uint16_t taken = 1; sent < port.count && taken > 0; sent += taken) {
      const auto max = static_cast<std::uint16_t>(std::min<std::size_t>(kBurst, port.count - sent));
      Bytes bytes = 0;  // must be read before rte_eth_tx_burst(), after which the port owns the frames
      for (std::uint16_t i = 0; i < max; ++i) bytes += port.waiting[sent + i]->pkt_len;
      taken = rte_eth_tx_burst(port.given.id, 0, port.waiting.data() + sent, max);
      for (std::uint16_t i = taken; i < max; ++i) bytes -= port.waiting[sent + i]->pkt_len;
      port.counters.sent_frames += taken;
      port.counters.sent_bytes += bytes;
    }
    std::copy(port.waiting.data() + sent, port.waiting.data() + port.count, port.waiting.data());
    port.count -= sent;
  }

  void look_at_links() {
    for (std::uint32_t number = 0; number < ports.size(); ++number) {
      Port& port = ports[number];
      const bool up = !port.given.link_is_up || port.given.link_is_up();
      if (up == bridge.is_up(number)) continue;
      ++port.counters.link_changes;
      bridge.set_up(number, up);
    }
  }

  bool run(Nanos until, const std::function<bool()>& stop) {
    const RunThread thread(eal.cores()[0]);
    join_dpdk();
    ReceiveInterrupts interrupts(eal.time(), waitable_queues());
    const Nanos nap = longest_nap();
    Nanos ask;
    Nanos moved_at;
    bool woken = false;  ///< whether a file descriptor ended the last sleep
    Nanos woken_at;
    std::uint32_t idle = 0;
    loop.start(eal.clock(), begun, latest);
    look_at_links();
    Nanos look = latest + kLookEvery;
    for (;;) {
      receive();
      latest = loop.begin_round();
      const Nanos next = std::min(process(latest), until);
      if (latest >= ask) {
        if (stop && stop()) return true;
        if (latest > until) return false;
        ask = latest + kAskEvery;
        if (latest >= look) {
          look_at_links();
          look = latest + kLookEvery;
        }
      }
      idle = moved ? 0 : idle + 1;
      if (moved) moved_at = latest;
      if (idle == 0 || options.idle == SwitchIdle::spin) continue;
      if (options.idle != SwitchIdle::sleep || idle < kIdleRounds) {
        rte_pause();
        continue;
      }
      const Nanos away = next - latest;
      const bool naps = nap >= kShortestNap;
      const bool awake = interrupts.are_sockets() && latest - moved_at < kAwake;
      // frames woke the switch, but it had no buffers to receive them
      const bool in_vain = woken && moved_at < woken_at;
      woken = false;
      if (interrupts.are_armed() && !awake && !in_vain && away >= (naps ? nap : kFarAway)) {
        // If naps are too short to be used, the sleep must end before the next event.
        woken = interrupts.wait(loop, std::min(naps ? away : away - kWakeBefore, kLongestSleep), [&] {
          receive();
          latest = loop.now();
          return process(latest) >= next && !moved;
        });
        woken_at = latest;
        // Frames end the sleep when they arrive. So the frames of the next round have arrived recently.
        before = std::max(before, loop.now() - kLongestNap);
        idle = 0;
      } else if (away >= kFarAway) {
        loop.sleep_for(naps && awake ? nap : kLongestNap);
      } else if (naps) {
        loop.sleep_for(nap);
      } else {
        rte_pause();
      }
    }
  }

  /// Returns the duration of a nap, which is a small part of the time in which the smallest buffer drains.
  [[nodiscard]] Nanos longest_nap() const {
    Nanos nap = kLongestNap;
    for (const Port& port : ports) {
      const fabric::LinkConfig& output = port.given.config.output;
      if (output.rate >= kPortsOwn || output.buffer_bytes == 0) continue;
      nap = std::min(nap, Nanos(output.rate.time_for(output.buffer_bytes).count / kNapPart));
    }
    return nap;
  }

  /// Returns the receive queues of all ports, or no queues if a port cannot notify of received frames.
  [[nodiscard]] std::vector<QueueInterrupt> waitable_queues() const {
    std::vector<QueueInterrupt> queues;
    for (const Port& port : ports) {
      if (options.idle != SwitchIdle::sleep || !port.given.has_interrupts) return {};
      queues.push_back({port.given.id, 0, port.given.receive_file});
    }
    return queues;
  }

  const Eal& eal;
  const SoftSwitchOptions options;
  PacketPool pool;  ///< buffers for copies of frames
  fabric::EthernetSwitch bridge;
  std::vector<Port> ports;
  LoopTime loop;
  const Nanos begun;
  Nanos latest;
  Nanos before;        ///< time of the last round
  bool moved = false;  ///< whether the last round moved a frame
};

SoftSwitch::SoftSwitch(const Eal& eal, std::vector<SoftSwitchPort> ports, const SoftSwitchOptions& options)
    : impl_(std::make_unique<Impl>(eal, std::move(ports), options)) {}

SoftSwitch::~SoftSwitch() = default;

std::uint32_t SoftSwitch::memory_mb(const std::vector<SoftSwitchPort>& ports) {
  return static_cast<std::uint32_t>(PacketPool::memory_bytes(copies_for(ports), longest_of(ports)) >> 20) + 1;
}

std::uint32_t SoftSwitch::frames_inside(const std::vector<SoftSwitchPort>& ports) {
  std::uint32_t frames = 0;
  for (const SoftSwitchPort& port : ports)
    frames += fabric::packets_in(port.config.output) + static_cast<std::uint32_t>(kWaiting);
  return frames;
}

bool SoftSwitch::run(Nanos until, const std::function<bool()>& stop) { return impl_->run(until, stop); }
Nanos SoftSwitch::now() const { return impl_->eal.clock().now() - impl_->begun; }
Nanos SoftSwitch::step(Nanos now) {
  impl_->latest = now;
  impl_->receive();
  return impl_->process(now);
}

const SoftSwitchCounters& SoftSwitch::counters(std::uint32_t port) const { return impl_->ports[port].counters; }
const fabric::EthernetSwitch& SoftSwitch::bridge() const { return impl_->bridge; }
Bytes SoftSwitch::take_longest_queue(std::uint32_t port) { return impl_->bridge.take_longest_queue(port); }
const LoopCounters& SoftSwitch::loop() const { return impl_->loop.counters; }
std::uint32_t SoftSwitch::copies_in_use() const { return impl_->pool.in_use(); }

}  // namespace mltcp::realtime
