// A datapath that adds faults to another datapath. It loses, duplicates, delays, damages and marks packets, and refuses
// packets as if its queue were full. It reads payloads long after send() has returned, as a device does. It also
// delivers forged packets. It works with any datapath, in virtual and real time. Sans-IO: the owner of this datapath
// sets the time.
//
// Faults apply to packets as they arrive. Only bytes in which the transport guarantees to detect damage are damaged:
// bytes that the checksum covers, or any byte of a sealed packet.
//
// The forger does not know the tags of unsealed connections, since the transport does not guarantee protection against
// a peer that reads tags. It knows everything else: addresses, ids, and earlier packets, which it replays or changes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::experiment {

/// Probabilities in [0, 1], per packet unless stated otherwise. If all are 0, there are no faults.
struct Faults {
  double loss = 0;
  double duplication = 0;
  double corruption = 0;
  double marking = 0;  ///< probability that a packet is marked, among packets that support marking (ECN)
  double delaying = 0;
  Nanos max_delay{};   ///< maximum delay of a delayed packet, which other packets overtake
  double refusal = 0;  ///< probability that send() accepts only a part of a burst, or nothing
  double forgery = 0;  ///< probability per received burst that a forged packet comes with it
};

struct FaultCounts {
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t damaged = 0;
  std::uint64_t marked = 0;
  std::uint64_t delayed = 0;
  std::uint64_t refused = 0;   ///< bursts that send() did not accept in full
  std::uint64_t forged = 0;    ///< forged packets: replayed, changed or made up
  std::uint64_t kept = 0;      ///< payloads that were read from the sender's memory after send() had returned
  std::uint64_t epochs = 0;    ///< number of times that a sender's keys were replaced by those of the next epoch
  std::uint64_t received = 0;  ///< packets that arrived
};

class FaultyIo final : public PacketIo {
 public:
  /// `below` must outlive this object. `limits` must not exceed the limits of `below`, except for keeps_payload_from,
  /// which may have any value.
  FaultyIo(PacketIo& below, const Limits& limits, const Random& random);

  /// Must be called before each poll of the host. Throws Violation if a payload was changed before it was read.
  void set_time(Nanos now);
  void set_faults(const Faults& faults) { faults_ = faults; }
  /// Receives all packets that have arrived, and stores them for receive(). Called while the host's shard is not
  /// polled.
  void absorb();
  /// Returns whether there are packets that the host has not received yet.
  [[nodiscard]] bool holds_packets() const { return !ready_.empty() || !delayed_.empty(); }
  /// Drops all packets that the host has not received, and finishes all reads of payloads. Called before the host's
  /// shard is destroyed.
  void forget();
  [[nodiscard]] const FaultCounts& counts() const { return counts_; }

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;
  [[nodiscard]] Nanos deadline() const override;
  [[nodiscard]] bool is_blocked() const override { return blocked_ || below_.is_blocked(); }
  [[nodiscard]] std::uint64_t activity() const override { return below_.activity(); }
  std::optional<Wakeup> begin_waiting() override { return below_.begin_waiting(); }
  void end_waiting() override { below_.end_waiting(); }
  void arm() override { below_.arm(); }
  void disarm() override { below_.disarm(); }
  [[nodiscard]] std::span<PacketIo* const> feeders() const override { return below_.feeders(); }

 private:
  using Bytes = std::vector<std::byte>;
  struct Packet {
    Address source;
    Bytes bytes;
    Bytes tail;
    Ecn ecn = Ecn::not_ect;
    std::uint8_t priority = 0;
    std::uint8_t hops = 0;
  };
  /// A payload that is still to be read.
  struct Kept {
    std::span<const std::byte> payload;
    PayloadHold* hold;
    std::uint32_t checksum;
    Nanos until;
  };

  /// Receives a burst from `below_`. Returns false if there are no more packets.
  bool take_burst();
  void take(const RxPacket& packet);
  void damage(Packet& packet);
  void forge();
  void release(const Kept& kept);
  void watch_epoch(const TxPacket& packet);

  static constexpr Nanos kRetry{20'000};  // time until the next attempt after send() refused packets

  PacketIo& below_;
  Limits limits_;
  Random random_;
  Nanos now_;
  Faults faults_;
  FaultCounts counts_;
  std::deque<Packet> ready_;
  std::multimap<Nanos, Packet> delayed_;
  std::vector<Packet> lent_;
  std::vector<RxPacket> burst_;
  std::vector<TxPacket> sending_;
  std::deque<Kept> kept_;
  bool blocked_ = false;
  std::array<Packet, 32> seen_;  ///< sample of arrived packets that the forger replays or changes
  std::size_t next_seen_ = 0;
  std::unordered_map<std::uint64_t, bool> epoch_bits_;  ///< latest epoch bit of each peer's connection
};

}  // namespace mltcp::experiment
