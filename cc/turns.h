// Policy `turns`: a job waits at the beginning of a burst while other traffic fills the link, and overtakes when it has
// waited in several iterations in a row. MLTCP's gain decides between jobs that send at the same time.
//
// MLTCP's gain moves shares over many congestion-window cycles. Waiting separates jobs within a few round trips:
//
//   test      A burst begins at a quarter of the line rate. If `test_packets` packets meet neither a queue nor a mark,
//             the burst continues at full rate.
//   hold      If a packet meets a queue, the job sends at a small share of the line rate until the queue is gone, then
//             tests again. A hold ends at the latest after the time that the longest burst of an iteration takes at the
//             line rate, or half of it if a hold has ended without success before. The burst then goes on with gain
//             `overtaking_gain`. After a hold of half a burst, it ends about when it would under fair sharing, and a
//             burst that it has met ends no later. If several holds in a row fail, hosts delay packets, or the other
//             traffic hardly pauses. Delays as short as in these holds then no longer count as a queue, and each
//             further hold that fails doubles this limit.
//   overtake  Waiting alone would lock a job behind a job with a longer period, because the other job is sending
//             whenever the first one arrives. A job that has waited for about the same time in three iterations does
//             not wait in the next one, and its gain is `overtaking_gain`. It then comes first for some iterations.
//             This costs other jobs at most the length of its burst, at most once in `overtaking_pause` + 1 iterations.
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
#include "mltcp/cc/parameters.h"

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

/// Parameters of policy `turns`. A "burst" as a unit is the time that the longest burst of an iteration takes at the
/// line rate, the measured rate of the path.
struct TurnsParameters {
  float test_rate = 0.25F;
  std::uint32_t test_packets = 6;
  float test_queue = 3.5F;
  float max_test = 0.03F;
  float hold_rate = 0.02F;
  std::uint32_t low_samples = 2;
  float cautious_hold = 0.5F;
  std::uint32_t steady_failures = 3;
  float noise_margin = 2;
  float overtaking_gain = 4;
  float stuck_wait = 0.04F;
  float stuck_spread = 1.2F;
  float stuck_period = 2.3F;
  std::uint32_t overtaking_pause = 5;
  float short_round_trips = 20;
};

/// Measures the bursts of a job, and decides when they wait and overtake. Shared by the job's flows on a shard. A burst
/// is data between two pauses of at least 1/32 of an iteration.
class Turns {
 public:
  static constexpr std::string_view name = "turns";
  using Parameters = TurnsParameters;
  static constexpr std::array parameters{
      parameter<&TurnsParameters::test_rate>("test_rate", at_least(0.001).at_most(1),
                                             "rate at which a burst begins, as a share of the line rate"),
      parameter<&TurnsParameters::test_packets>("test_packets", at_least(1).at_most(100),
                                                "packets that must meet no queue before a burst sends at full rate"),
      parameter<&TurnsParameters::test_queue>("test_queue", above(0).at_most(1000), "queue from which a burst waits",
                                              "full packets"),
      parameter<&TurnsParameters::max_test>(
          "max_test", at_least(0).at_most(1),
          "largest share of an iteration that a test may take; otherwise none is made"),
      parameter<&TurnsParameters::hold_rate>("hold_rate", at_least(0.001).at_most(0.25),
                                             "rate of a burst that waits, as a share of the line rate"),
      parameter<&TurnsParameters::low_samples>("low_samples", at_least(1).at_most(100),
                                               "batches of acknowledgements without a queue after which a wait ends"),
      parameter<&TurnsParameters::cautious_hold>(
          "cautious_hold", above(0).at_most(1),
          "longest wait once the job has waited in vain, as a share of the time that the longest burst of an iteration "
          "takes"),
      parameter<&TurnsParameters::steady_failures>(
          "steady_failures", at_least(1).at_most(100),
          "waits in vain in a row that show traffic without pauses, or delays that are no queue"),
      parameter<&TurnsParameters::noise_margin>(
          "noise_margin", at_least(0).at_most(1000),
          "after these, delays up to this multiple of the lowest ones in them count as no queue"),
      parameter<&TurnsParameters::overtaking_gain>(
          "overtaking_gain", at_least(0).at_most(1000),
          "smallest gain of a burst that has waited in vain or overtakes; 0: always MLTCP's gain"),
      parameter<&TurnsParameters::stuck_wait>(
          "stuck_wait", at_least(0).at_most(1000),
          "waits of more than this share of an iteration, in three iterations, let the job overtake"),
      parameter<&TurnsParameters::stuck_spread>("stuck_spread", at_least(1).at_most(1000),
                                                "largest ratio of the three waits, otherwise the job does not "
                                                "overtake, and of these to a later wait, after which it "
                                                "overtakes again"),
      parameter<&TurnsParameters::stuck_period>(
          "stuck_period", at_least(0).at_most(1000),
          "shortest period of a job that overtakes, as a multiple of its longest burst"),
      parameter<&TurnsParameters::overtaking_pause>(
          "overtaking_pause", at_least(0).at_most(100),
          "iterations after one that overtakes in which the job does not overtake", "iterations"),
      parameter<&TurnsParameters::short_round_trips>("short_round_trips", at_least(0).at_most(1'000'000),
                                                     "bursts of fewer round trips do not wait, and their gain is 1"),
  };

  /// A burst that waits must be no faster than one that tests.
  static constexpr ParameterProblem problem_of(const TurnsParameters& given) {
    if (given.hold_rate > given.test_rate) return {"hold_rate", "of at most test_rate", "test_rate"};
    return {};
  }

  /// `waits`: whether the job waits and overtakes; if not, only short bursts are detected. `max_rate`: no burst is
  /// faster, and until one has been measured, this is the rate of the path; 0 if not known. The job then waits only
  /// after that. `given` must outlive this object.
  explicit Turns(bool waits, Rate max_rate, const TurnsParameters& given)
      : given_(&given), max_rate_(static_cast<float>(max_rate.bits_per_second)), line_rate_(max_rate_), waits_(waits) {}

  /// Sets the maximum rate; 0 if not known. If it changes before the rate of the path has been measured, a burst that
  /// waits goes on, since its limit() may be wrong.
  void set_max_rate(Rate rate);
  /// Call before each packet with data. `iteration` is IterationTracker::iteration(). `iteration_bytes` is the size of
  /// an iteration, 0 if not known. `resumes`: whether no message of the job was incomplete before this packet's message
  /// was posted. `has_slot`: whether a plan keeps the bursts of other jobs away, so that this one doesn't wait. `now`
  /// must not decrease. Returns whether limit() has changed.
  bool on_send(Nanos now, std::uint64_t iteration, Bytes iteration_bytes, bool resumes, bool has_slot = false) {
    const Nanos pause = now - latest_;
    latest_ = now;
    if (static_cast<std::uint32_t>(iteration) == iteration_ && !ends_burst(pause) && now < hold_ends_) [[likely]]
      return false;
    return on_event(now, static_cast<std::uint32_t>(iteration), iteration_bytes, resumes, has_slot, pause);
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
    const float share = state_ == State::testing ? given_->test_rate : given_->hold_rate;
    return Rate(static_cast<std::uint64_t>(rate() * share) + 1);
  }
  /// A number that changes when what delays are compared with (QueueSample::delay) may be wrong, for example because a
  /// clock is too fast, so that it is to be measured again: several holds in a row have ended without success.
  [[nodiscard]] std::uint8_t measurement() const { return measurement_; }
  /// Returns whether the current burst overtakes: its gain is at least TurnsParameters::overtaking_gain.
  /// The gain ends with twice the bytes of the longest burst, so that it can't go on in a burst without an end.
  [[nodiscard]] bool overtakes() const {
    return (overtakes_ || has_failed_) && static_cast<float>(bytes_) <= 2 * burst_bytes_;
  }
  /// Minimum gain while overtakes().
  [[nodiscard]] double overtaking_gain() const { return static_cast<double>(given_->overtaking_gain); }
  /// Returns whether the link carries traffic that hardly pauses: the last holds have ended without success.
  [[nodiscard]] bool meets_steady_traffic() const { return failures_ >= given_->steady_failures; }
  /// Returns whether the job's bursts are too short for a gain: their gain is 1.
  [[nodiscard]] bool is_short() const { return is_short_; }

 private:
  enum class State : std::uint8_t { free, testing, holding };

  // The rate is measured over windows of at least this share of a burst, this many packets, and round trips. Shorter
  // ones would measure how packets and acknowledgements gather on their way.
  static constexpr float kWindowShare = 1 / 16.0F;
  static constexpr float kWindowPackets = 64;
  static constexpr float kWindowRoundTrips = 4;
  static constexpr std::uint32_t kStuckIterations = 3;
  static constexpr std::uint8_t kMaxBurst = 15;
  static constexpr float kUnknown = 1e9F;  ///< lowest_ before any group of samples

  [[nodiscard]] bool ends_burst(Nanos pause) const { return static_cast<float>(pause.count) >= period_ * (1e9F / 32); }
  bool on_event(Nanos now, std::uint32_t iteration, Bytes iteration_bytes, bool resumes, bool has_slot, Nanos pause);
  void measure_burst(Nanos latest);
  void end_burst(Nanos latest);
  [[nodiscard]] float min_window() const {
    return std::max(kWindowPackets * static_cast<float>(packet_bytes_), kWindowShare * burst_bytes_);
  }
  void begin_part(Nanos now);
  void end_window(Nanos now);
  void raise_line_rate(float rate);
  void end_iteration(Nanos now);
  bool begin_burst(Nanos now, Bytes iteration_bytes, bool has_slot);
  [[nodiscard]] bool may_wait() const;
  bool may_overtake();
  bool look(const QueueSample& sample);
  void begin_test();
  void lower_noise();
  void fail(Nanos now);
  void release(Nanos now);
  /// Rate of a burst that does not wait: that of the path, but at most the current maximum rate.
  [[nodiscard]] float rate() const { return max_rate_ > 0 ? std::min(line_rate_, max_rate_) : line_rate_; }
  /// Time in seconds that `bytes` take on the path, whose rate must be known.
  [[nodiscard]] float time_of(float bytes) const { return bytes * 8 / line_rate_; }
  [[nodiscard]] bool is_short(float bytes) const {
    // The rate of a burst of few round trips is below that of the path, because its window is still growing.
    constexpr float growing = 1.5F;
    float rate = period_ > 0 && is_measured_ ? line_rate_ * growing : max_rate_;
    if (max_rate_ > 0) rate = std::min(rate, max_rate_);
    return bytes * 8 < given_->short_round_trips * min_rtt_ * rate;
  }
  /// Bit of the current burst in long_.
  [[nodiscard]] std::uint16_t bit() const { return static_cast<std::uint16_t>(1U << burst_); }
  [[nodiscard]] float test_queue() const { return given_->test_queue * time_of(packet_bytes_); }

  const TurnsParameters* given_;
  // Times without a type are in seconds, rates in bit/s, and sizes in bytes. Single precision is enough for them, and
  // keeps the job small.
  Nanos latest_;  ///< when data of the job was last sent or acknowledged
  Nanos began_;   ///< when the burst began, or was released after a test
  Nanos hold_ends_ = Nanos::never();
  Nanos iteration_began_ = Nanos::never();
  Bytes bytes_ = 0;  ///< bytes delivered since began_
  std::uint32_t iteration_ = 0;
  std::uint16_t long_ = 1;  ///< bit n: burst n of the last complete iteration was not short; the last bit: a later one
  std::uint16_t long_now_ = 0;  ///< the same for the current iteration
  float period_ = 0;            ///< length of the last complete iteration; 0 if not known
  float min_rtt_ = 0;
  float max_rate_;
  float line_rate_;                              ///< highest rate of recent bursts; 0 if not known
  float window_began_ = 0;                       ///< from began_ to the current measurement of the rate
  float window_bytes_ = 0;                       ///< bytes acknowledged in it
  float longest_ = 0;                            ///< size of the longest complete burst of the current iteration
  float burst_bytes_ = 0;                        ///< size of the longest burst of the last complete iteration
  std::array<float, kStuckIterations> holds_{};  ///< time waited in the last complete iterations, newest first
  float hold_ = 0;                               ///< time waited in the current iteration
  float stuck_ = 0;          ///< time waited per iteration before the job began to overtake; 0 if it has not begun
  float noise_ = 0;          ///< delays up to this time are no queue
  float highest_ = 0;        ///< longest delay of the current test, or of the current test_packets samples of a hold
  float lowest_ = kUnknown;  ///< lowest such value of a hold since a test was last passed
  std::uint16_t packet_bytes_ = 0;
  std::uint8_t failures_ = 0;    ///< holds that have ended without success since a test was last passed
  std::uint8_t pause_left_ = 0;  ///< iterations in which the job does not overtake
  std::uint8_t passed_ = 0;   ///< packets of the current test, or consecutive samples of a hold, that have met no queue
  std::uint8_t samples_ = 0;  ///< samples of a hold in highest_
  State state_ : 2 = State::free;
  std::uint8_t measurement_ : 2 = 0;
  std::uint8_t burst_ : 4 = 0;  ///< number of the current burst within the iteration, at most kMaxBurst
  bool waits_ : 1;
  bool is_measured_ : 1 = false;  ///< line_rate_ was measured
  bool is_short_ : 1 = false;
  bool has_waited_ : 1 = false;   ///< the current burst has met a queue
  bool has_failed_ : 1 = false;   ///< the hold of the current burst has ended without success
  bool is_cautious_ : 1 = false;  ///< a hold has ended without success: holds take at most cautious_hold
  bool overtakes_ : 1 = false;    ///< the bursts of this iteration do not wait
  bool is_counted_ : 1 = false;   ///< measure_burst() has measured the current burst
};

static_assert(sizeof(Turns) <= 128);

}  // namespace mltcp::cc
