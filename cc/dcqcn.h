// DCQCN: rate control by congestion notifications (Zhu et al., SIGCOMM'15, doi 10.1145/2785956.2787484, section 3,
// parameters of section 5). DCQCN was made for RDMA. A flow starts at line rate. Marks reduce the rate by a share that
// depends on how frequent they are. A timer and a byte counter increase the rate again, in steps of three kinds.
//
// How this implementation differs from the paper:
// - Notification point (section 3.1). The paper's receiver sends at most one notification per flow and interval N. In
//   this transport the receiver echoes exact counts of marked packets, so the sender applies the rule: marks count as a
//   notification if the last notification is at least N ago. The paper's receiver also sends a notification at the end
//   of N if marks arrived within N. This implementation omits this second rule. If queue and path take N or longer, the
//   marked packets were sent before the cut could take effect, and would cause a second cut for the same queue. If the
//   link marks at a threshold, the second rule would cut all flows once in every N. In a test like
//   tests/sim/duel_test.cpp, two flows then used 80% of the link instead of 88%. With gains of 1 and 4, the flows'
//   shares of the link were 0.41 and 0.59 instead of 0.2 and 0.8.
// - The byte counter counts acknowledged bytes, one round trip after they were sent.
// - The alpha timer is evaluated lazily: elapsed periods K are applied when alpha is used next. The timer of rate
//   increases runs only while the rate is below line rate.
// - Fast recovery is the first F steps after a cut, then comes additive increase. This follows the text of section 3.1
//   ("F = 5 successive iterations") and QCN, on which DCQCN is based. The paper's state diagram compares with < F,
//   which is equivalent if a step is counted after it is taken. Here a step is counted before it is taken.
// - The paper's flow sends its data once and ends. A connection sends bursts with idle times between them, so each
//   burst after an idle time is treated as a new flow: alpha is 1 until its first notification. If alpha were kept, it
//   would have decayed to nearly nothing during a job's compute time. A job that starts at line rate would then not
//   yield to a job in the middle of its burst for about 1/g notifications, which is the opposite of MLTCP's aim
//   (docs/reference/tables/dcqcn.md).
//
// DCQCN expects a lossless fabric. Here a loss counts as a notification if it is a sign of congestion although the path
// marks (loss_judge.h), and always if ECN does not work. Persistent congestion (nothing delivered for several timeouts)
// reduces the rate to the minimum and discards the target rate. The window is only a safety bound of two round trips at
// the target rate, which is the rate before the latest cut. It limits the bytes in flight when a path stops or pauses
// (PFC), and is not reached in other cases.
//
// With MLTCP, the steps R_AI and R_HAI are multiplied by the gain (arXiv 2402.09589, section 3) and divided by the
// minimum gain, see Capabilities::timed_increase. Steps of the timer use the gain of the latest acknowledgement.
//
// The paper's R_AI and T are chosen for long flows. With these values a flow takes 27 ms to regain half of a link,
// whatever the link's rate. Shares follow the gains only if this time is short compared with a job's burst. If this
// time exceeds a quarter of the burst's duration at line rate, the steps of a flow under MLTCP are enlarged until the
// time is a quarter of the duration. R_AI at the minimum gain is enlarged to at most 1/50 of the line rate. Under
// policy `turns`, waiting separates bursts sooner than this, so steps are not enlarged and need no further limits.
//
// Larger steps must not outrun the cuts. Let D be the time between two notifications of a flow. If D is at least F * T,
// the duration of fast recovery, fast recovery undoes each cut before the next one. The steps then dominate, and the
// rates of n flows add up to n times their equilibrium. D grows with n, because a flow is only notified of its own
// packets. With 24 flows on 1 Gbps, D was 290 us, and nine of ten packets were lost. So flows with larger steps
// - take no additive step between a cut and the next unmarked acknowledgement, because there is no free capacity as
//   long as all acknowledgements are marked, and
// - scale their steps below half the line rate by the square root of (rate / half the line rate). The steps of n flows
//   together then grow with the square root of n instead of n, and rates still converge.
//
// Measurements are in docs/reference/tables/dcqcn.md.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/loss_judge.h"

namespace mltcp::cc {

/// Parameters of DCQCN (Zhu et al., SIGCOMM'15, doi 10.1145/2785956.2787484, sections 3 and 5). The paper's rates and
/// bytes are for 40 Gbps. Rates and bytes that are 0 here are scaled to the sender's line rate.
struct DcqcnParameters {
  double g = 1.0 / 256;
  Nanos notification_interval{50'000};    ///< N in the paper
  Nanos alpha_interval{55'000};           ///< K in the paper
  Nanos increase_interval{55'000};        ///< T in the paper
  Bytes increase_bytes = 0;               ///< B in the paper
  std::uint32_t fast_recovery_steps = 5;  ///< F in the paper
  Rate additive_increase;                 ///< R_AI in the paper
  Rate hyper_increase;                    ///< R_HAI in the paper
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
      // With an interval below 1 us the rate would return to line rate before the receiver can echo marks.
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
  /// Treats the next burst as a new flow (see the head of this file), but at the current rate.
  void on_idle_restart(Nanos, Output&) { alpha_at_start_ = true; }
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  void scale_steps(Bytes iteration_bytes);
  /// Returns the factor, besides the gain, by which R_AI and R_HAI are enlarged now; 0 if no additive step is allowed
  /// yet.
  [[nodiscard]] double scale_of_step() const;
  /// Decreases the rate as `times` notifications in a row would. Does nothing if less than the notification interval
  /// has passed since the latest notification.
  void notify(Nanos now, double decrease_gain, int times);
  [[nodiscard]] int notifications_of(const AckSample& ack) const;
  void restart_increase(Nanos now);
  void increase();
  void write(Output& out) const;

  // Rates in bits per second.
  double line_rate_ = 0;
  double current_rate_ = 0;  ///< R_C in the paper
  double target_rate_ = 0;   ///< R_T in the paper
  double alpha_ = 1;
  Nanos notified_ = Nanos::never();  ///< time of the latest notification
  Nanos increase_due_ = Nanos::never();
  Bytes bytes_ = 0;  ///< acknowledged bytes in the byte counter's current step
  LossJudge judge_;
  std::uint32_t timer_steps_ = 0;
  std::uint32_t byte_steps_ = 0;
  std::uint16_t fast_recovery_steps_ = 0;
  bool alpha_at_start_ = true;  ///< whether the flow has had no notification yet, so that alpha is 1
  bool unmarked_ = false;       ///< whether an unmarked acknowledgement has followed the latest notification
  double gain_ = 1;
  double step_scale_ = 1;  ///< factor by which steps are enlarged for bursts of iteration_bytes_
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
