// DCQCN: rates from congestion notifications (Zhu et al., SIGCOMM'15, doi 10.1145/2785956.2787484, section 3, with the
// parameters of section 5). Made for RDMA: a flow starts at line rate, marks cut it by a share that follows how often
// they come, and a timer and a byte counter bring it back, in steps of three kinds.
//
// Where the parts are:
// - The notification point (section 3.1) sends a flow at most one notification per N. In this transport the receiver
//   echoes exact counts of marked packets in its acknowledgements, more than a notification says, so its rule is
//   applied where the counts arrive: marks are a notification if the last one is N or longer ago. The paper's also
//   tells at the end of N of marks within it. Those are of packets that were sent before the cut could be felt, for a
//   queue and a path of N or longer, and cut a second time for the same queue; where marks begin at a threshold, as
//   they do for other algorithms, all flows are then cut once in every N: two of them used 80% of such a link in place
//   of 88%, and with gains of 1 and 4 parted it as 0.41 to 0.59, not 0.2 to 0.8 (as in tests/sim/duel_test.cpp).
// - The byte counter counts bytes as they are acknowledged, a round trip after they were sent.
// - The alpha timer needs no wake-up: the periods K that passed are made up for when alpha is used next. The timer of
//   the increases runs only while there is something to increase. A flow at line rate asks for no timer at all.
// - Fast recovery are the first F steps after a cut, additive increase follows. The text of section 3.1 says so ("F = 5
//   successive iterations"), and QCN, where it comes from, does it. The paper's figure of the states compares with < F,
//   which is the same if the step is counted after it is taken; here it is counted before.
// - The flow of the paper begins, sends what it has, and ends. A connection sends one burst after the other, so a burst
//   after an idle time is a flow that begins: alpha is 1 until its first notification. Were it what is left from the
//   burst before, next to nothing after a job's compute time, a job that begins at line rate would not give way to one
//   in the middle of its burst for some 1/g notifications, the opposite of what MLTCP is for (docs/results.md).
//
// DCQCN expects a fabric that loses nothing. A loss nevertheless is the strongest sign of congestion there is, so an
// episode of losses is a notification, and persistent congestion, when nothing got through for several timeouts, cuts
// to the lowest rate and forgets the target: there is no reason to return to a rate that the path has not carried. The
// window is a safety bound of two round trips at the target rate, which is the rate before the latest cut: it bounds
// what a path that stopped (or a pause of its flow control, PFC) can have in flight, and is not reached otherwise.
//
// With a gain F the steps R_AI and R_HAI are multiplied by it (arXiv 2402.09589, section 3), as a multiple of the
// least F: Capabilities::timed_increase says why. Steps of the timer use the gain of the latest acknowledgement.
//
// R_AI and T take 27 ms to regain half of a link, at any rate: the paper's flows are longer. A share follows F only if
// that is short beside a job's burst, so where it is longer than a quarter of what the burst takes at line rate, the
// steps of a flow under MLTCP are larger by as much, but R_AI is never above a fiftieth of the line rate at the least
// F.
//
// Larger steps must not outrun the cuts. The rate of a flow that is told of marks every D changes little where D is F
// times T or more, as fast recovery takes the cut back before the next: the steps decide, and the rates of n flows add
// up to n times their balance. D grows with n, as a flow hears of its own packets only: with 24 flows on 1 Gbps, 290
// us, and nine packets of ten were lost. So flows under MLTCP
// - take no additive step until an acknowledgement has come without a mark since the latest cut: whoever hears of
//   nothing but marks has no room to take, and
// - below half the line rate take steps by the square root of their share: those of n flows together grow by the square
//   root of n, and not by n, and yet flows with different rates become more equal.
// Measured in docs/results.md.
#pragma once

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// Zhu et al., SIGCOMM'15 (doi 10.1145/2785956.2787484), sections 3 and 5. The paper's rates and bytes are for links of
/// 40 Gbps: those left at 0 are the same shares of the sender's line rate.
struct DcqcnParameters {
  double g = 1.0 / 256;
  Nanos notification_interval{50'000};    ///< N
  Nanos alpha_interval{55'000};           ///< K
  Nanos increase_interval{55'000};        ///< T
  Bytes increase_bytes = 0;               ///< B
  std::uint32_t fast_recovery_steps = 5;  ///< F
  Rate additive_increase;                 ///< R_AI
  Rate hyper_increase;                    ///< R_HAI
  Rate min_rate;
};

class Dcqcn {
 public:
  static constexpr std::string_view name = "dcqcn";
  static constexpr Capabilities capabilities{
      .needs_ecn = true, .needs_timer = true, .rate_based = true, .timed_increase = true};
  using Parameters = DcqcnParameters;
  static constexpr std::array parameters{
      parameter<&DcqcnParameters::g>("g", above(0).at_most(1), "weight of a notification in alpha (SIGCOMM'15)"),
      parameter<&DcqcnParameters::notification_interval>("notification_interval", above(0),
                                                         "a flow is told of marks at most so often"),
      parameter<&DcqcnParameters::alpha_interval>("alpha_interval", above(0),
                                                  "alpha falls when it was not told for so long"),
      // Steps that are more frequent than acknowledgements would be back at line rate before any mark is heard of.
      parameter<&DcqcnParameters::increase_interval>("increase_interval", at_least(Nanos(1'000)),
                                                     "between two rate increases of the timer"),
      parameter<&DcqcnParameters::increase_bytes>("increase_bytes", at_least(1'000).or_zero("2 ms of the job's rate"),
                                                  "between two rate increases of the byte counter"),
      parameter<&DcqcnParameters::fast_recovery_steps>("fast_recovery_steps", at_least(1).at_most(1'000),
                                                       "increases before the additive ones"),
      parameter<&DcqcnParameters::additive_increase>("additive_increase",
                                                     above(0).or_zero("a thousandth of the job's rate"),
                                                     "of the rate, per step; the paper's 40 Mbps are for 40 Gbps"),
      parameter<&DcqcnParameters::hyper_increase>("hyper_increase",
                                                  above(0).or_zero("five thousandths of the job's rate"),
                                                  "the same when timer and byte counter are both beyond fast recovery"),
      parameter<&DcqcnParameters::min_rate>("min_rate", above(0).or_zero("a thousandth of the job's rate"),
                                            "the lowest rate"),
  };
  static ParameterProblem problem_of(const DcqcnParameters& parameters);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  /// Nothing: fast recovery is back at the rate before the cut within a few steps.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos now, Output& out);
  /// A flow begins: see above. The rate is what the timer has brought it back to.
  void on_idle_restart(Nanos, Output&) { alpha_at_start_ = true; }

 private:
  void scale_steps(Bytes iteration_bytes);
  /// By how much R_AI and R_HAI are larger now, besides the gain; 0: not yet.
  [[nodiscard]] double scale_of_step() const;
  void notify(Nanos now, double decrease_gain);
  void restart_increase(Nanos now);
  void increase();
  void write(Output& out) const;

  // Rates in bits per second.
  double line_rate_ = 0;
  double current_rate_ = 0;  ///< R_C
  double target_rate_ = 0;   ///< R_T
  double alpha_ = 1;
  bool alpha_at_start_ = true;       ///< no notification since the flow began: alpha is 1
  bool unmarked_ = false;            ///< an acknowledgement without a mark since the latest notification
  Nanos notified_ = Nanos::never();  ///< time of the latest notification
  Nanos increase_due_ = Nanos::never();
  Bytes bytes_ = 0;  ///< of the byte counter's current step
  std::uint32_t timer_steps_ = 0;
  std::uint32_t byte_steps_ = 0;
  double gain_ = 1;
  double step_scale_ = 1;  ///< for bursts of iteration_bytes_
  Bytes iteration_bytes_ = 0;
  double window_floor_ = 0;
  double smoothed_rtt_ns_ = 0;

  double g_ = 0;
  double additive_ = 0;
  double hyper_ = 0;
  double min_rate_ = 0;
  Nanos notification_interval_;
  Nanos alpha_interval_;
  Nanos increase_interval_;
  Bytes increase_bytes_ = 0;
  std::uint32_t fast_recovery_steps_ = 0;
};

static_assert(Algorithm<Dcqcn>);

}  // namespace mltcp::cc
