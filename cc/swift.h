// Swift: a window that holds the delay at a target (Kumar et al., SIGCOMM'20, doi 10.1145/3387514.3406591, section 3).
//
// Algorithm 1: below the target the window grows by `ai` packets per round trip, and below one packet by `ai` per
// acknowledged packet; above it, it shrinks once per round trip by a share that follows how far the delay is above. The
// delay is taken apart (section 3.2) into what the peer spent and what the fabric did; each rules a window of its own
// and the smaller one counts. The fabric's target (section 3.5) grows with the hops of the path and as the window
// shrinks, so that many flows share without oscillating; the endpoint's is a constant.
//
// What this transport has instead of NIC timestamps: the peer tells how long it held what it acknowledges (endpoint),
// and everything else counts as fabric, the wait for the program's next poll at either end included. An acknowledgement
// that is held back on purpose (ConnectionConfig::max_ack_delay) is in the endpoint delay, so the endpoint's target has
// to be above that.
//
// Where the paper is silent, or can't be taken literally here:
// - Algorithm 1 stamps the time of the last decrease whenever the window has not grown, so that every acknowledgement
//   above the target would postpone the next decrease. Here only a decrease does.
// - The two windows would drift apart without limit while one rules. The larger one is kept within twice the smaller,
//   so that it is heard within a round trip when its delay grows. A loss reduces both.
// - A window that the sender did not fill does not grow (RFC 7661), as in the other algorithms here.
// - The paper reduces once for each retransmission timeout and goes to the smallest window after several in a row. This
//   transport's probe timeouts judge nothing lost (RFC 9002). What it reports is persistent congestion, several
//   timeouts in a row without any delivery: the smallest window.
// - The paper paces below one packet only. Here packets are always a round trip divided by the window apart, and above
//   one packet the window is a bound, rounded up to whole packets. So a window of 3.5 packets sends 3.5 per round trip:
//   with the small windows that a low target leaves, whole packets would decide shares that F should.
// - The base target is the operator's. Where none is given it is derived from the smallest delay seen, in powers of
//   two, for flows on one path have to have the same target: of two, the one with the larger gets nearly everything.
//
// With a gain F, `ai` is multiplied by it. The flow scaling, which gives small windows a larger target and so draws
// flows towards equal windows whatever their `ai` is, takes the window divided by F: a flow with gain F acts as F flows
// (as in reduction(), algorithm.h), each with its part of the window. With F = 1 this is the paper's.
#pragma once

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// Kumar et al., SIGCOMM'20 (doi 10.1145/3387514.3406591), section 3.
struct SwiftParameters {
  Nanos base_target{0};
  Nanos per_hop{1'000};
  Nanos flow_scaling{100'000};     ///< fs_range
  double flow_min_window = 0.1;    ///< fs_min_cwnd
  double flow_max_window = 100;    ///< fs_max_cwnd
  Nanos endpoint_target{150'000};  ///< above ConnectionConfig::max_ack_delay
  double additive_increase = 1.0;  ///< ai
  double beta = 0.8;
  double max_decrease = 0.5;  ///< max_mdf
  double min_window = 0.01;
  double max_window = 10'000;
};

class Swift {
 public:
  static constexpr std::string_view name = "swift";
  static constexpr Capabilities capabilities{};
  using Parameters = SwiftParameters;
  static constexpr std::array parameters{
      // Of a flow by itself, 0 is the power of two of nanoseconds from twice to four times its smallest delay.
      parameter<&SwiftParameters::base_target>(
          "base_target",
          above(0).or_zero("twice the round trip of the empty network on datapath sim, and what each flow derives "
                           "from its smallest delay in real time"),
          "of the fabric's delay on the shortest path, one for all flows (SIGCOMM'20)"),
      parameter<&SwiftParameters::per_hop>("per_hop", at_least(0), "added to it for each switch"),
      parameter<&SwiftParameters::flow_scaling>("flow_scaling", at_least(0), "most that small windows add to it"),
      parameter<&SwiftParameters::flow_min_window>("flow_min_window", above(0), "window with all of flow_scaling",
                                                   "packets"),
      parameter<&SwiftParameters::flow_max_window>("flow_max_window", above(0), "window with none of it", "packets"),
      parameter<&SwiftParameters::endpoint_target>(
          "endpoint_target", above(0),
          "of the delay in the peer, above the 100 us for which an acknowledgement may be held back"),
      parameter<&SwiftParameters::additive_increase>("additive_increase", above(0), "growth below the target",
                                                     "packets per round trip"),
      parameter<&SwiftParameters::beta>("beta", above(0).at_most(1), "how hard it backs off above the target"),
      parameter<&SwiftParameters::max_decrease>("max_decrease", above(0).below(1), "most that one decrease takes"),
      parameter<&SwiftParameters::min_window>("min_window", above(0), "smallest window", "packets"),
      parameter<&SwiftParameters::max_window>("max_window", at_least(1).at_most(1e9), "largest window", "packets"),
  };
  static ParameterProblem problem_of(const SwiftParameters& parameters);
  /// The base target is one for all flows of a network (section 3.2): flows that each derived their own from what they
  /// measured would not be fair to each other, as a late one has never seen the queue empty.
  static void fit(SwiftParameters& parameters, const NetworkInfo& network);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  /// Nothing: the paper has no undo, and the delay moves the window on within a round trip.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  /// Nothing: packets are paced, and the delay answers within a round trip.
  void on_idle_restart(Nanos, Output&) {}

 private:
  struct Window {
    double packets = 0;
    Nanos decreased = Nanos::never();  ///< when last
  };

  // Delays and targets are in nanoseconds.

  /// Algorithm 1 for one window. `step`: packets acknowledged, times their increase.
  void react(Window& window, double delay, double target, double step, const AckSample& ack) const;
  /// Takes `share` of the window away, once per round trip.
  void decrease(Window& window, double share, double decrease_gain, Nanos now) const;
  [[nodiscard]] double fabric_target(const AckSample& ack) const;
  void write(Output& out);

  double mss_ = 0;
  Window fabric_;
  Window endpoint_;
  bool measured_ = false;  ///< the next four are known
  double latest_rtt_ = 0;
  double fabric_delay_ = 0;  ///< latest
  double least_fabric_delay_ = 0;
  double endpoint_delay_ = 0;  ///< smoothed
  double smoothed_rtt_ = 0;

  bool derive_base_ = false;
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
