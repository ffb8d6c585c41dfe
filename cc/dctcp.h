// DCTCP: the sender side of RFC 8257 (sections 3.3 to 3.5), after Alizadeh et al., SIGCOMM'10 (doi
// 10.1145/1851182.1851192). The receiver side, prompt and exact ECN feedback, is in the transport.
//
// Growth, timeouts and idle restarts are the same as in Reno. In response to marks, the window is reduced by the share
// alpha / 2, where alpha is the moving average of the fraction of marked bytes, sampled once per window of data.
//
// In RFC 8257 section 3.5, every loss causes the same response as in Reno. Here this response applies only to losses
// that are a sign of congestion although the path marks (loss_judge.h), and to all losses if ECN does not work.
//
// With a gain F, congestion avoidance adds F packets per window instead of one. Alpha and slow start are not scaled,
// because they measure the path.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/loss_judge.h"
#include "mltcp/cc/reno.h"

namespace mltcp::cc {

/// Parameters of DCTCP (RFC 8257).
struct DctcpParameters {
  double g = 1.0 / 16;
  double initial_alpha = 1.0;
};

class Dctcp {
 public:
  static constexpr std::string_view name = "dctcp";
  static constexpr Capabilities capabilities{.needs_ecn = true};
  using Parameters = DctcpParameters;
  static constexpr std::array parameters{
      parameter<&DctcpParameters::g>("g", above(0).at_most(1),
                                     "weight of a window in alpha, the average share of marked bytes (RFC 8257)"),
      parameter<&DctcpParameters::initial_alpha>("initial_alpha", at_least(0).at_most(1),
                                                 "alpha before the first window (section 3.3)"),
  };

  void start(const PathInfo& path, Output& out);
  /// Responds to marks here and not in on_congestion(), because alpha must first include the batch, and on_congestion()
  /// is called before on_ack().
  void on_ack(const AckSample& ack, Output& out);
  bool is_congestion(const LossReport& losses);
  void on_congestion(const CongestionEvent& event, Output& out);
  // Timeouts and idle times leave alpha unchanged, because they bring no ECN feedback. The current window of data ends
  // with the next acknowledgements.
  void on_timeout(Nanos now, Output& out) { reno_.on_timeout(now, out); }
  void on_spurious_congestion(Nanos now, Output& out) { reno_.on_spurious_congestion(now, out); }
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos now, Output& out) { reno_.on_idle_restart(now, out); }
  void on_packet_size(std::uint32_t max_packet_bytes, Output& out) { reno_.on_packet_size(max_packet_bytes, out); }

  /// DCTCP.Alpha, in [0, 1].
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void observe(const AckSample& ack);

  Reno reno_;
  double g_ = 0;
  double alpha_ = 0;
  double decrease_gain_ = 1;  // decrease gain for the pending response to marks
  std::uint64_t round_ = 0;   // round in which the current window of data began
  Bytes acked_bytes_ = 0;     // acknowledged bytes in the current window of data
  Bytes marked_bytes_ = 0;    // marked bytes among acked_bytes_
  bool answer_marks_ = false;
  LossJudge judge_;
};

static_assert(Algorithm<Dctcp>);

}  // namespace mltcp::cc
