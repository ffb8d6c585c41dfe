// Swift: a window that keeps the delay at a target (Kumar et al., SIGCOMM'20, doi 10.1145/3387514.3406591, section 3).
//
// Algorithm 1: below the target delay the window grows by `ai` packets per round trip (or, below one packet, by `ai`
// per acknowledged packet). Above the target it shrinks once per round trip by a share that depends on the excess. The
// delay is split (section 3.2) into that of the peer and that of the fabric; each controls a window of its own, and the
// smaller one applies. The fabric's target (section 3.5) grows with the hops of the path and as the window shrinks, so
// that many flows share without oscillation; the endpoint's target is constant.
//
// Instead of NIC timestamps, the peer reports how long it held a packet before acknowledging it (endpoint delay); the
// rest counts as fabric delay, including the wait for the next poll at either end. The endpoint delay includes
// deliberately delayed acknowledgements, so the endpoint's target must exceed ConnectionConfig::max_ack_delay. A peer
// could hide a queue in that delay. If peers are not trusted (ConnectionConfig::check_peer), they are asked to
// acknowledge at once, and all delay counts as fabric delay.
//
// Differences where the paper says nothing or does not fit:
// - Algorithm 1 updates the time of the last decrease whenever the window has not grown, so that every acknowledgement
//   above the target would postpone the next decrease. Here only an actual decrease updates it.
// - The two windows would diverge without limit while one applies. The larger one is limited to twice the smaller, so
//   that it takes effect within a round trip when its delay grows. A loss reduces both.
// - A window that was not fully used does not grow (RFC 7661), as in the other algorithms here.
// - The paper reduces once per retransmission timeout, and to the minimum window after several in a row. Here probe
//   timeouts do not imply loss (RFC 9002). Persistent congestion, several timeouts without any delivery, sets the
//   minimum window.
// - The paper paces only below one packet. Here all packets are paced at window / RTT, and above one packet the
//   window is a bound, rounded up to whole packets. So a window of 3.5 packets sends 3.5 per round trip: with the small
//   windows of a low target, rounding would otherwise determine the shares, not F.
// - The base target is chosen by the operator. The default is derived from the minimum delay seen, rounded to powers of
//   two, because flows on one path need equal targets: the one with the larger target gets nearly all capacity.
// - The peer reports the hops from an IP header field that is not authenticated. A false number would give its flow a
//   target far above all others, and so the whole link. So hops count only up to the longest path of the network
//   (max_hops; 5 for three tiers of switches).
//
// - The paper halves the window at every loss. Here only losses that are a sign of congestion do so (loss_judge.h),
//   because the delay shows a queue before it overflows. If buffers are smaller than the target, all losses are.
//
// With a gain F, `ai` is multiplied by it. Flow scaling gives small windows a larger target, and so equalises windows
// for any `ai`. It uses the window divided by F: a flow with gain F behaves like F flows (as in reduction(),
// algorithm.h), each with its part of the window. F = 1 is the paper's algorithm.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/loss_judge.h"

namespace mltcp::cc {

/// Kumar et al., SIGCOMM'20 (doi 10.1145/3387514.3406591), section 3.
struct SwiftParameters {
  Nanos base_target{0};
  Nanos per_hop{1'000};
  std::uint32_t max_hops = 5;      ///< upper bound of the hops reported by the peer
  Nanos flow_scaling{100'000};     ///< fs_range
  double flow_min_window = 0.1;    ///< fs_min_cwnd
  double flow_max_window = 100;    ///< fs_max_cwnd
  Nanos endpoint_target{150'000};  ///< must exceed ConnectionConfig::max_ack_delay
  double additive_increase = 1.0;  ///< ai
  double beta = 0.8;
  double max_decrease = 0.5;  ///< max_mdf
  double min_window = 0.01;
  double max_window = 10'000;
};

class Swift {
 public:
  static constexpr std::string_view name = "swift";
  static constexpr Capabilities capabilities{.by_delay = true};
  using Parameters = SwiftParameters;
  static constexpr std::array parameters{
      // In a single flow, 0 selects the power of two of nanoseconds between twice and four times its minimum delay.
      parameter<&SwiftParameters::base_target>(
          "base_target",
          above(0).or_zero("twice the round-trip time of the empty network on datapath sim, and in real time a value "
                           "that each flow derives from its smallest delay"),
          "target of the fabric's delay on the shortest path, the same for all flows (SIGCOMM'20)"),
      parameter<&SwiftParameters::per_hop>("per_hop", at_least(0), "added to base_target for each switch"),
      parameter<&SwiftParameters::max_hops>("max_hops", at_least(0).at_most(255),
                                            "largest number of hops counted, of those that the peer reports"),
      parameter<&SwiftParameters::flow_scaling>("flow_scaling", at_least(0),
                                                "largest addition to the target for small windows"),
      parameter<&SwiftParameters::flow_min_window>("flow_min_window", above(0), "window that adds all of flow_scaling",
                                                   "packets"),
      parameter<&SwiftParameters::flow_max_window>("flow_max_window", above(0), "window that adds none of it",
                                                   "packets"),
      parameter<&SwiftParameters::endpoint_target>(
          "endpoint_target", above(0),
          "target of the delay in the peer, above the 100 us for which an acknowledgement may be held back"),
      parameter<&SwiftParameters::additive_increase>("additive_increase", above(0), "growth below the target",
                                                     "packets per round trip"),
      parameter<&SwiftParameters::beta>("beta", above(0).at_most(1), "how hard it backs off above the target"),
      parameter<&SwiftParameters::max_decrease>("max_decrease", above(0).below(1),
                                                "largest share of the window that one decrease removes"),
      parameter<&SwiftParameters::min_window>("min_window", above(0), "smallest window", "packets"),
      parameter<&SwiftParameters::max_window>("max_window", at_least(1).at_most(1e9), "largest window", "packets"),
  };
  static ParameterProblem problem_of(const SwiftParameters& parameters);
  /// All flows of a network need the same base target (section 3.2): if each derived it from its own measurements, they
  /// would not be fair, because a late flow has never seen an empty queue.
  static void fit(SwiftParameters& parameters, const NetworkInfo& network);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  bool is_congestion(const LossReport& losses);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  /// Does nothing: the paper has no undo, and the delay corrects the window within a round trip.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  /// Does nothing: packets are paced, and the delay reacts within a round trip.
  void on_idle_restart(Nanos, Output&) {}
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  struct Window {
    double packets = 0;
    Nanos decreased = Nanos::never();  ///< time of the last decrease
  };

  // Delays and targets are in nanoseconds.

  /// Algorithm 1 for one window. `step`: acknowledged packets times the additive increase.
  void react(Window& window, double delay, double target, double step, const AckSample& ack) const;
  /// Reduces the window by the share `share`, at most once per round trip.
  void decrease(Window& window, double share, double decrease_gain, Nanos now) const;
  [[nodiscard]] double fabric_target(const AckSample& ack) const;
  void write(Output& out);

  double mss_ = 0;
  Window fabric_;
  Window endpoint_;
  bool measured_ = false;  ///< the delays below are known
  bool derive_base_ = false;
  bool above_target_ = false;  ///< the fabric delay exceeded its target at the latest acknowledgement
  std::uint8_t max_hops_ = 0;
  LossJudge judge_;
  double latest_rtt_ = 0;
  double fabric_delay_ = 0;  ///< latest sample
  double min_fabric_delay_ = 0;
  double endpoint_delay_ = 0;  ///< smoothed
  double smoothed_rtt_ = 0;

  double base_target_ = 0;
  double per_hop_ = 0;
  double flow_scaling_ = 0;
  double flow_alpha_ = 0;
  double flow_beta_ = 0;
  double endpoint_target_ = 0;
  double additive_ = 0;
  double beta_ = 0;
  double max_decrease_ = 0;
  double min_window_ = 0;
  double max_window_ = 0;
};

static_assert(Algorithm<Swift>);

}  // namespace mltcp::cc
