// Reno with the transport's loss detection: RFC 5681 (slow start, congestion avoidance, restart after idle) with
// appropriate byte counting (RFC 3465), as in QUIC's NewReno (RFC 9002 section 7). ECN marks count as losses (RFC
// 3168).
//
// With a gain F, congestion avoidance adds F packets per window instead of one (arXiv 2402.09589, equation 1). Slow
// start is not scaled, because F scales only the increase step that determines the shares.
#pragma once

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

class Reno {
 public:
  static constexpr std::string_view name = "reno";
  static constexpr Capabilities capabilities{};

  void start(const PathInfo& path, Output& out);
  void on_ack(const AckSample& ack, Output& out);
  void on_congestion(const CongestionEvent& event, Output& out);
  void on_timeout(Nanos now, Output& out);
  void on_spurious_congestion(Nanos now, Output& out);
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos now, Output& out);
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out);

  /// Reduces the window by `share`, in [0, 1), and leaves slow start. For algorithms derived from Reno.
  void decrease(double share, Output& out);

 private:
  [[nodiscard]] double minimum_window() const { return 2 * mss_; }
  [[nodiscard]] double initial_window() const { return 10 * mss_; }  // 10 packets (RFC 6928)

  double mss_ = 0;
  double ssthresh_ = 0;
  double cwnd_before_loss_ = 0;
  double ssthresh_before_loss_ = 0;
};

static_assert(Algorithm<Reno>);

}  // namespace mltcp::cc
