// DCTCP: RFC 8257, the sender's part (sections 3.3 to 3.5), after Alizadeh et al., SIGCOMM'10
// (doi 10.1145/1851182.1851192). The receiver's part, prompt and exact echoes of marks, is the transport's.
//
// Growth, losses, timeouts and idle restarts are Reno's. What differs is the answer to marks: the window falls by
// alpha / 2, alpha being the running average of the share of bytes that were marked, one sample per window of data.
//
// With a gain F, congestion avoidance adds F packets per window instead of one. Alpha measures the path, and slow start
// looks for its size: neither is scaled.
#pragma once

#include "mltcp/cc/algorithm.h"
#include "mltcp/cc/reno.h"

namespace mltcp::cc {

/// RFC 8257.
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
  /// The window answers marks here and not in on_congestion(), which comes first in a batch: alpha takes the batch in
  /// before it is used.
  void on_ack(const AckSample& ack, Output& out);
  void on_congestion(const CongestionEvent& event, Output& out);
  // Alpha stays through timeouts and idle times, which bring no echoes; the window of data that they interrupt ends
  // with the acknowledgements that come after.
  void on_timeout(Nanos now, Output& out) { reno_.on_timeout(now, out); }
  void on_spurious_congestion(Nanos now, Output& out) { reno_.on_spurious_congestion(now, out); }
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos now, Output& out) { reno_.on_idle_restart(now, out); }

  /// DCTCP.Alpha, in [0, 1].
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void observe(const AckSample& ack);

  Reno reno_;
  double g_ = 0;
  double alpha_ = 0;
  double decrease_gain_ = 1;  // of the marks that on_ack() is to answer
  std::uint64_t round_ = 0;   // in which the window of data began that is observed
  Bytes acked_bytes_ = 0;     // of it
  Bytes marked_bytes_ = 0;    // of those
  bool answer_marks_ = false;
};

static_assert(Algorithm<Dctcp>);

}  // namespace mltcp::cc
