// Implements Reno (see reno.h).
#include "mltcp/cc/reno.h"

#include <algorithm>
#include <limits>

#include "mltcp/cc/pacing.h"

namespace mltcp::cc {

void Reno::start(const PathInfo& path, Output& out) {
  mss_ = static_cast<double>(path.max_packet_bytes);
  ssthresh_ = std::numeric_limits<double>::infinity();
  out.cwnd_bytes = initial_window();
}

void Reno::on_ack(const AckSample& ack, Output& out) {
  // A window that was not fully used does not grow, because it has not probed the path (RFC 7661).
  if (!ack.in_recovery && ack.cwnd_limited) {
    auto acked = static_cast<double>(ack.acked_bytes);
    if (out.cwnd_bytes < ssthresh_) {
      const double step = std::min(acked, ssthresh_ - out.cwnd_bytes);
      out.cwnd_bytes += step;
      acked -= step;
    }
    if (acked > 0) out.cwnd_bytes += ack.gain * mss_ * acked / out.cwnd_bytes;
  }
  pace_window(ack.smoothed_rtt, out.cwnd_bytes < ssthresh_, out);
}

void Reno::on_congestion(const CongestionEvent& event, Output& out) {
  cwnd_before_loss_ = out.cwnd_bytes;
  ssthresh_before_loss_ = ssthresh_;
  decrease(reduction(0.5, event.decrease_gain), out);
}

void Reno::decrease(double share, Output& out) {
  out.cwnd_bytes = std::max(out.cwnd_bytes * (1 - share), minimum_window());
  ssthresh_ = out.cwnd_bytes;
}

void Reno::on_timeout(Nanos, Output& out) {
  // The losses that led to the timeout have already set ssthresh (RFC 9002 appendix B.8).
  out.cwnd_bytes = minimum_window();
}

void Reno::on_spurious_congestion(Nanos, Output& out) {
  out.cwnd_bytes = std::max(out.cwnd_bytes, cwnd_before_loss_);
  ssthresh_ = std::max(ssthresh_, ssthresh_before_loss_);
}

void Reno::on_idle_restart(Nanos, Output& out) {
  // Restarts as in RFC 5681 section 4.1, but does not lower ssthresh, so that slow start returns to the previous window
  // (RFC 2861 section 3).
  ssthresh_ = std::max(ssthresh_, 0.75 * out.cwnd_bytes);
  out.cwnd_bytes = std::min(out.cwnd_bytes, initial_window());
}

void Reno::on_packet_size(std::uint32_t max_packet_bytes, Output& out) {
  mss_ = static_cast<double>(max_packet_bytes);
  out.cwnd_bytes = std::max(out.cwnd_bytes, minimum_window());
}

}  // namespace mltcp::cc
