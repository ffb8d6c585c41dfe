// Implements CUBIC (see cubic.h). Section numbers without an RFC refer to RFC 9438.
#include "mltcp/cc/cubic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mltcp/cc/pacing.h"

namespace mltcp::cc {
namespace {

// Constants of HyStart++ (RFC 9406 section 4.3).
constexpr float kMinRttThreshold = 0.004F;
constexpr float kMaxRttThreshold = 0.016F;
constexpr float kMinRttDivisor = 8;
constexpr std::uint8_t kNeededRttSamples = 8;
constexpr double kConservativeGrowthDivisor = 4;
constexpr std::uint8_t kMaxConservativeRounds = 5;

}  // namespace

void Cubic::start(const PathInfo& path, Output& out) {
  const CubicParameters given = path.parameters->of<Cubic>();
  mss_ = static_cast<double>(path.max_packet_bytes);
  c_ = given.c * mss_;
  beta_ = given.beta;
  alpha_ = 3 * (1 - beta_) / (1 + beta_);  // gives the same average window as AIMD(1, 0.5) (section 4.3)
  fast_convergence_ = given.fast_convergence;
  hystart_ = given.hystart;
  out.cwnd_bytes = initial_window();
}

void Cubic::on_ack(const AckSample& ack, Output& out) {
  run_clock(ack);
  double& cwnd = out.cwnd_bytes;
  if (hystart_ && epoch_.ssthresh == kUnlimited) watch_round_trips(ack, cwnd);
  // A window that was not fully used does not grow, because it has not probed the path (section 5.8).
  if (!ack.in_recovery && ack.cwnd_limited) {
    auto acked = static_cast<double>(ack.acked_bytes);
    if (cwnd < epoch_.ssthresh) {  // slow start (section 4.10)
      const bool conservative = epoch_.ssthresh == kUnlimited && baseline_rtt_ != kUnknown;
      const double growth = conservative ? 1 / kConservativeGrowthDivisor : 1;
      const double step = std::min(growth * acked, epoch_.ssthresh - cwnd);
      cwnd += step;
      acked -= step / growth;
    }
    if (acked > 0) avoid(ack, acked, cwnd);
  }
  pace_window(ack.smoothed_rtt, cwnd < epoch_.ssthresh, out);
}

// Advances clock_ by the time since the last acknowledgement, scaled by the gain. While the window limits sending,
// acknowledgements are at most a round trip apart. So any time beyond a round trip was idle time and does not count.
void Cubic::run_clock(const AckSample& ack) {
  const Nanos passed = std::min(ack.now - last_ack_, std::max(ack.latest_rtt, ack.smoothed_rtt));
  last_ack_ = ack.now;
  if (ack.cwnd_limited) clock_ += ack.gain * passed.seconds();
}

// Implements HyStart++ (RFC 9406 section 4.2).
void Cubic::watch_round_trips(const AckSample& ack, double cwnd) {
  const bool conservative = baseline_rtt_ != kUnknown;
  if (const auto round = static_cast<std::uint32_t>(ack.round_count); round != round_) {
    round_ = round;
    last_round_rtt_ = this_round_rtt_;
    this_round_rtt_ = kUnknown;
    rtt_samples_ = 0;
    if (conservative && ++conservative_rounds_ == kMaxConservativeRounds) {
      epoch_.ssthresh = epoch_.cwnd_prior = cwnd;
      baseline_rtt_ = kUnknown;
      return;
    }
  }
  if (ack.latest_rtt.count <= 0) return;
  this_round_rtt_ = std::min(this_round_rtt_, static_cast<float>(ack.latest_rtt.seconds()));
  if (rtt_samples_ < kNeededRttSamples && ++rtt_samples_ < kNeededRttSamples) return;
  if (conservative) {
    if (this_round_rtt_ < baseline_rtt_) baseline_rtt_ = kUnknown;
  } else if (last_round_rtt_ != kUnknown &&
             this_round_rtt_ >=
                 last_round_rtt_ + std::clamp(last_round_rtt_ / kMinRttDivisor, kMinRttThreshold, kMaxRttThreshold)) {
    baseline_rtt_ = this_round_rtt_;
    conservative_rounds_ = 0;
  }
}

// Returns W_cubic(t), the window on the cubic curve (section 4.2, figure 1).
double Cubic::curve(double t) const {
  const double past_flat = t - epoch_.k;
  return c_ * past_flat * past_flat * past_flat + epoch_.w_max;
}

// Begins congestion avoidance (section 4.2, figure 2). The curve starts at its plateau after a timeout (section 4.8),
// after a slow start without congestion (section 4.10), and whenever the window exceeds the previous maximum.
void Cubic::begin_epoch(double cwnd) {
  if (epoch_.flat || epoch_.w_max < cwnd) epoch_.w_max = cwnd;
  epoch_.k = std::cbrt((epoch_.w_max - cwnd) / c_);
  epoch_.t_epoch = clock_;
  epoch_.w_est = cwnd;
  epoch_.begun = true;
  epoch_.flat = false;
}

void Cubic::avoid(const AckSample& ack, double acked, double& cwnd) {
  if (!epoch_.begun) begin_epoch(cwnd);
  const double t = clock_ - epoch_.t_epoch;
  const double windows = std::min(acked / cwnd, 1.0);
  // Once the Reno-friendly estimate (section 4.3, figure 4) reaches cwnd_prior, it grows as fast as Reno's window.
  const double alpha = epoch_.w_est < epoch_.cwnd_prior ? alpha_ : 1;
  epoch_.w_est += ack.gain * alpha * mss_ * acked / cwnd;
  if (curve(t) < epoch_.w_est) {
    cwnd = std::max(cwnd, epoch_.w_est);
    return;
  }
  // In the concave and convex regions (sections 4.4 and 4.5) the target is the curve's value one round trip from now.
  const double target = std::clamp(curve(t + ack.gain * ack.smoothed_rtt.seconds()), cwnd, 1.5 * cwnd);
  cwnd += (target - cwnd) * windows;
}

void Cubic::on_congestion(const CongestionEvent& event, Output& out) {
  before_ = epoch_;
  cwnd_before_ = out.cwnd_bytes;
  const double cwnd = out.cwnd_bytes;
  const double left = 1 - reduction(1 - beta_, event.decrease_gain);
  // Fast convergence (section 4.7).
  epoch_.w_max = fast_convergence_ && cwnd < epoch_.w_max ? cwnd * (1 + left) / 2 : cwnd;
  // Follows section 4.6, but uses the window in place of the bytes in flight, because the window grows only while it is
  // fully used.
  epoch_.cwnd_prior = cwnd;
  epoch_.ssthresh = std::max(cwnd * left, minimum_window());
  const double min = event.cause == CongestionEvent::Cause::ecn ? mss_ : minimum_window();
  out.cwnd_bytes = std::max(cwnd * left, min);
  epoch_.begun = epoch_.flat = false;
}

void Cubic::on_timeout(Nanos, Output& out) {
  // Section 4.8. The losses that led to the timeout have already set ssthresh (RFC 9002 appendix B.8).
  out.cwnd_bytes = minimum_window();
  epoch_.begun = false;
  epoch_.flat = true;
}

void Cubic::on_spurious_congestion(Nanos, Output& out) {
  // Section 4.9.2. clock_ has advanced in the meantime, so the restored curve continues at the right time.
  if (out.cwnd_bytes > cwnd_before_) return;
  out.cwnd_bytes = cwnd_before_;
  epoch_ = before_;
}

void Cubic::on_idle_restart(Nanos now, Output& out) {
  // Restarts as in RFC 5681 section 4.1, but does not lower ssthresh, so that slow start returns to the previous window
  // (RFC 2861 section 3). Congestion avoidance then starts anew toward the last maximum.
  epoch_.ssthresh = std::max(epoch_.ssthresh, 0.75 * out.cwnd_bytes);
  out.cwnd_bytes = std::min(out.cwnd_bytes, initial_window());
  epoch_.begun = false;
  last_ack_ = now;
}

void Cubic::on_packet_size(std::uint32_t max_packet_bytes, Output& out) {
  const double before = std::exchange(mss_, static_cast<double>(max_packet_bytes));
  c_ *= mss_ / before;
  out.cwnd_bytes = std::max(out.cwnd_bytes, minimum_window());
  // A new curve begins at the current window, in the new packet size.
  if (epoch_.begun) begin_epoch(out.cwnd_bytes);
}

}  // namespace mltcp::cc
