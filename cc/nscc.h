// NSCC: the network-signalled congestion control of Ultra Ethernet (Ultra Ethernet specification 1.0), which follows
// SMaRTT (Bonato et al., "SMaRTT-REPS", arXiv 2404.01630).
//
// Marks and the queueing delay (round-trip time minus base round-trip time) together control the window. Each
// acknowledged byte is one of four cases. The target delay is one base round-trip time.
//
//   no mark, delay below the target   proportional increase: a step that shrinks as the delay comes near the target
//   no mark, delay at the target      fair increase: the queue is draining, and all flows grow by the same step
//   mark, delay at the target         the window shrinks by a share that depends on the excess of the average delay
//   mark, delay below the target      nothing: only some paths have a queue, and the balancer avoids them
//
// Fast increase: after a whole window without a queue, the window grows by a share of the acknowledged bytes. Increases
// are collected and applied every eight packets or base round trips. Each base round trip also adds eta. The window
// begins at its maximum, 1.5 bandwidth-delay products (BDP), and loses the bytes of lost packets. QuickAdapt: if
// packets are lost or the delay is very long in a period of base round-trip time and target, and less than an eighth of
// the maximum window is delivered in this period, the delivered bytes become the window. The feedback of the packets
// that are then in flight is ignored.
//
// Steps scale with the network: a is the BDP divided by the BDP of the reference network (100 Gbps, 12 us), and b is
// the target delay divided by 12 us.
//
// Differences from the specification:
// - The specification expects marks before the delay reaches the target. Without marks, windows would shrink only by
//   losses. A draining queue lasts for about a round trip. So if the delay is at the target for a whole round trip
//   without a mark, the path does not mark such queues, and marks are not trusted until the next mark. They are not
//   trusted before the first mark either. While marks are not trusted, a delay at the target counts as a mark. This
//   also protects against peers and paths that hide marks.
// - The window shrinks at most once per smoothed round-trip time instead of once per base round-trip time. At the
//   target, a round trip takes two base round-trip times. A second decrease before the first one has an effect leaves
//   the link idle.
// - b has no limit. With b above 6, proportional increase would overshoot the target within one round trip, and all
//   flows would jump between their smallest and largest window. So proportional increase adds at most a quarter of a
//   BDP per round trip. If many flows share a link, steps in proportion to the BDP would be too large for their
//   windows. So proportional and fair increase add at most a quarter of the window, or one packet if that is more, and
//   fast increase at most doubles the window.
// - Fast increase is proportional to a. If a is far below 1, it is slower than proportional increase. So the faster one
//   applies. "Without a queue" is a delay below 1 us in the reference network, and below the same share of the base
//   round-trip time in slower networks, where packets that follow each other are more than 1 us apart.
// - In eta, a is at least 2. The delays of two flows can differ by one packet for a long time, because of the order in
//   which they send. If the BDP has few packets, the flow with the longer delay would get nearly nothing without eta.
// - The smallest window is a tenth of a packet instead of one packet. If several flows share a BDP of a few packets,
//   windows of one packet already fill the queue, and no gain could change their shares.
// - All packets are paced at window / RTT, and above one packet the window is a bound, rounded up to whole packets, as
//   in Swift. Otherwise rounding, and not F, would determine the shares of small windows.
// - The maximum window is at least a BDP plus two packets. A base round-trip time that was measured with short packets
//   is too short for full packets on a slow link.
//
// If no rate is known, there is no BDP. An estimate from delivery rates would give a flow that starts on an idle link
// larger steps, and thus a larger share, than flows that start later. So proportional increase then adds at most one
// packet per round trip, as in Swift, and the other steps keep their ratio to it. The window begins at 10 packets, and
// its maximum is 10000 packets. QuickAdapt compares the delivered bytes with an eighth of the window.
//
// If the base round-trip time is not given, each flow uses the smallest one that it measures. A flow that starts on a
// busy link then measures too much, and gets most of the link until it finds the queue empty.
//
// A gain F multiplies all increases and eta.
#pragma once

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// Parameters of NSCC (arXiv 2404.01630; Ultra Ethernet specification 1.0).
struct NsccParameters {
  Nanos base_rtt{0};
  Rate rate;
  float target = 1;
  float proportional_increase = 4;
  float fair_increase = 5;
  float fast_increase = 0.25F;
  float eta = 0.15F;
  float gamma = 0.8F;
  float max_decrease = 0.5F;
  float delay_weight = 0.0125F;
  float max_window = 1.5F;
  float min_window = 0.1F;
  bool quick_adapt = true;
};

class Nscc {
 public:
  static constexpr std::string_view name = "nscc";
  static constexpr Capabilities capabilities{.by_delay = true};
  using Parameters = NsccParameters;
  static constexpr std::array parameters{
      parameter<&NsccParameters::base_rtt>(
          "base_rtt",
          above(0).or_zero("the round-trip time of the empty network on datapath sim, or 20 us if that is more, and in "
                           "real time the smallest one that each flow measures"),
          "round-trip time without queues on the longest path, the same for all flows"),
      parameter<&NsccParameters::rate>(
          "rate",
          above(0).or_zero(
              "the hosts' rate on datapath sim, and in real time the connection's max_rate; without either, "
              "steps of one packet per round trip"),
          "rate of the hosts' links, the same for all flows"),
      parameter<&NsccParameters::target>("target", above(0).at_most(1000),
                                         "target of the queueing delay; 0.75 for switches that trim packets",
                                         "base round-trip times"),
      parameter<&NsccParameters::proportional_increase>("proportional_increase", above(0).at_most(1000),
                                                        "growth without a mark below the target (alpha)",
                                                        "packets times a times b per round trip"),
      parameter<&NsccParameters::fair_increase>("fair_increase", at_least(0).at_most(1000),
                                                "growth without a mark at the target and above (fi)",
                                                "packets times a per round trip"),
      parameter<&NsccParameters::fast_increase>("fast_increase", at_least(0).at_most(1000),
                                                "growth without a queue; the window at most doubles in a round trip",
                                                "bytes per acknowledged byte, times a"),
      parameter<&NsccParameters::eta>("eta", at_least(0).at_most(1000), "growth in every base round trip",
                                      "packets times a, with a of at least 2"),
      parameter<&NsccParameters::gamma>("gamma", above(0).at_most(1), "how hard it backs off above the target"),
      parameter<&NsccParameters::max_decrease>("max_decrease", above(0).below(1),
                                               "largest share of the window that one decrease removes"),
      parameter<&NsccParameters::delay_weight>("delay_weight", above(0).at_most(1),
                                               "weight of a packet in the average delay"),
      parameter<&NsccParameters::max_window>("max_window", at_least(1).at_most(1000), "largest and first window",
                                             "bandwidth-delay products"),
      parameter<&NsccParameters::min_window>("min_window", at_least(0.01).at_most(1000), "smallest window", "packets"),
      parameter<&NsccParameters::quick_adapt>(
          "quick_adapt", "after losses or very long delays, sets the window to the delivered bytes"),
  };
  /// Sets base_rtt and rate, which must be the same for all flows of a network. Otherwise their steps would differ.
  /// base_rtt is at least 20 us. Hosts send paced packets in bursts of up to 10 us, and a shorter target would mistake
  /// the flow's own bursts for a queue.
  static void fit(NsccParameters& parameters, const NetworkInfo& network);

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  /// Does nothing, because marks and losses are in the sample of the acknowledgements that show them.
  void on_congestion(const CongestionEvent&, Output&) {}
  void on_timeout(Nanos now, Output& out);
  /// Does nothing. Increases soon return the bytes of packets that were not lost.
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  /// Begins a new period of QuickAdapt, because little is delivered in an idle one. The window stays: packets are
  /// paced.
  void on_idle_restart(Nanos now, Output& out);
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  // Times are in nanoseconds, windows and steps in bytes.

  /// Updates the base round-trip time and the BDP, and returns the delay of the sample.
  double measure(const AckSample& ack);
  /// Returns how many of the acknowledged bytes count as marked.
  double marked_bytes(const AckSample& ack, double delay);
  /// QuickAdapt. Returns whether the sample must be ignored.
  bool adapt_quickly(const AckSample& ack, double delay);
  /// Counts `bytes` that were acknowledged without a mark.
  void increase(double bytes, double delay, double gain);
  void decrease(const AckSample& ack);
  /// Removes `bytes` from the window.
  void remove(double bytes, double decrease_gain);
  /// Adds the increases since the last adjustment, and eta, to the window, if an adjustment is due.
  void adjust(const AckSample& ack);
  [[nodiscard]] double target() const { return double{target_} * base_; }
  [[nodiscard]] double max_window() const;
  /// Returns the proportional increase in a round trip without delay.
  [[nodiscard]] double proportional_step() const;
  /// Returns SMSS times a.
  [[nodiscard]] double unit() const;
  void write(Output& out);

  double mss_ = 0;
  double cwnd_ = 0;
  double pending_ = 0;       ///< increases since the last adjustment
  double since_adjust_ = 0;  ///< bytes acknowledged since the last adjustment
  double fast_bytes_ = 0;    ///< bytes acknowledged in a row without a queue
  double achieved_ = 0;      ///< bytes acknowledged in this period of QuickAdapt
  double to_ignore_ = 0;     ///< bytes in flight whose feedback will be ignored
  double base_ = 0;          ///< base round-trip time, given or measured; 0 before the first measurement
  double average_delay_ = 0;
  double smoothed_rtt_ = 0;
  double bdp_ = 0;  ///< 0 if the rate or the base round-trip time is not known
  Nanos eta_added_ = Nanos::never();
  Nanos decreased_ = Nanos::never();
  Nanos period_end_ = Nanos::never();  ///< end of the period of QuickAdapt; never() if none has begun
  std::uint32_t silent_round_ = 0;     ///< round in which is_silent_ became true, lower bits
  bool given_base_ = false;
  bool trusts_marks_ = false;  ///< whether the path marks packets when the delay is at the target
  bool is_silent_ = false;     ///< whether the latest delays were at the target, without a mark
  bool is_fast_ = false;       ///< whether fast increase applies
  bool lost_ = false;          ///< whether packets were lost in this period of QuickAdapt
  bool quick_adapt_ = false;

  float rate_ = 0;  ///< bytes per nanosecond
  float target_ = 0;
  float proportional_ = 0;
  float fair_ = 0;
  float fast_share_ = 0;
  float eta_ = 0;
  float gamma_ = 0;
  float max_decrease_ = 0;
  float delay_weight_ = 0;
  float max_window_ = 0;
  float min_window_ = 0;
};

static_assert(Algorithm<Nscc>);

}  // namespace mltcp::cc
