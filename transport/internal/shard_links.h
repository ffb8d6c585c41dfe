// What the connections of a shard share: its jobs, the packets on their way to the datapath, and where completions go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/transport/internal/ack_batch.h"
#include "mltcp/transport/internal/pacer.h"
#include "mltcp/transport/internal/payload_holds.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/types.h"

namespace mltcp {

/// A job on a shard: its iteration, its gain, its slots, and the rate that its connections share.
struct JobState {
  bool used = false;
  std::uint32_t number = 0;
  cc::Augmentation augmentation;
  Nanos pacing_quantum;  ///< as in JobConfig
  Nanos catch_up;        ///< as in JobConfig
  Pacer pacer;
  PhaseGate gate;
  /// Connections that wait for the pacer, first come first served.
  GrowableRing<std::uint32_t> waiting;
  std::unique_ptr<cc::IterationLearner> learner;  ///< null: boundaries come from the application alone
  std::uint64_t open_messages = 0;                ///< posted on the job's connections and not completed
  bool in_burst = false;                          ///< some of them, or of those before them, have been sent

  void on_messages(std::int64_t more) {
    open_messages += static_cast<std::uint64_t>(more);
    if (open_messages == 0) in_burst = false;
  }
  void on_send(Nanos now) {
    if (in_burst || open_messages == 0 || learner == nullptr || augmentation.tracker.exact()) return;
    in_burst = true;
    if (learner->on_send(now)) augmentation.tracker.follow(*learner);
  }
  void on_delivered(Nanos now, Bytes bytes) {
    augmentation.tracker.on_delivered(bytes);
    if (learner != nullptr) learner->on_delivered(now, bytes);
  }
};

/// Packets that are built and not yet with the datapath. They point to headers in their own slots and to the user's
/// payload. A slot is used again only after all have left.
struct TxQueue {
  std::vector<TxPacket> packets;        ///< as many as a burst; destination null: dropped
  std::vector<std::uint64_t> messages;  ///< beside each packet: the number of the message that its payload is from
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] bool empty() const { return begin == end; }
  /// Drops what the connection of `destination` has pointing into a message that has completed: its bytes are the
  /// user's again. Such packets are late retransmissions, so no data is lost.
  void drop_message(const Address* destination, std::uint64_t message) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination && packets[i].payload.data() != nullptr && messages[i] == message)
        packets[i].destination = nullptr;
  }
  void drop_destination(const Address* destination) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination) packets[i].destination = nullptr;
  }
};

/// What a connection needs of its shard.
struct ShardLinks {
  GrowableRing<Completion>* completions = nullptr;
  TxQueue* tx = nullptr;
  PayloadHolds* holds = nullptr;
  AckBatches* acks = nullptr;
  std::span<JobState> jobs;
  ShardStats* stats = nullptr;
  PacketIo::Limits limits;
  /// How long after the time that it had asked for the shard is being polled: 0 in virtual time, unless hosts are
  /// modelled there.
  Nanos late{};
};

}  // namespace mltcp
