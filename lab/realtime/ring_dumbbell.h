// The dumbbell network within one process in real time: hosts and a software switch connected by DPDK ring ports.
//
// Every host is an Ethernet port connected to a port of the switch by two rings. A host adds Ethernet, IPv4 and UDP
// headers with checksums to what the transport sends, and verifies those it receives. The switch routes by IPv4
// destination and sends each packet through the access link of its source and the shared link toward its destination
// (the bottleneck to the right, the reverse link to the left). These are the simulator's fabric::Link with real time: a
// link's rate, queue, marks, delay and faults are applied to real packets, as precisely as the loop is polled.
//
// An access link holds as many packets as a NIC's transmit queue; further ones stay in the host's ring, and when that
// is full, send() accepts no more. A packet to a receiver whose ring is full is dropped, as in a NIC.
//
// Threads: with one core, hosts and switch alternate in the thread that calls run(); with two, the switch has the
// second core to itself. All functions must be called by the thread that created the Eal; during run(), only by the
// Pollables that it drives, and only on the PacketIo of their own host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/ring_io.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::realtime {

struct SwitchCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t delivered_packets = 0;  ///< put into a host's receive ring
  std::uint64_t receiver_full = 0;      ///< discarded as the receiver's ring was full
  std::uint64_t no_copy = 0;            ///< duplications omitted as the pool was empty
  dpdk::RejectCounters rejected{};      ///< discarded; Reject::not_for_us: no host has the address
};

struct RingOptions {
  /// Capacity of the rings from a host to the switch and from the switch to a host, in packets; powers of two from 64
  /// to 65536. The latter limits how long a host's thread may be suspended without losses: 4096 full packets are 49 ms
  /// at 1 Gbps.
  std::uint32_t transmit_slots = 1024;
  std::uint32_t receive_slots = 4096;
  /// Number of packet buffers; 0: the number that the configuration can have in flight, within limits.
  std::uint32_t buffers = 0;
  Nanos usage_bin{1'000'000};  ///< bin width of usage(), see fabric::UsageMeter
  std::size_t usage_bins = 16384;
  /// Sleep instead of spinning while nothing is due for some time.
  bool sleep_when_idle = true;
};

class RingDumbbell {
 public:
  using Options = RingOptions;
  /// The UDP port of every host.
  static constexpr std::uint16_t port = 4793;

  /// `eal` must outlive it. Throws InputError if the configuration is out of range, or for more than max_pairs() pairs
  /// or two cores; RunError if memory is short.
  RingDumbbell(const dpdk::Eal& eal, const fabric::DumbbellConfig& config, const Options& options = {});
  /// Discards all packets inside.
  ~RingDumbbell();
  RingDumbbell(const RingDumbbell&) = delete;
  RingDumbbell& operator=(const RingDumbbell&) = delete;

  /// Memory in MiB (EalOptions::memory_mb) that such a network needs. Throws InputError like the constructor.
  static std::uint32_t memory_mb(const fabric::DumbbellConfig& config, const Options& options = {});
  /// Maximum number of pairs of hosts, given by DPDK's maximum number of ports.
  static std::uint32_t max_pairs();

  [[nodiscard]] std::uint32_t pairs() const;
  /// Host number `pair`, below pairs(), of a side. Its address is 10.1.(pair / 250).(pair % 250 + 1) on the left, and
  /// 10.2... on the right. Throws InputError if there is no such pair.
  dpdk::RingHost& left(std::uint32_t pair);
  dpdk::RingHost& right(std::uint32_t pair);

  /// Runs `pollable` on `host` from now on, in place of any other. It is first polled in the next run(), and must live
  /// until it is detached or the network is no longer run.
  void attach(const dpdk::RingHost& host, Pollable& pollable);
  void detach(const dpdk::RingHost& host);
  /// Polls `host` in the current or next round, for an external event. May be called from within any host's poll.
  void wake(const dpdk::RingHost& host);

  /// Runs switch and hosts until `until`, or until `stop` returns true; `stop` is called in every round, at least every
  /// 20 ms, and may be empty. Returns whether it stopped the run. Passes on exceptions of a Pollable. The calling
  /// thread is pinned to the first core during the run.
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }
  /// The time: 0 at the start of the first run; follows CLOCK_MONOTONIC during runs and stands still between them. May
  /// exceed `until` by some microseconds after a run.
  [[nodiscard]] Nanos now() const;

  /// One round of the switch at time `now`, which must not decrease: receives what the hosts have sent and delivers
  /// what is due. Returns when the next packet inside is due. For tests with their own clock; not during run(), and
  /// afterwards not with an earlier time.
  Nanos switch_step(Nanos now);

  /// The shared links, to read their counters; not during run().
  [[nodiscard]] const fabric::Link& bottleneck() const;
  [[nodiscard]] const fabric::Link& reverse() const;
  /// Bytes on the wire of each job on the bottleneck over time, including lost packets.
  [[nodiscard]] const fabric::UsageMeter& usage() const;
  [[nodiscard]] const SwitchCounters& switch_counters() const;
  /// Counters of the thread that drives the hosts, and of the switch's own thread (all zero if it has none).
  [[nodiscard]] const LoopCounters& host_loop() const;
  [[nodiscard]] const LoopCounters& switch_loop() const;

  /// Calls `tap` in the switch's thread for every frame put into a host's ring, with the time. For packet captures and
  /// tests; an empty function switches it off.
  void set_tap(std::function<void(std::span<const std::byte> frame, Nanos now)> tap);
  /// Puts any frame into the ring from `host` to the switch, or from the switch to `host`. False if the ring is full,
  /// no buffer is free or the frame exceeds a buffer. For fault injection.
  bool inject_from(const dpdk::RingHost& host, std::span<const std::byte> frame);
  bool inject_to(const dpdk::RingHost& host, std::span<const std::byte> frame);

  /// Total number of packet buffers, and number of those in use.
  [[nodiscard]] std::uint32_t buffers() const;
  [[nodiscard]] std::uint32_t buffers_in_use() const;
  /// Discards all packets inside, including those received last, and returns the number of buffers still in use: more
  /// than 0 means a leak.
  std::uint32_t drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::realtime
