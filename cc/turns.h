// Policy `turns`: a job waits at the beginning of a burst while other traffic fills the link, and overtakes when it has
// waited in several iterations in a row. MLTCP's gain decides between jobs that send at the same time.
//
// MLTCP's gain moves shares over many congestion-window cycles. Waiting separates jobs within a few round trips:
//
//   test      A burst begins at a quarter of the line rate. If kTestPackets packets meet neither a queue nor a mark,
//             the burst continues at full rate.
//   hold      If a packet meets a queue, the job sends at a small share of the line rate until the queue is gone, then
//             tests again. A hold ends at the latest after the time that the longest burst of an iteration takes at the
//             line rate, or half of it if a hold has recently ended without success. The burst then goes on with gain
//             kOvertakingGain. After a hold of half a burst, it ends about when it would under fair sharing, and a
//             burst that it has met ends no later. If several holds in a row fail, the other traffic hardly pauses, and
//             the job waits less and less often.
//   overtake  Waiting alone would lock a job behind a job with a longer period, because the other job is sending
//             whenever the first one arrives. A job that has waited for about the same time in kStuckIterations
//             iterations does not wait in the next one, and its gain is kOvertakingGain. It then comes first for some
//             iterations. This costs other jobs at most the length of its burst. So the job goes on only if it saves
//             about as much itself.
//
// Short bursts end before a gain moves any share, and a test would cost them more than it saves. So their gain is 1,
// and they do not wait. This also holds for policy `mltcp`, which uses this class only for that.
//
// The class uses what a job measures itself: delays and marks of its own packets. docs/explanation/turns.md explains
// why jobs separate, and what this costs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::cc {

/// The queue that a batch of acknowledgements of one connection shows.
struct QueueSample {
  Nanos now;
  /// Time that the latest acknowledged packet spent in queues on its way to the peer; 0 if not known.
  Nanos delay;
  Nanos min_rtt;                   ///< minimum round-trip time of the connection
  std::uint32_t packets = 0;       ///< packets newly acknowledged
  std::uint32_t packet_bytes = 0;  ///< size of a full packet on the wire
  bool is_marked = false;          ///< a packet arrived with a congestion mark
};

/// Measures the bursts of a job, and decides when they wait and overtake. Shared by the job's flows on a shard. A burst
/// is data between two pauses of at least 1/32 of an iteration.
class Turns {
 public:
  static constexpr double kOvertakingGain = 4;

  /// `waits`: whether the job waits and overtakes; if not, only short bursts are detected. `max_rate`: no burst is
  /// faster, and until one has been measured, this is the rate of the path; 0 if not known. The job then waits only
  /// after that.
  explicit Turns(bool waits, Rate max_rate = {})
      : max_rate_(static_cast<float>(max_rate.bits_per_second)), line_rate_(max_rate_), waits_(waits) {}

  /// Sets the maximum rate; 0 if not known. If it changes before a rate has been measured, a burst that waits
  /// goes on, since its limit() may be wrong.
  void set_max_rate(Rate rate);
  /// Call before each packet with data. `iteration` is IterationTracker::iteration(). `iteration_bytes` is the size of
  /// an iteration, 0 if not known. `resumes`: whether no message of the job was incomplete before this packet's message
  /// was posted. `now` must not decrease. Returns whether limit() has changed.
  bool on_send(Nanos now, std::uint64_t iteration, Bytes iteration_bytes, bool resumes) {
    const Nanos pause = now - latest_;
    latest_ = now;
    if (static_cast<std::uint32_t>(iteration) == iteration_ && !ends_burst(pause) && now < hold_ends_) [[likely]]
      return false;
    return on_event(now, static_cast<std::uint32_t>(iteration), iteration_bytes, resumes, pause);
  }
  /// Call when `bytes` of the job's data were acknowledged for the first time.
  void on_delivered(Nanos now, Bytes bytes) {
    // A window ends between two acknowledgements, so that it contains the time for which its last bytes were held back.
    if (now > latest_ && window_bytes_ >= min_window()) end_window(latest_);
    latest_ = now;
    bytes_ += bytes;
    if (state_ == State::free) window_bytes_ += static_cast<float>(bytes);
  }
  /// Call after each batch of acknowledgements. Returns whether limit() has changed.
  bool on_queue(const QueueSample& sample) {
    min_rtt_ = static_cast<float>(sample.min_rtt.count) * 1e-9F;
    packet_bytes_ = static_cast<std::uint16_t>(std::min(sample.packet_bytes, 65'535U));
    if (state_ == State::free && period_ > 0) [[likely]]
      return false;
    return look(sample);
  }

  /// Maximum rate of the job's flows together; 0 if there is none.
  [[nodiscard]] Rate limit() const {
    if (state_ == State::free) return {};
    return Rate(static_cast<std::uint64_t>(line_rate_ / (state_ == State::testing ? kTestShare : kHoldShare)) + 1);
  }
  /// Returns true once after a hold has ended without success, if several holds before it did, too. What delays are
  /// compared with (QueueSample::delay) may then be wrong, for example because a clock is too fast, and is to be
  /// measured again.
  [[nodiscard]] bool take_remeasure() {
    const bool remeasure = remeasure_;
    remeasure_ = false;
    return remeasure;
  }
  /// Returns whether the current burst overtakes: its gain is at least kOvertakingGain.
  /// The gain ends with twice the bytes of the longest burst, so that it can't go on in a burst without an end.
  [[nodiscard]] bool overtakes() const {
    return (overtakes_ || has_failed_) && static_cast<float>(bytes_) <= 2 * burst_bytes_;
  }
  /// Returns whether the link carries traffic that hardly pauses: the last holds have ended without success.
  [[nodiscard]] bool meets_steady_traffic() const { return failures_ >= kSteadyFailures; }
  /// Returns whether the job's bursts are too short for a gain: their gain is 1.
  [[nodiscard]] bool is_short() const { return is_short_; }

 private:
  enum class State : std::uint8_t { free, testing, holding };

  // The rate is measured over windows of at least this many packets, this share of a burst, and this many round trips.
  // Shorter ones would measure how packets and acknowledgements gather on their way.
  static constexpr float kWindowPackets = 64;
  static constexpr float kWindowShare = 1 / 16.0F;
  static constexpr float kWindowRoundTrips = 4;
  static constexpr float kTestShare = 4;   ///< a test's rate is the line rate divided by this number
  static constexpr float kHoldShare = 48;  ///< the same for a hold
  static constexpr std::uint32_t kTestPackets = 6;
  static constexpr std::uint32_t kLowSamples = 2;
  static constexpr float kQueuePackets = 3.5F;            ///< a longer queue, in full packets, ends a test
  static constexpr float kMaxTestShare = 0.01F;           ///< a test may take this share of an iteration
  static constexpr float kShortRoundTrips = 20;           ///< shorter bursts are short
  static constexpr float kCautiousShare = 0.5F;           ///< maximum hold, in bursts, after a failure
  static constexpr std::uint8_t kCautiousIterations = 8;  ///< with that of the failure
  static constexpr std::uint8_t kSteadyFailures = 3;      ///< successive failures that show steady traffic
  static constexpr float kSteadyShare = 0.125F;           ///< maximum hold, in bursts, beside steady traffic
  static constexpr unsigned kFirstSkips =
      4;  ///< beside steady traffic, waits are this many iterations apart; doubled up to 32
  static constexpr std::uint32_t kStuckIterations = 3;
  static constexpr float kStuckShare = 0.04F;  ///< shorter waits, as a share of an iteration, do not count as stuck
  static constexpr float kStuckSpread = 1.2F;  ///< maximum ratio of the waits of a stuck job
  static constexpr float kMinPeriod = 2.3F;    ///< minimum period of a stuck job, in bursts
  static constexpr float kBack = 0.8F;         ///< a wait of this share of the earlier waits: the job is stuck again
  static constexpr float kWorthwhile = 0.8F;   ///< minimum time that overtaking must save, in bursts
  static constexpr std::uint8_t kTrial = 5;    ///< iterations in which this time must be saved
  static constexpr std::uint16_t kFirstRest = 48;  ///< iterations without overtaking after it has not been worthwhile

  [[nodiscard]] bool ends_burst(Nanos pause) const { return static_cast<float>(pause.count) >= period_ * (1e9F / 32); }
  bool on_event(Nanos now, std::uint32_t iteration, Bytes iteration_bytes, bool resumes, Nanos pause);
  void end_burst(Nanos latest);
  [[nodiscard]] float min_window() const {
    return std::max(kWindowPackets * static_cast<float>(packet_bytes_), kWindowShare * burst_bytes_);
  }
  void begin_window(Nanos now);
  void end_window(Nanos now);
  void raise_line_rate(float rate);
  void end_iteration(Nanos now);
  bool begin_burst(Nanos now, Bytes iteration_bytes);
  [[nodiscard]] bool may_wait() const;
  void decide_to_overtake();
  bool look(const QueueSample& sample);
  [[nodiscard]] float max_hold() const;
  void fail(Nanos now);
  void release(Nanos now);
  /// Time in seconds that `bytes` take at the line rate. The rate must be known.
  [[nodiscard]] float time_of(float bytes) const { return bytes * 8 / line_rate_; }
  [[nodiscard]] bool is_short(float bytes) const {
    // The rate of a burst of few round trips is below that of the path, because its window is still growing.
    constexpr float growing = 1.5F;
    float rate = period_ > 0 && is_measured_ ? line_rate_ * growing : max_rate_;
    if (max_rate_ > 0) rate = std::min(rate, max_rate_);
    return bytes * 8 < kShortRoundTrips * min_rtt_ * rate;
  }
  /// Bit of the current burst in long_; 0 for bursts that have none.
  [[nodiscard]] std::uint32_t bit() const { return burst_ < 32 ? 1U << burst_ : 0; }

  // Times without a type are in seconds, rates in bit/s, and sizes in bytes. Single precision is enough for them, and
  // keeps the job small.
  Nanos latest_;  ///< when data of the job was last sent or acknowledged
  Nanos began_;   ///< when the burst began, or was released after a test
  Nanos hold_ends_ = Nanos::never();
  Nanos window_began_;  ///< when the current measurement of the rate began
  Nanos iteration_began_ = Nanos::never();
  Bytes bytes_ = 0;  ///< bytes delivered since began_
  std::uint32_t iteration_ = 0;
  std::uint32_t long_ = 1;      ///< bit n: burst n of the last complete iteration was not short
  std::uint32_t long_now_ = 0;  ///< the same for the current iteration
  float period_ = 0;            ///< length of the last complete iteration; 0 if not known
  float min_rtt_ = 0;
  float max_rate_;
  float line_rate_;                              ///< highest rate of recent bursts; 0 if not known
  float window_bytes_ = 0;                       ///< bytes acknowledged since window_began_
  float longest_ = 0;                            ///< size of the longest complete burst of the current iteration
  float burst_bytes_ = 0;                        ///< size of the longest burst of the last complete iteration
  std::array<float, kStuckIterations> holds_{};  ///< time waited in the last complete iterations, newest first
  float hold_ = 0;                               ///< time waited in the current iteration
  float stuck_ = 0;  ///< time waited per iteration before the job began to overtake; 0 if it has not begun
  float saved_ = 0;  ///< time saved since the job has overtaken
  std::uint16_t packet_bytes_ = 0;
  std::uint16_t rest_ = 0;  ///< iterations until the job may overtake again
  std::uint16_t next_rest_ = kFirstRest;
  std::uint8_t failures_ = 0;      ///< holds that have ended without success since a test was last passed
  std::uint8_t caution_left_ = 0;  ///< iterations in which holds take at most kCautiousShare
  std::uint8_t skips_left_ = 0;    ///< iterations in which the job does not wait
  std::uint8_t trial_left_ = 0;    ///< iterations until the savings are judged
  std::uint8_t burst_ = 0;         ///< number of the current burst within the iteration; stays at the maximum
  State state_ = State::free;
  std::uint8_t tested_ = 0;  ///< packets that have passed the current test
  std::uint8_t low_ = 0;     ///< consecutive samples without a queue during a hold
  bool waits_ : 1;
  bool is_measured_ : 1 = false;  ///< line_rate_ was measured
  bool is_short_ : 1 = false;
  bool has_waited_ : 1 = false;   ///< the current burst has met a queue
  bool has_failed_ : 1 = false;   ///< the hold of the current burst has ended without success
  bool has_decided_ : 1 = false;  ///< whether this iteration overtakes is decided
  bool overtakes_ : 1 = false;
  bool remeasure_ : 1 = false;  ///< see take_remeasure()
};

static_assert(sizeof(Turns) <= 128);

}  // namespace mltcp::cc
