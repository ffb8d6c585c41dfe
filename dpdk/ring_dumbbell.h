// The dumbbell network in one process and in real time: hosts and a software switch joined by DPDK ring ports.
//
// Every host is an Ethernet port wired to a port of the switch; a wire is two rings. A host puts Ethernet, IPv4 and
// UDP headers with real checksums around what the transport sends, and verifies those it receives. The switch routes
// by IPv4 destination and sends each packet through the access link of its source and the shared link that leads to
// the side of its destination (the bottleneck to the right, the reverse link to the left), which are the same
// fabric::Link as in the simulator, with the time of a clock instead of virtual time: a link's rate, queue, marks,
// delay and faults happen to real packets, as precisely as the loop is polled.
//
// Up to as many packets as a NIC's transmit queue holds wait in an access link; further ones stay in the host's
// ring, and when that is full, send() takes no more. A packet whose receiver's ring is full is dropped, as in a NIC.
//
// Threads: with one core, hosts and switch take turns in the thread that calls run(). With two, the switch has the
// second core to itself. All methods belong to the thread that made the Eal; while run() is under way, only Pollables
// that it drives may call anything, and only the PacketIo of their own host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/ring_io.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::dpdk {

struct SwitchCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t delivered_packets = 0;  ///< put into a host's ring
  std::uint64_t receiver_full = 0;      ///< discarded since the receiver's ring was full
  std::uint64_t no_copy = 0;            ///< duplications that did not happen since the pool was empty
  RejectCounters rejected{};            ///< discarded; Reject::not_for_us: no host has the address
};

struct RingOptions {
  /// Packets on the wire from a host to the switch, and from the switch to a host; powers of two, 64 to 65536. The
  /// latter bounds how long a host's thread may be away before packets are lost: 4096 full packets are 49 ms at
  /// 1 Gbps.
  std::uint32_t transmit_slots = 1024;
  std::uint32_t receive_slots = 4096;
  /// Packet buffers; 0: as many as the configuration can have under way, within reason.
  std::uint32_t buffers = 0;
  Nanos usage_bin{1'000'000};  ///< see fabric::UsageMeter, like the next
  std::size_t usage_bins = 16384;
  /// Sleep while nothing is due for some time instead of spinning.
  bool sleep_when_idle = true;
};

class RingDumbbell {
 public:
  using Options = RingOptions;
  /// The UDP port of every host.
  static constexpr std::uint16_t port = 4793;

  /// `eal` outlives it. Throws InputError for a configuration out of range, more pairs than DPDK has ports for
  /// (max_pairs()) or more than two cores; RunError if memory is short.
  RingDumbbell(const Eal& eal, const fabric::DumbbellConfig& config, const Options& options = {});
  /// Discards the packets inside.
  ~RingDumbbell();
  RingDumbbell(const RingDumbbell&) = delete;
  RingDumbbell& operator=(const RingDumbbell&) = delete;

  /// EalOptions::memory_mb that suffices for such a network. Throws InputError like the constructor.
  static std::uint32_t memory_mb(const fabric::DumbbellConfig& config, const Options& options = {});
  /// Most pairs of hosts that DPDK's ports suffice for.
  static std::uint32_t max_pairs();

  [[nodiscard]] std::uint32_t pairs() const;
  /// Host `pair` of a side, below pairs(). Its address is 10.1.(pair / 250).(pair % 250 + 1) on the left, 10.2 on
  /// the right. Throws InputError if there is no such pair.
  RingHost& left(std::uint32_t pair);
  RingHost& right(std::uint32_t pair);

  /// Runs `pollable` on `host` from now on, instead of what was attached before. It is polled for the first time when
  /// run() goes on. The caller keeps it alive until it is detached or the network is no longer run.
  void attach(const RingHost& host, Pollable& pollable);
  void detach(const RingHost& host);
  /// Has `host` polled in the present or next round, for a stimulus that is neither a packet nor its deadline. May be
  /// called from within a poll, for any host.
  void wake(const RingHost& host);

  /// Runs switch and hosts until the time is `until`, or `stop` is true: it is asked in every round, at least every
  /// 20 ms, and not at all if it is empty. Returns whether it stopped the run. Passes on what a Pollable throws. The
  /// calling thread is pinned to the first core for the time of the run.
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }
  /// The time: 0 at the first run's start, following CLOCK_MONOTONIC while a run is under way, and standing still
  /// between runs. It may end a run some microseconds after `until`.
  [[nodiscard]] Nanos now() const;

  /// One round of the switch at time `now`, not before that of the round before: takes what the hosts have sent,
  /// delivers what is due. Returns when the next packet inside is due. For tests that keep time themselves; not while
  /// run() is under way, and not after it with an earlier time.
  Nanos switch_step(Nanos now);

  /// The shared links, for their counters; not while run() is under way.
  [[nodiscard]] const fabric::Link& bottleneck() const;
  [[nodiscard]] const fabric::Link& reverse() const;
  /// Bytes on the wire of each job on the bottleneck over time, lost packets included.
  [[nodiscard]] const fabric::UsageMeter& usage() const;
  [[nodiscard]] const SwitchCounters& switch_counters() const;
  /// Of the thread that drives the hosts, and of the switch's if it has its own (all zero otherwise).
  [[nodiscard]] const LoopCounters& host_loop() const;
  [[nodiscard]] const LoopCounters& switch_loop() const;

  /// Called with every frame at the moment that the switch puts it into a host's ring, in the switch's thread, and its
  /// time. For packet captures and tests; an empty function ends it.
  void set_tap(std::function<void(std::span<const std::byte> frame, Nanos now)> tap);
  /// Puts a frame, whatever it holds, on the wire from `host` to the switch, or from the switch to `host`. False if
  /// the ring is full, no buffer is free or the frame is longer than a buffer. For fault injection.
  bool inject_from(const RingHost& host, std::span<const std::byte> frame);
  bool inject_to(const RingHost& host, std::span<const std::byte> frame);

  /// Packet buffers in all, and those that are not free.
  [[nodiscard]] std::uint32_t buffers() const;
  [[nodiscard]] std::uint32_t buffers_in_use() const;
  /// Discards all packets inside, those received last too, and returns the buffers that are not free then: 0, or some
  /// have leaked.
  std::uint32_t drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
