// Implements DCQCN (see dcqcn.h).
#include "mltcp/cc/dcqcn.h"

#include <algorithm>
#include <cmath>

namespace mltcp::cc {
namespace {

// Default parameters as shares of the line rate. At 40 Gbps they equal the paper's R_AI of 40 Mbps and B of 10 MB
// (section 5).
constexpr double kAdditiveShare = 1e-3;
constexpr double kHyperShare = 5 * kAdditiveShare;
constexpr double kMinShare = kAdditiveShare;
constexpr double kByteSeconds = 2e-3;

// Each recovery step halves the distance to the line rate. From this share of the line rate on, the line rate counts as
// reached.
constexpr double kCloseToLine = 1 - 1e-6;

// Steps are enlarged so that a flow regains kRegainedShare of the line rate within kBurstShare of a burst's duration.
// An additive step is enlarged to at most kLargestShare of the line rate.
constexpr double kRegainedShare = 0.5;
constexpr double kBurstShare = 0.25;
constexpr double kLargestShare = 0.02;
// Steps are enlarged in full if the target rate is at least this share of the line rate. At a lower target rate, the
// factor of enlargement is multiplied by the square root of (target rate / this share of the line rate).
constexpr double kWholeShare = 0.5;

constexpr std::uint32_t kAckedAtOnce = 2;   // packets per acknowledgement by default
constexpr double kFirstWindowPackets = 10;  // window in packets before the first RTT sample (RFC 6928)

double or_share(double given, double share) { return given > 0 ? given : share; }

}  // namespace

ParameterProblem Dcqcn::problem_of(const DcqcnParameters& p) {
  if (p.alpha_interval <= p.notification_interval)
    return {"alpha_interval", "above the notification_interval, or alpha falls while notifications come in",
            "notification_interval"};
  if (!p.hyper_increase.is_zero() && p.hyper_increase < p.additive_increase)
    return {"hyper_increase", "of additive_increase or more", "additive_increase"};
  return {};
}

void Dcqcn::start(const PathInfo& path, Output& out) {
  const DcqcnParameters p = path.parameters->of<Dcqcn>();
  const auto bps = [](Rate rate) { return static_cast<double>(rate.bits_per_second); };
  line_rate_ = std::max(bps(path.max_rate), 1.0);
  current_rate_ = target_rate_ = line_rate_;  // no slow start (section 3.1)
  g_ = p.g;
  additive_ = or_share(bps(p.additive_increase), line_rate_ * kAdditiveShare);
  hyper_ = or_share(bps(p.hyper_increase), line_rate_ * kHyperShare);
  min_rate_ = std::min(or_share(bps(p.min_rate), line_rate_ * kMinShare), line_rate_);
  notification_interval_ = p.notification_interval;
  alpha_interval_ = p.alpha_interval;
  increase_interval_ = p.increase_interval;
  increase_bytes_ =
      std::max<Bytes>(p.increase_bytes > 0 ? p.increase_bytes : static_cast<Bytes>(line_rate_ / 8 * kByteSeconds), 1);
  fast_recovery_steps_ = static_cast<std::uint16_t>(p.fast_recovery_steps);
  window_floor_ = kFirstWindowPackets * path.max_packet_bytes;
  write(out);
}

void Dcqcn::on_ack(const AckSample& ack, Output& out) {
  gain_ = ack.gain;
  if (ack.iteration_bytes != iteration_bytes_) scale_steps(ack.iteration_bytes);
  smoothed_rtt_ns_ = static_cast<double>(ack.smoothed_rtt.count);
  judge_.on_acked(ack.acked_packets, ack.ce_packets > 0, ack.round_count, ack.smoothed_rtt,
                  judge_.shows_queue(ack.smoothed_rtt, ack.min_rtt));
  if (ack.ce_packets > 0)
    notify(ack.now, ack.decrease_gain, notifications_of(ack));
  else
    unmarked_ = true;
  if (!increase_due_.is_never()) bytes_ += ack.acked_bytes;
  for (; bytes_ >= increase_bytes_ && !increase_due_.is_never(); bytes_ -= increase_bytes_) {
    ++byte_steps_;
    increase();
  }
  write(out);
}

bool Dcqcn::is_congestion(const LossReport& losses) {
  const bool full = judge_.shows_queue(losses.smoothed_rtt, losses.min_rtt);
  return judge_.is_congestion(losses.packets, losses.ce_packets > 0, full) || !losses.ecn_works;
}

void Dcqcn::on_congestion(const CongestionEvent& event, Output& out) {
  if (event.cause != CongestionEvent::Cause::loss) return;  // marks are handled in on_ack()
  notify(event.now, event.decrease_gain, 1);
  write(out);
}

void Dcqcn::on_timeout(Nanos now, Output& out) {
  current_rate_ = target_rate_ = min_rate_;
  alpha_ = 1;
  alpha_at_start_ = false;
  notified_ = now;
  restart_increase(now);
  write(out);
}

void Dcqcn::on_timer(Nanos now, Output& out) {
  // A call that is late takes all steps that are due.
  while (increase_due_ <= now) {
    increase_due_ += increase_interval_;
    ++timer_steps_;
    increase();
  }
  write(out);
}

void Dcqcn::scale_steps(Bytes iteration_bytes) {
  iteration_bytes_ = iteration_bytes;
  step_scale_ = 1;
  if (iteration_bytes == 0) return;
  const double burst_seconds = static_cast<double>(iteration_bytes) * 8 / line_rate_;
  const double steps = std::max(kBurstShare * burst_seconds / increase_interval_.seconds(), 1.0);
  const double wanted = std::min(kRegainedShare * line_rate_ / steps, kLargestShare * line_rate_);
  step_scale_ = std::max(wanted / additive_, 1.0);
}

/// Returns how many notifications the marks would cause if the receiver acknowledged every second packet. Each
/// notification interval in the time that sending the packets took causes one notification.
int Dcqcn::notifications_of(const AckSample& ack) const {
  if (ack.ce_packets < 2 * kAckedAtOnce) [[likely]]
    return 1;
  const double bytes =
      std::max(static_cast<double>(ack.acked_bytes), ack.ce_packets * window_floor_ / kFirstWindowPackets);
  const double took = bytes * 8e9 / current_rate_;
  const double intervals = took / static_cast<double>(notification_interval_.count);
  const auto max = static_cast<double>(ack.ce_packets / kAckedAtOnce);
  return static_cast<int>(std::max(std::min(intervals, max), 1.0));
}

void Dcqcn::notify(Nanos now, double decrease_gain, int times) {
  if (!notified_.is_never() && now - notified_ < notification_interval_) return;
  if (alpha_at_start_)
    alpha_ = 1;
  else
    // Equation 2 of the paper.
    alpha_ *= std::pow(1 - g_, static_cast<double>((now - notified_).count / alpha_interval_.count));
  alpha_at_start_ = false;
  unmarked_ = false;
  notified_ = now;
  for (; times > 0; --times) {
    // Equation 1 of the paper.
    target_rate_ = current_rate_;
    current_rate_ = std::max(current_rate_ * (1 - reduction(alpha_ / 2, decrease_gain)), min_rate_);
    alpha_ = (1 - g_) * alpha_ + g_;
  }
  restart_increase(now);
}

void Dcqcn::restart_increase(Nanos now) {
  timer_steps_ = byte_steps_ = 0;
  bytes_ = 0;
  increase_due_ = now + increase_interval_;
}

void Dcqcn::increase() {
  // Section 3.1, equations 3 and 4. Fast recovery lasts until one of the two counters exceeds F. If only one counter
  // exceeds F, the increase is additive. If both counters exceed F, the increase is hyper.
  if (std::max(timer_steps_, byte_steps_) > fast_recovery_steps_) {
    const bool hyper = std::min(timer_steps_, byte_steps_) > fast_recovery_steps_;
    target_rate_ = std::min(target_rate_ + gain_ * scale_of_step() * (hyper ? hyper_ : additive_), line_rate_);
  }
  current_rate_ = (target_rate_ + current_rate_) / 2;
  if (current_rate_ >= line_rate_ * kCloseToLine) {
    current_rate_ = target_rate_ = line_rate_;
    increase_due_ = Nanos::never();
  }
}

double Dcqcn::scale_of_step() const {
  if (iteration_bytes_ == 0) return 1;
  if (!unmarked_) return 0;
  return std::max(step_scale_ * std::min(std::sqrt(target_rate_ / line_rate_ / kWholeShare), 1.0), 1.0);
}

void Dcqcn::on_packet_size(std::uint32_t max_packet_bytes, Output& out) {
  window_floor_ = kFirstWindowPackets * max_packet_bytes;
  write(out);
}

void Dcqcn::write(Output& out) const {
  out.pacing_rate = Rate(static_cast<std::uint64_t>(std::max(current_rate_, 1.0)));
  out.cwnd_bytes = std::max(2 * target_rate_ / 8e9 * smoothed_rtt_ns_, window_floor_);
  out.timer = increase_due_;
}

}  // namespace mltcp::cc
