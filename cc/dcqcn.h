// DCQCN: rate control by congestion notifications (Zhu et al., SIGCOMM'15, doi 10.1145/2785956.2787484, section 3,
// parameters of section 5). Made for RDMA: a flow starts at line rate; marks reduce the rate by a share that depends on
// how frequent they are; a timer and a byte counter increase it again, in steps of three kinds.
//
// How this implementation differs from the paper:
// - Notification point (section 3.1): it sends at most one notification per flow and interval N. In this transport
//   the receiver echoes exact counts of marked packets, so the rule is applied at the sender: marks are a notification
//   if the last one is at least N ago. The paper also notifies at the end of N of marks within it. Those packets were
//   sent before the cut could take effect, if queue and path take N or longer, and would cause a second cut for the
//   same queue. With marking at a threshold all flows would then be cut once in every N. Two of them used 80% of such a
//   link instead of 88%. With gains of 1 and 4 they shared it as 0.41 to 0.59 instead of 0.2 to 0.8 (as in
//   tests/sim/duel_test.cpp).
// - The byte counter counts acknowledged bytes, one round trip after they were sent.
// - The alpha timer is evaluated lazily: elapsed periods K are applied when alpha is used next. The timer of rate
//   increases runs only while there is something to increase, so a flow at line rate needs no timer.
// - Fast recovery is the first F steps after a cut, then comes additive increase. This follows the text of section
//   3.1 ("F = 5 successive iterations") and QCN, on which it is based. The paper's state diagram compares with < F,
//   which is equivalent if a step is counted after it is taken; here it is counted before.
// - The paper's flow sends its data once and ends. A connection sends bursts with idle times between them, so each
//   burst after an idle time is treated as a new flow: alpha is 1 until its first notification. If alpha were kept, it
//   would have decayed to nearly nothing during a job's compute time. A job that starts at line rate would then not
//   yield to one in the middle of its burst for about 1/g notifications, the opposite of MLTCP's aim
//   (docs/reference/tables/dcqcn.md).
//
// DCQCN expects a lossless fabric. Here a loss counts as a notification if it is a sign of congestion although the path
// marks (loss_judge.h), and always if ECN does not work. Persistent congestion (nothing delivered for several timeouts)
// reduces the rate to the minimum and discards the target rate. The window is only a safety bound of two round trips at
// the target rate, the rate before the latest cut: it limits the bytes in flight when a path stops or pauses (PFC), and
// is otherwise not reached.
//
// With a gain F, the steps R_AI and R_HAI are multiplied by F (arXiv 2402.09589, section 3) divided by F's minimum, see
// Capabilities::timed_increase. Steps of the timer use the gain of the latest acknowledgement.
//
// With the paper's R_AI and T, chosen for long flows, it takes 27 ms to regain half of a link at any rate. Shares
// follow F only if that time is short compared with a job's burst. So if it exceeds a quarter of the burst's duration
// at line rate, the steps of a flow under MLTCP are enlarged accordingly, with R_AI at most 1/50 of the line rate at
// the minimum of F.
//
// Larger steps must not outrun the cuts. If a flow is notified every D with D >= F * T, fast recovery undoes each cut
// before the next one, so the steps dominate and the rates of n flows add up to n times their equilibrium. D grows with
// n, because a flow is only notified of its own packets: with 24 flows on 1 Gbps D was 290 us, and nine of ten packets
// were lost. So flows under MLTCP
// - take no additive step before an unmarked acknowledgement after the latest cut, because otherwise there is no free
//   capacity, and
// - below half the line rate take steps scaled by the square root of their share of it: the steps of n flows together
//   grow with the square root of n instead of n, and rates still converge.
//
// Measured in docs/reference/tables/dcqcn.md.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/loss_judge.h"

namespace mltcp::cc {

/// Zhu et al., SIGCOMM'15 (doi 10.1145/2785956.2787484), sections 3 and 5. The paper's rates and bytes are for 40 Gbps:
/// members that are 0 are scaled to the sender's line rate.
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
                                                         "shortest time between two notifications of marks to a flow"),
      parameter<&DcqcnParameters::alpha_interval>("alpha_interval", above(0),
                                                  "alpha falls after this time without a notification"),
      // With a shorter interval the rate would be back at line rate before marks can be echoed.
      parameter<&DcqcnParameters::increase_interval>("increase_interval", at_least(Nanos(1'000)),
                                                     "time between two rate increases of the timer"),
      parameter<&DcqcnParameters::increase_bytes>("increase_bytes", at_least(1'000).or_zero("2 ms of the job's rate"),
                                                  "bytes between two rate increases of the byte counter"),
      parameter<&DcqcnParameters::fast_recovery_steps>("fast_recovery_steps", at_least(1).at_most(1'000),
                                                       "rate increases before the additive ones"),
      parameter<&DcqcnParameters::additive_increase>("additive_increase",
                                                     above(0).or_zero("a thousandth of the job's rate"),
                                                     "rate increase per step; the paper's 40 Mbps are for 40 Gbps"),
      parameter<&DcqcnParameters::hyper_increase>(
          "hyper_increase", above(0).or_zero("five thousandths of the job's rate"),
          "rate increase per step when timer and byte counter are both beyond fast recovery"),
      parameter<&DcqcnParameters::min_rate>("min_rate", above(0).or_zero("a thousandth of the job's rate"),
                                            "the lowest rate"),
  };
  static ParameterProblem problem_of(const DcqcnParameters& parameters);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  bool is_congestion(const LossReport& losses);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  /// Does nothing: fast recovery returns to the rate before the cut within a few steps.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos now, Output& out);
  /// A new flow begins, see above. Its rate is the current one.
  void on_idle_restart(Nanos, Output&) { alpha_at_start_ = true; }
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  void scale_steps(Bytes iteration_bytes);
  /// Factor by which R_AI and R_HAI are enlarged now, besides the gain; 0: no additive step allowed yet.
  [[nodiscard]] double scale_of_step() const;
  /// Decreases the rate as `times` notifications in a row would, unless the latest one was within the notification
  /// interval.
  void notify(Nanos now, double decrease_gain, int times);
  [[nodiscard]] int notifications_of(const AckSample& ack) const;
  void restart_increase(Nanos now);
  void increase();
  void write(Output& out) const;

  // Rates in bits per second.
  double line_rate_ = 0;
  double current_rate_ = 0;  ///< R_C
  double target_rate_ = 0;   ///< R_T
  double alpha_ = 1;
  Nanos notified_ = Nanos::never();  ///< time of the latest notification
  Nanos increase_due_ = Nanos::never();
  Bytes bytes_ = 0;  ///< acknowledged bytes in the byte counter's current step
  LossJudge judge_;
  std::uint32_t timer_steps_ = 0;
  std::uint32_t byte_steps_ = 0;
  std::uint16_t fast_recovery_steps_ = 0;
  bool alpha_at_start_ = true;  ///< no notification since the flow began, so alpha is 1
  bool unmarked_ = false;       ///< there was an unmarked acknowledgement since the latest notification
  double gain_ = 1;
  double step_scale_ = 1;  ///< enlargement of the steps for bursts of iteration_bytes_
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
};

static_assert(Algorithm<Dcqcn>);

}  // namespace mltcp::cc
