// The dumbbell network within one process in real time: hosts and a software switch connected by DPDK ring ports.
//
// Every host is an Ethernet port connected to a port of the switch by two rings. A host adds Ethernet, IPv4 and UDP
// headers with checksums to what the transport sends, and verifies the headers of packets that it receives. The switch
// routes by IPv4 destination. It sends each packet through the access link of its source and then through the shared
// link toward its destination: the bottleneck to the right, the reverse link to the left. All links are the simulator's
// fabric::Link in real time. The switch applies the rate, queue, marks, delay and faults of a link to real packets. The
// shorter its rounds, the more precise are the times.
//
// An access link holds as many packets as a NIC's transmit queue. Further packets stay in the host's ring, and when the
// ring is full, send() accepts no more. The switch drops a packet if the ring of the receiver is full, as a NIC does.
//
// Threads: with one core, hosts and switch alternate in the thread that calls run(). With two cores, the switch has the
// second core to itself. All functions must be called by the thread that created the Eal. During run(), only the
// attached Pollables may call functions, and only on the PacketIo of their own host.
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
  std::uint64_t delivered_packets = 0;  ///< packets put into a host's receive ring
  std::uint64_t receiver_full = 0;      ///< packets discarded because the receiver's ring was full
  std::uint64_t no_copy = 0;            ///< duplications omitted because no buffer was free
  dpdk::RejectCounters rejected{};      ///< packets discarded, by reason; Reject::not_for_us: no host has the address
};

struct RingOptions {
  /// Capacity in packets of the ring from a host to the switch (transmit) and of the ring from the switch to a host
  /// (receive). Each is a power of two from 64 to 65536. The receive capacity limits for how long a host's thread may
  /// be suspended without losses. At 1 Gbps, 4096 full packets arrive in 49 ms.
  std::uint32_t transmit_slots = 1024;
  std::uint32_t receive_slots = 4096;
  /// Number of packet buffers. 0 means the number of packets that can be in flight in this configuration, within
  /// limits.
  std::uint32_t buffers = 0;
  Nanos usage_bin{1'000'000};  ///< bin width of usage(), see fabric::UsageMeter
  std::size_t usage_bins = 16384;
  /// Whether to sleep, instead of spinning, while no event is due soon.
  bool sleep_when_idle = true;
};

class RingDumbbell {
 public:
  using Options = RingOptions;
  /// The UDP port of every host.
  static constexpr std::uint16_t port = 4793;

  /// `eal` must outlive the network. Throws InputError if the configuration is out of range, or if there are more than
  /// max_pairs() pairs or more than two cores. Throws RunError if memory is short.
  RingDumbbell(const dpdk::Eal& eal, const fabric::DumbbellConfig& config, const Options& options = {});
  /// Discards all packets inside the network.
  ~RingDumbbell();
  RingDumbbell(const RingDumbbell&) = delete;
  RingDumbbell& operator=(const RingDumbbell&) = delete;

  /// Returns the memory in MiB (EalOptions::memory_mb) that a network with this configuration needs. Throws InputError
  /// like the constructor.
  static std::uint32_t memory_mb(const fabric::DumbbellConfig& config, const Options& options = {});
  /// Returns the maximum number of pairs of hosts, which depends on DPDK's maximum number of ports.
  static std::uint32_t max_pairs();

  [[nodiscard]] std::uint32_t pairs() const;
  /// Returns host number `pair` of a side; `pair` must be below pairs(). The address of the host is 10.1.(pair /
  /// 250).(pair % 250 + 1) on the left, and 10.2.(pair / 250).(pair % 250 + 1) on the right. Throws InputError if there
  /// is no such pair.
  dpdk::RingHost& left(std::uint32_t pair);
  dpdk::RingHost& right(std::uint32_t pair);

  /// Runs `pollable` on `host` from now on, in place of any previously attached Pollable. The next run() polls it for
  /// the first time. `pollable` must stay valid until it is detached or replaced, or until the last run() has returned.
  void attach(const dpdk::RingHost& host, Pollable& pollable);
  void detach(const dpdk::RingHost& host);
  /// Makes run() poll `host` in the current or next round, for an external event. May be called from within any host's
  /// poll.
  void wake(const dpdk::RingHost& host);

  /// Runs switch and hosts until `until`, or until `stop` returns true. `stop` may be empty; it is called in every
  /// round, at least every 20 ms. Returns whether `stop` ended the run. Passes on exceptions of a Pollable. Pins the
  /// calling thread to the first core during the run.
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }
  /// Returns the time. It is 0 at the start of the first run, follows CLOCK_MONOTONIC during runs, and stands still
  /// between runs. After a run it may exceed `until` by some microseconds.
  [[nodiscard]] Nanos now() const;

  /// Runs one round of the switch at time `now`, which must not decrease. Receives the packets that the hosts have
  /// sent, and delivers the packets that are due. Returns the time at which the next packet inside is due. For tests
  /// with their own clock. Must not be called during run(). After run(), `now` must not be before the end of that run.
  Nanos switch_step(Nanos now);

  /// Return the shared links, to read their counters. Must not be called during run().
  [[nodiscard]] const fabric::Link& bottleneck() const;
  [[nodiscard]] const fabric::Link& reverse() const;
  /// Returns the bytes of each job on the wire of the bottleneck over time, including lost packets.
  [[nodiscard]] const fabric::UsageMeter& usage() const;
  [[nodiscard]] const SwitchCounters& switch_counters() const;
  /// host_loop() returns the counters of the thread that drives the hosts. switch_loop() returns the counters of the
  /// switch's own thread; they are 0 if the switch has no own thread.
  [[nodiscard]] const LoopCounters& host_loop() const;
  [[nodiscard]] const LoopCounters& switch_loop() const;

  /// Makes the switch's thread call `tap` with every frame delivered to a host, and with the time. For packet captures
  /// and tests. An empty `tap` ends the calls.
  void set_tap(std::function<void(std::span<const std::byte> frame, Nanos now)> tap);
  /// Puts any frame into the ring from `host` to the switch, or from the switch to `host`. Returns false if the ring is
  /// full, if no buffer is free, or if the frame exceeds a buffer. For fault injection.
  bool inject_from(const dpdk::RingHost& host, std::span<const std::byte> frame);
  bool inject_to(const dpdk::RingHost& host, std::span<const std::byte> frame);

  /// buffers() returns the total number of packet buffers. buffers_in_use() returns the number of buffers in use.
  [[nodiscard]] std::uint32_t buffers() const;
  [[nodiscard]] std::uint32_t buffers_in_use() const;
  /// Discards all packets inside the network, including the packets that each host received last. Returns the number of
  /// buffers that are still in use; more than 0 means a leak.
  std::uint32_t drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::realtime
