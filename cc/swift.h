// Swift: a window that keeps the delay at a target (Kumar et al., SIGCOMM'20, doi 10.1145/3387514.3406591, section 3).
//
// Algorithm 1: below the target delay the window grows by `ai` packets per round trip. A window below one packet grows
// by `ai` per acknowledged packet. Above the target the window shrinks once per round trip by a share that depends on
// the excess. The delay is split (section 3.2) into endpoint delay and fabric delay. Each of the two delays controls
// its own window, and the smaller window applies. The target for the fabric delay (section 3.5) grows with the hops of
// the path, and grows as the window shrinks, so that many flows share without oscillation. The target for the endpoint
// delay is constant.
//
// Instead of NIC timestamps, the peer reports how long it held a packet before acknowledging it (endpoint delay). The
// rest of the round-trip time counts as fabric delay, including the wait for the next poll on both hosts. The endpoint
// delay includes deliberately delayed acknowledgements, so its target must exceed ConnectionConfig::max_ack_delay. A
// peer could hide a queue in the endpoint delay. If peers are not trusted (ConnectionConfig::check_peer), they are
// asked to acknowledge at once, and all delay counts as fabric delay.
//
// Differences from the paper:
// - The paper's Algorithm 1 updates the time of the last decrease whenever the window has not grown, so that every
//   acknowledgement above the target postpones the next decrease. Here only an actual decrease updates this time.
// - While the smaller window applies, the larger one would grow without limit. So it is limited to twice the smaller
//   window, and takes effect within a round trip when its delay grows. A loss reduces both windows.
// - A window that was not fully used does not grow (RFC 7661), as in the other algorithms here.
// - The paper reduces the window once per retransmission timeout, and to the minimum after several timeouts in a row.
//   Here probe timeouts do not imply loss (RFC 9002). Persistent congestion, several timeouts without any delivery,
//   sets the minimum window.
// - The paper paces only below one packet. Here all packets are paced at window / RTT, and above one packet the window
//   is a bound, rounded up to whole packets. So a window of 3.5 packets sends 3.5 packets per round trip. A low target
//   causes small windows. Without pacing, rounding to whole packets, and not F, would determine their shares.
// - In the paper the operator chooses the base target. Here the default is derived from the minimum delay seen, rounded
//   up to a power of two, because flows on one path need equal targets. A flow with a larger target gets nearly all
//   capacity.
// - The peer reports the hops from an IP header field that is not authenticated. A false number would give a flow a
//   target far above all others, and with it the whole link. So hops count only up to the longest path of the network
//   (max_hops; 5 for three tiers of switches).
// - The paper halves the window at every loss. Here only losses that are a sign of congestion halve it (loss_judge.h),
//   because the delay shows a queue before the queue overflows. If buffers are smaller than the target, all losses are
//   a sign of congestion.
//
// A gain F multiplies `ai`. Flow scaling gives small windows a larger target, which would equalise windows for any
// `ai`. So flow scaling uses the window divided by F: a flow with gain F behaves like F flows (as in reduction(),
// algorithm.h), each with its part of the window. F = 1 is the paper's algorithm.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/loss_judge.h"

namespace mltcp::cc {

/// Parameters of Swift (Kumar et al., SIGCOMM'20, doi 10.1145/3387514.3406591, section 3).
struct SwiftParameters {
  Nanos base_target{0};
  Nanos per_hop{1'000};
  std::uint32_t max_hops = 5;      ///< maximum number of hops that count
  Nanos flow_scaling{100'000};     ///< fs_range in the paper
  double flow_min_window = 0.1;    ///< fs_min_cwnd in the paper
  double flow_max_window = 100;    ///< fs_max_cwnd in the paper
  Nanos endpoint_target{150'000};  ///< must exceed ConnectionConfig::max_ack_delay
  double additive_increase = 1.0;  ///< ai in the paper
  double beta = 0.8;
  double max_decrease = 0.5;  ///< max_mdf in the paper
  double min_window = 0.01;
  double max_window = 10'000;
};

class Swift {
 public:
  static constexpr std::string_view name = "swift";
  static constexpr Capabilities capabilities{.by_delay = true};
  using Parameters = SwiftParameters;
  static constexpr std::array parameters{
      // A flow that derives its own base target uses the smallest power of two, in nanoseconds, that is at least twice
      // its minimum delay.
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
  /// Sets the base target, which must be the same for all flows of a network (section 3.2). If each flow derived it
  /// from its own measurements, sharing would not be fair, because a flow that starts late never measures an empty
  /// queue.
  static void fit(SwiftParameters& parameters, const NetworkInfo& network);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  bool is_congestion(const LossReport& losses);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  /// Does nothing. The paper has no undo, and the delay corrects the window within a round trip.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  /// Does nothing, because packets are paced, and the window reacts to the delay within a round trip.
  void on_idle_restart(Nanos, Output&) {}
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  struct Window {
    double packets = 0;
    Nanos decreased = Nanos::never();  ///< time of the last decrease
  };

  // Delays and targets are in nanoseconds.

  /// Applies Algorithm 1 to one window. `step` is the gain times the additive increase times the number of acknowledged
  /// packets; 0 if the window was not fully used.
  void react(Window& window, double delay, double target, double step, const AckSample& ack) const;
  /// Reduces the window by `share`, at most once per round trip.
  void decrease(Window& window, double share, double decrease_gain, Nanos now) const;
  [[nodiscard]] double fabric_target(const AckSample& ack) const;
  void write(Output& out);

  double mss_ = 0;
  Window fabric_;
  Window endpoint_;
  bool measured_ = false;  ///< whether the delays have been measured
  bool derive_base_ = false;
  bool above_target_ = false;  ///< whether the fabric delay had reached its target at the latest acknowledgement
  std::uint8_t max_hops_ = 0;
  LossJudge judge_;
  double latest_rtt_ = 0;
  double fabric_delay_ = 0;  ///< fabric delay of the latest sample
  double min_fabric_delay_ = 0;
  double endpoint_delay_ = 0;  ///< smoothed endpoint delay
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
