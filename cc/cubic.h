// CUBIC: RFC 9438, with HyStart++ in the initial slow start (RFC 9406, without the burst limit, because sending is
// paced). The window is in bytes and grows by acknowledged bytes. ECN marks count as losses (RFC 9438 section 4.6).
//
// The cubic function's time t is measured on a clock that stops while sending is not limited by the window (sections
// 4.2 and 5.8), which excludes idle time.
//
// A gain F makes both growth mechanisms F times as fast. The clock runs F times as fast, so that the slope of the curve
// is F times as steep everywhere. The increment of the Reno-friendly estimate is multiplied by F. Scaling only the step
// toward the target would have no effect for F above 1, because the target is a function of time. Slow start is not
// scaled.
#pragma once

#include <limits>

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// Parameters of CUBIC (RFC 9438 section 4) and HyStart++ (RFC 9406).
struct CubicParameters {
  double c = 0.4;
  double beta = 0.7;
  bool fast_convergence = true;
  bool hystart = true;
};

class Cubic {
 public:
  static constexpr std::string_view name = "cubic";
  static constexpr Capabilities capabilities{};
  using Parameters = CubicParameters;
  static constexpr std::array parameters{
      parameter<&CubicParameters::c>("c", above(0).at_most(1e9), "how steep the cubic curve is (RFC 9438)",
                                     "packets / s^3"),
      parameter<&CubicParameters::beta>("beta", at_least(0.5).below(1),
                                        "share of the window left after a congestion event"),
      parameter<&CubicParameters::fast_convergence>(
          "fast_convergence", "leaves room for a flow that has just started (RFC 9438 section 4.7)"),
      parameter<&CubicParameters::hystart>("hystart", "leaves slow start when the round-trip time grows (RFC 9406)"),
  };

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  void on_spurious_congestion(Nanos now, Output& out);
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos now, Output& out);
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  static constexpr float kUnknown = std::numeric_limits<float>::infinity();

  /// State, besides the window, that a congestion event changes and an undo restores (section 4.1.2). In bytes and
  /// seconds.
  struct Epoch {
    double ssthresh = kUnlimited;
    double cwnd_prior = 0;  // window when ssthresh was set
    double w_max = 0;       // window at the plateau of the curve
    double k = 0;           // time from t_epoch to the plateau of the curve
    double t_epoch = 0;     // start of the current congestion avoidance on clock_
    double w_est = 0;       // estimated window of Reno
    bool begun = false;     // whether congestion avoidance has begun
    bool flat = false;      // whether the curve starts at its plateau, w_max, as after a timeout
  };

  [[nodiscard]] double minimum_window() const { return 2 * mss_; }
  [[nodiscard]] double initial_window() const { return 10 * mss_; }  // 10 packets (RFC 6928)
  [[nodiscard]] double curve(double t) const;
  void run_clock(const AckSample& ack);
  void watch_round_trips(const AckSample& ack, double cwnd);
  void begin_epoch(double cwnd);
  void avoid(const AckSample& ack, double acked, double& cwnd);

  double mss_ = 0;
  double c_ = 0;      // c in bytes / s^3
  double beta_ = 0;   // beta_cubic
  double alpha_ = 0;  // alpha_cubic
  double clock_ = 0;  // seconds; see the head of this file
  Nanos last_ack_;    // time up to which clock_ has advanced
  Epoch epoch_;
  Epoch before_;  // state before the last congestion event
  double cwnd_before_ = 0;
  // Minimum RTTs for HyStart++ in seconds: of the last round, of this round, and of the round in which conservative
  // slow start began. baseline_rtt_ is kUnknown outside conservative slow start.
  float last_round_rtt_ = kUnknown;
  float this_round_rtt_ = kUnknown;
  float baseline_rtt_ = kUnknown;
  std::uint32_t round_ = 0;
  std::uint8_t rtt_samples_ = 0;  // RTT samples in this round, counted up to kNeededRttSamples
  std::uint8_t conservative_rounds_ = 0;
  bool fast_convergence_ = true;
  bool hystart_ = true;
};

static_assert(Algorithm<Cubic>);

}  // namespace mltcp::cc
