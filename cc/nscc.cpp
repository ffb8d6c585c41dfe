// Implements NSCC (see nscc.h).
#include "mltcp/cc/nscc.h"

#include <algorithm>
#include <utility>

namespace mltcp::cc {
namespace {

constexpr Nanos kMinFittedRtt{20'000};        // twice the default of ConnectionConfig::pacing_quantum
constexpr double kReferenceRtt = 12'000;      // nanoseconds
constexpr double kReferenceBdp = 150'000;     // bytes: 12 us at 100 Gbps
constexpr double kNoQueue = 1'000;            // delay in the reference network that counts as no queue, in nanoseconds
constexpr double kMaxProportional = 0.25;     // largest proportional increase in a round trip, in BDPs
constexpr double kMaxShare = 0.25;            // largest increase in a round trip, in windows, except fast increase
constexpr double kMinEtaScale = 2;            // smallest a in eta
constexpr double kMinExtraPackets = 2;        // packets by which the maximum window exceeds the BDP at least
constexpr double kAdjustPackets = 8;          // adjustments follow each other after this number of packets at most
constexpr double kQuickAdaptTargets = 4;      // delay, in targets, that lets QuickAdapt act without a loss
constexpr double kQuickAdaptShare = 1.0 / 8;  // share of the maximum window below which QuickAdapt acts
constexpr double kDrainedRtts = 0.25;         // delay, in base RTTs, that a draining queue counts as in the average
constexpr double kInitialWindow = 10;         // packets, without a known rate (RFC 6928)
constexpr double kMaxPackets = 10'000;        // largest window in packets, without a known rate
constexpr double kMaxWindow = 1e12;           // bytes
constexpr double kHighestRate = 1e15;         // bits per second

}  // namespace

void Nscc::fit(NsccParameters& parameters, const NetworkInfo& network) {
  if (parameters.base_rtt == Nanos(0)) parameters.base_rtt = std::max(network.unloaded_round_trip, kMinFittedRtt);
  if (parameters.rate.is_zero()) parameters.rate = network.rate;
}

void Nscc::start(const PathInfo& path, Output& out) {
  const NsccParameters p = path.parameters->of<Nscc>();
  mss_ = static_cast<double>(path.max_packet_bytes);
  const Rate rate = p.rate.is_zero() ? path.max_rate : p.rate;
  rate_ = static_cast<float>(static_cast<double>(rate.bits_per_second) / 8e9);
  base_ = static_cast<double>(p.base_rtt.count);
  given_base_ = p.base_rtt > Nanos(0);
  target_ = p.target;
  proportional_ = p.proportional_increase;
  fair_ = p.fair_increase;
  fast_share_ = p.fast_increase;
  eta_ = p.eta;
  gamma_ = p.gamma;
  max_decrease_ = p.max_decrease;
  delay_weight_ = p.delay_weight;
  max_window_ = p.max_window;
  min_window_ = p.min_window;
  quick_adapt_ = p.quick_adapt;
  bdp_ = double{rate_} * base_;
  cwnd_ = bdp_ > 0 ? max_window() : kInitialWindow * mss_;
  write(out);
}

void Nscc::on_ack(const AckSample& ack, Output& out) {
  const double delay = measure(ack);
  if (base_ <= 0) return;
  if (!adapt_quickly(ack, delay)) {
    const double marked = marked_bytes(ack, delay);
    increase(static_cast<double>(ack.acked_bytes) - marked, delay, ack.gain);
    if (marked > 0 && delay >= target()) decrease(ack);
    if (ack.lost_bytes > 0) remove(static_cast<double>(ack.lost_bytes), ack.decrease_gain);
    adjust(ack);
  }
  write(out);
}

double Nscc::measure(const AckSample& ack) {
  smoothed_rtt_ = static_cast<double>(ack.smoothed_rtt.count);
  if (ack.latest_rtt <= Nanos(0)) return average_delay_;
  if (!given_base_) {
    const bool is_first = base_ <= 0;
    base_ = static_cast<double>(ack.min_rtt.count);
    bdp_ = double{rate_} * base_;
    if (is_first && bdp_ > 0) cwnd_ = max_window();
  }
  const double delay = std::max(static_cast<double>(ack.latest_rtt.count) - base_, 0.0);
  // Close to 1 - (1 - weight)^packets.
  const double weight = double{delay_weight_} * ack.acked_packets;
  const bool is_draining = trusts_marks_ && ack.ce_packets == 0 && delay >= target();
  average_delay_ += weight / (1 + weight) * ((is_draining ? kDrainedRtts * base_ : delay) - average_delay_);
  return delay;
}

double Nscc::marked_bytes(const AckSample& ack, double delay) {
  if (ack.ce_bytes > 0) {
    trusts_marks_ = true;
    is_silent_ = false;
    return static_cast<double>(std::min(ack.ce_bytes, ack.acked_bytes));
  }
  const auto round = static_cast<std::uint32_t>(ack.round_count);
  const bool was_silent = std::exchange(is_silent_, delay >= target());
  if (!was_silent) silent_round_ = round;
  if (!is_silent_) return 0;
  if (round - silent_round_ >= 2) trusts_marks_ = false;  // one complete round trip lies between the two
  return trusts_marks_ ? 0 : static_cast<double>(ack.acked_bytes);
}

bool Nscc::adapt_quickly(const AckSample& ack, double delay) {
  const auto acked = static_cast<double>(ack.acked_bytes);
  const auto lost = static_cast<double>(ack.lost_bytes);
  achieved_ += acked;
  lost_ = lost_ || lost > 0;
  if (to_ignore_ > 0) {
    to_ignore_ -= acked + lost;
    return true;
  }
  if (!quick_adapt_ || (!period_end_.is_never() && ack.now <= period_end_)) return false;
  const double enough = kQuickAdaptShare * (bdp_ > 0 ? max_window() : cwnd_);
  const bool acts = !period_end_.is_never() && !ack.app_limited && achieved_ < enough &&
                    (lost_ || delay > kQuickAdaptTargets * target());
  if (acts) {
    cwnd_ = std::min(cwnd_, std::max(achieved_, mss_));
    to_ignore_ = static_cast<double>(ack.bytes_in_flight_before) - acked - lost;
    pending_ = since_adjust_ = 0;
  }
  achieved_ = 0;
  lost_ = false;
  period_end_ = ack.now + Nanos(static_cast<std::int64_t>(base_ + target()));
  return acts;
}

void Nscc::increase(double bytes, double delay, double gain) {
  if (bytes <= 0) return;
  const bool at_target = delay >= target();
  const double step = at_target ? double{fair_} * unit() : proportional_step() * (1 - delay / target());
  const double share = std::min({step, std::max(kMaxShare * cwnd_, mss_), cwnd_}) / cwnd_;
  if (!at_target) {
    const bool has_queue = delay >= kNoQueue * std::max(base_ / kReferenceRtt, 1.0);
    fast_bytes_ = has_queue ? 0 : fast_bytes_ + bytes;
    is_fast_ = !has_queue && (is_fast_ || fast_bytes_ > cwnd_);
    const double fast_share = std::min(double{fast_share_} * (bdp_ > 0 ? bdp_ / kReferenceBdp : 1), 1.0);
    if (is_fast_ && fast_share > share) {
      cwnd_ += gain * fast_share * bytes;
      return;
    }
  }
  pending_ += gain * share * bytes;
}

void Nscc::decrease(const AckSample& ack) {
  is_fast_ = false;
  fast_bytes_ = 0;
  const bool recent = !decreased_.is_never() && static_cast<double>((ack.now - decreased_).count) < smoothed_rtt_;
  if (recent || average_delay_ <= target()) return;
  const double share = std::min(double{gamma_} * (average_delay_ - target()) / average_delay_, double{max_decrease_});
  remove(share * cwnd_, ack.decrease_gain);
  decreased_ = ack.now;
}

void Nscc::remove(double bytes, double decrease_gain) {
  constexpr double max = 0.99;  // reduction() takes a share below 1
  cwnd_ -= cwnd_ * reduction(std::min(bytes / cwnd_, max), decrease_gain);
}

void Nscc::adjust(const AckSample& ack) {
  since_adjust_ += static_cast<double>(ack.acked_bytes);
  const bool eta_due = eta_added_.is_never() || static_cast<double>((ack.now - eta_added_).count) >= base_;
  if (!eta_due && since_adjust_ <= kAdjustPackets * mss_) return;
  cwnd_ += pending_;
  pending_ = since_adjust_ = 0;
  if (!eta_due) return;
  cwnd_ += ack.gain * double{eta_} * std::max(unit(), kMinEtaScale * mss_);
  eta_added_ = ack.now;
}

void Nscc::on_timeout(Nanos, Output& out) {
  cwnd_ = 0;
  pending_ = since_adjust_ = fast_bytes_ = 0;
  is_fast_ = false;
  write(out);
}

void Nscc::on_idle_restart(Nanos, Output&) {
  period_end_ = Nanos::never();
  achieved_ = 0;
}

void Nscc::on_packet_size(std::uint32_t max_packet_bytes, Output& out) {
  mss_ = static_cast<double>(max_packet_bytes);
  write(out);
}

double Nscc::max_window() const {
  if (bdp_ <= 0) return kMaxPackets * mss_;
  return std::min(std::max(double{max_window_} * bdp_, bdp_ + kMinExtraPackets * mss_), kMaxWindow);
}

double Nscc::proportional_step() const {
  return bdp_ > 0 ? std::min(double{proportional_} * unit() * target() / kReferenceRtt, kMaxProportional * bdp_) : mss_;
}

double Nscc::unit() const { return bdp_ > 0 ? mss_ * bdp_ / kReferenceBdp : mss_ / double{proportional_}; }

void Nscc::write(Output& out) {
  cwnd_ = std::clamp(cwnd_, std::min(double{min_window_} * mss_, max_window()), max_window());
  // Rounds up by integer conversion, which is faster than std::ceil().
  const double packets = cwnd_ / mss_;
  auto whole = static_cast<double>(static_cast<std::int64_t>(packets));
  if (whole < packets) ++whole;
  out.cwnd_bytes = packets < 1 ? cwnd_ : whole * mss_;
  if (smoothed_rtt_ > 0) {
    const double rate = std::clamp(cwnd_ * 8e9 / smoothed_rtt_, 1.0, kHighestRate);
    out.pacing_rate = Rate(static_cast<std::uint64_t>(static_cast<std::int64_t>(rate)));
  }
}

}  // namespace mltcp::cc
