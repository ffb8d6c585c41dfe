// State shared by the connections of a shard: jobs, packets queued for the datapath, and the completion queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/cc/turns.h"
#include "mltcp/transport/internal/ack_batch.h"
#include "mltcp/transport/internal/forward_delay.h"
#include "mltcp/transport/internal/pacer.h"
#include "mltcp/transport/internal/payload_holds.h"
#include "mltcp/transport/internal/shard_random.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp {
class JobClaims;
}

namespace mltcp::transport {

class Violators;

/// A job on a shard: its iteration progress, gain, phase gate, and shared pacer.
struct JobState {
  bool used = false;
  std::uint32_t number = 0;
  cc::Augmentation augmentation;
  Rate max_rate;             ///< JobConfig::max_rate
  Bytes max_rate_burst = 0;  ///< bytes that may leave at once at max_rate
  Nanos pacing_quantum;      ///< JobConfig::pacing_quantum, at most 1 s
  Nanos catch_up;            ///< JobConfig::catch_up, at most 1 s
  Pacer pacer;
  PhaseGate gate;
  /// Connections blocked by the job's pacer, in FIFO order.
  GrowableRing<std::uint32_t> waiting;
  std::shared_ptr<const cc::Parameters> parameters;  ///< JobConfig::parameters
  std::unique_ptr<cc::Turns> turns;                  ///< null if the gain does not depend on iterations
  std::unique_ptr<cc::IterationLearner> learner;     ///< null if iteration boundaries come only from the application
  /// Number of messages posted on the job's connections and not completed.
  std::uint64_t open_messages = 0;
  bool in_burst = false;  ///< data has been sent since the job last had no open messages

  void on_messages(std::int64_t more) {
    open_messages += static_cast<std::uint64_t>(more);
    if (open_messages == 0) in_burst = false;
  }
  void on_send(Nanos now) {
    const bool resumes = !in_burst && open_messages > 0;
    in_burst = in_burst || resumes;
    const cc::IterationTracker& tracker = augmentation.tracker;
    if (resumes && learner != nullptr && !tracker.exact() && learner->on_send(now))
      augmentation.tracker.follow(*learner);
    const Bytes iteration_bytes = tracker.known() ? tracker.bytes_per_iteration() : 0;
    const bool has_slot = gate.keeps_apart();
    if (turns != nullptr && turns->on_send(now, tracker.iteration(), iteration_bytes, resumes, has_slot)) pace();
  }
  void on_delivered(Nanos now, Bytes bytes) {
    augmentation.tracker.on_delivered(bytes);
    if (turns != nullptr) turns->on_delivered(now, bytes);
    if (learner != nullptr && !augmentation.tracker.exact()) learner->on_delivered(now, bytes);
  }
  /// Sets the pacer's rate: max_rate, or less while a burst waits. Packets of a burst that waits leave one by one, so
  /// that they do not queue behind each other.
  void pace() {
    const Rate limit = turns == nullptr ? Rate() : turns->limit();
    if (limit.is_zero())
      pacer.set(max_rate, max_rate_burst, pacing_quantum);
    else
      pacer.set(max_rate.is_zero() ? limit : std::min(limit, max_rate), 1, Nanos());
  }
  /// Returns whether the bursts of the current iteration have at least Turns::overtaking_gain().
  [[nodiscard]] bool overtakes() const {
    return turns != nullptr && turns->overtakes() && !augmentation.tracker.overrun();
  }
  /// Returns the gain of the job's flows.
  [[nodiscard]] double gain() const {
    if (turns != nullptr && turns->is_short()) return 1;
    return overtakes() ? std::max(augmentation.gain(), turns->overtaking_gain()) : augmentation.gain();
  }
  /// Returns the factor for cc::reduction().
  [[nodiscard]] double decrease_gain() const {
    return turns != nullptr && turns->is_short() ? 1.0 : augmentation.decrease_gain();
  }
};

/// Packets that have been built and not yet accepted by the datapath. They point to headers, which follow each other in
/// the shard's buffer, and to the user's payload. The buffer is reused only after the datapath has accepted all
/// packets.
struct TxQueue {
  std::vector<TxPacket> packets;        ///< at most one burst; a null destination marks a dropped packet
  std::vector<std::uint64_t> messages;  ///< for each packet, the number of the message that its payload belongs to
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t used = 0;  ///< bytes of the buffer that are in use

  [[nodiscard]] bool empty() const { return begin == end; }
  /// Drops the queued packets to `destination` with payload of `message`. The message has completed, so the memory of
  /// its payload belongs to the user again. Such packets are late retransmissions, so no data is lost.
  void drop_message(const Address* destination, std::uint64_t message) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination && packets[i].payload.data() != nullptr && messages[i] == message)
        packets[i].destination = nullptr;
  }
  [[nodiscard]] bool has_destination(const Address* destination) const {
    return std::ranges::any_of(std::span(packets).subspan(begin, end - begin),
                               [=](const TxPacket& packet) { return packet.destination == destination; });
  }
  void drop_destination(const Address* destination) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination) packets[i].destination = nullptr;
  }
};

/// The parts of a shard that its connections use.
struct ShardLinks {
  GrowableRing<Completion>* completions = nullptr;
  TxQueue* tx = nullptr;
  PayloadHolds* holds = nullptr;
  AckBatches* acks = nullptr;
  std::span<JobState> jobs;
  ShardStats* stats = nullptr;
  /// Scratch space for reading a frame; the reader sets only the fields of the frame's type.
  wire::Frame* frame = nullptr;
  PacketIo::Limits limits;
  /// Delay of this poll() after the time that the shard had requested. 0 in virtual time, unless the delays of hosts
  /// are modelled.
  Nanos late{};
  bool packets_wait = false;                 ///< there may be more packets than this poll() has received
  ShardRandom* random = nullptr;             ///< null if no packet numbers are skipped
  Bytes reassembly_bytes = ~Bytes{0};        ///< value of ShardConfig::reassembly_bytes
  JobClaims* claims = nullptr;               ///< null if claims are not counted
  Violators* violators = nullptr;            ///< null if violations are not remembered
  std::span<ForwardDelay> forward_delays{};  ///< of the connection in each slot; empty until a job takes turns
  std::uint32_t index_mask = 0;              ///< the bits of a connection id that hold its slot
};

}  // namespace mltcp::transport
