// A datapath that does to another's packets what networks and strangers do: it loses, doubles, delays, damages and
// marks them, is full, reads payloads long after they were sent, as a device does, and brings packets that somebody
// forged. For any datapath, in virtual and in real time. Sans-IO: its owner tells it the time.
//
// What packets suffer, they do as they arrive. Damage is where the transport promises to see it: in what the checksum
// covers, or anywhere in a sealed packet.
//
// Who forges is blind to unsealed connections' tags, as the transport promises nothing of one who reads them, but knows
// all else: addresses, ids, and packets that went before, which it plays again or changes.
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

/// Probabilities in [0, 1], each of a packet; all zero: the network is well.
struct Faults {
  double loss = 0;
  double duplication = 0;
  double corruption = 0;
  double marking = 0;  ///< of packets that may be marked (ECN)
  double delaying = 0;
  Nanos max_delay{};   ///< of those; they are overtaken
  double refusal = 0;  ///< of a burst: that only a part of it is taken
  double forgery = 0;  ///< of a received burst: that somebody's packet comes with it
};

struct FaultCounts {
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t damaged = 0;
  std::uint64_t marked = 0;
  std::uint64_t delayed = 0;
  std::uint64_t refused = 0;   ///< bursts
  std::uint64_t forged = 0;    ///< packets of a stranger: replayed, changed or made up
  std::uint64_t kept = 0;      ///< payloads that were read in place
  std::uint64_t epochs = 0;    ///< times that a sender's keys were replaced by the next epoch's
  std::uint64_t received = 0;  ///< packets that came
};

class FaultyIo final : public PacketIo {
 public:
  /// `below` outlives it. `limits` are below's, or less; keeps_payload_from is its own.
  FaultyIo(PacketIo& below, const Limits& limits, const Random& random);

  /// Before each poll of who uses it. Throws Violation if a payload was changed that had still to be read.
  void set_time(Nanos now);
  void set_faults(const Faults& faults) { faults_ = faults; }
  /// The host stands still: packets come, and wait for it.
  void absorb();
  /// Whether there are packets that have not been received yet.
  [[nodiscard]] bool holds_packets() const { return !ready_.empty() || !delayed_.empty(); }
  /// The host is gone: nobody receives what has come, and payloads are read no more.
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

  /// False once there is nothing more.
  bool take_burst();
  void take(const RxPacket& packet);
  void damage(Packet& packet);
  void forge();
  void release(const Kept& kept);
  void watch_epoch(const TxPacket& packet);

  static constexpr Nanos kRetry{20'000};  // after a full send()

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
  std::array<Packet, 32> seen_;  ///< some of those that came, for who forges
  std::size_t next_seen_ = 0;
  std::unordered_map<std::uint64_t, bool> epoch_bits_;  ///< by the peer's connection
};

}  // namespace mltcp::experiment
