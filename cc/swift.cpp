// Implements Swift (see swift.h).
#include "mltcp/cc/swift.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace mltcp::cc {
namespace {

constexpr double kInitialWindow = 10;        // initial window in packets (RFC 6928)
constexpr double kEndpointWeight = 1.0 / 8;  // weight of a sample in the smoothed endpoint delay (section 3.2)
constexpr double kWindowsApart = 2;          // maximum ratio of the larger of the two windows to the smaller window
constexpr double kHighestRate = 1e15;        // bits per second
// A window counts as used if bytes in flight plus a packet reach this share of the window.
constexpr double kInUse = 0.8;

}  // namespace

ParameterProblem Swift::problem_of(const SwiftParameters& p) {
  if (p.flow_max_window <= p.flow_min_window) return {"flow_max_window", "above flow_min_window", "flow_min_window"};
  if (p.max_window < p.min_window) return {"max_window", "of min_window or more", "min_window"};
  return {};
}

void Swift::fit(SwiftParameters& parameters, const NetworkInfo& network) {
  constexpr std::int64_t round_trips = 2;
  if (parameters.base_target == Nanos(0)) parameters.base_target = network.unloaded_round_trip * round_trips;
}

void Swift::start(const PathInfo& path, Output& out) {
  const SwiftParameters p = path.parameters->of<Swift>();
  mss_ = static_cast<double>(path.max_packet_bytes);
  derive_base_ = p.base_target == Nanos(0);
  base_target_ = static_cast<double>(p.base_target.count);
  per_hop_ = static_cast<double>(p.per_hop.count);
  max_hops_ = static_cast<std::uint8_t>(p.max_hops);
  // Section 3.5: flow scaling adds flow_scaling to the target at flow_min_window, and 0 at flow_max_window.
  flow_scaling_ = static_cast<double>(p.flow_scaling.count);
  flow_alpha_ = flow_scaling_ / (1 / std::sqrt(p.flow_min_window) - 1 / std::sqrt(p.flow_max_window));
  flow_beta_ = -flow_alpha_ / std::sqrt(p.flow_max_window);
  endpoint_target_ = static_cast<double>(p.endpoint_target.count);
  additive_ = p.additive_increase;
  beta_ = p.beta;
  max_decrease_ = p.max_decrease;
  min_window_ = p.min_window;
  max_window_ = p.max_window;
  fabric_.packets = endpoint_.packets = kInitialWindow;
  write(out);
}

void Swift::on_ack(const AckSample& ack, Output& out) {
  smoothed_rtt_ = static_cast<double>(ack.smoothed_rtt.count);
  if (ack.latest_rtt > Nanos(0)) {
    latest_rtt_ = static_cast<double>(ack.latest_rtt.count);
    const auto endpoint = static_cast<double>(ack.endpoint_delay.count);
    fabric_delay_ = latest_rtt_ - endpoint;
    // A delay of 0 or less comes from clocks that disagree. It is invalid, and would remain the minimum for ever.
    if (min_fabric_delay_ <= 0 || (fabric_delay_ > 0 && fabric_delay_ < min_fabric_delay_)) {
      min_fabric_delay_ = fabric_delay_;
      if (derive_base_)
        base_target_ = static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(2 * fabric_delay_)));
    }
    endpoint_delay_ = measured_ ? endpoint_delay_ + kEndpointWeight * (endpoint - endpoint_delay_) : endpoint;
    measured_ = true;
  }
  if (!measured_) return;
  const bool used = ack.cwnd_limited || (!ack.app_limited && static_cast<double>(ack.bytes_in_flight_before) + mss_ >=
                                                                 kInUse * out.cwnd_bytes);
  const double step = used ? ack.gain * additive_ * static_cast<double>(ack.acked_bytes) / mss_ : 0;
  const double target = fabric_target(ack);
  above_target_ = fabric_delay_ >= target;
  judge_.on_acked(ack.acked_packets, above_target_, ack.round_count, ack.smoothed_rtt, false);
  react(fabric_, fabric_delay_, target, step, ack);
  react(endpoint_, endpoint_delay_, endpoint_target_, step, ack);
  write(out);
}

void Swift::react(Window& window, double delay, double target, double step, const AckSample& ack) const {
  if (delay < target)
    window.packets += window.packets >= 1 ? step / window.packets : step;
  else
    decrease(window, std::min(beta_ * (delay - target) / delay, max_decrease_), ack.decrease_gain, ack.now);
}

void Swift::decrease(Window& window, double share, double decrease_gain, Nanos now) const {
  const bool recent = !window.decreased.is_never() && static_cast<double>((now - window.decreased).count) < latest_rtt_;
  if (recent || share <= 0) return;
  window.packets *= 1 - reduction(share, decrease_gain);
  window.decreased = now;
}

double Swift::fabric_target(const AckSample& ack) const {
  const double scaling = flow_alpha_ * std::sqrt(ack.gain / fabric_.packets) + flow_beta_;
  return base_target_ + std::min(ack.hops, max_hops_) * per_hop_ + std::clamp(scaling, 0.0, flow_scaling_);
}

bool Swift::is_congestion(const LossReport& losses) {
  return judge_.is_congestion(losses.packets, above_target_, false) || above_target_;
}

void Swift::on_congestion(const CongestionEvent& event, Output& out) {
  if (event.cause != CongestionEvent::Cause::loss) return;  // marks are ignored, because the delay is more precise
  decrease(fabric_, max_decrease_, event.decrease_gain, event.now);
  decrease(endpoint_, max_decrease_, event.decrease_gain, event.now);
  write(out);
}

void Swift::on_timeout(Nanos now, Output& out) {
  fabric_ = endpoint_ = {min_window_, now};
  write(out);
}

// Converts both windows to the new packet size. Their bytes do not change.
void Swift::on_packet_size(std::uint32_t max_packet_bytes, Output& out) {
  const double before = std::exchange(mss_, static_cast<double>(max_packet_bytes));
  fabric_.packets *= before / mss_;
  endpoint_.packets *= before / mss_;
  write(out);
}

void Swift::write(Output& out) {
  const double cwnd = std::clamp(std::min(fabric_.packets, endpoint_.packets), min_window_, max_window_);
  const double max = std::min(kWindowsApart * cwnd, max_window_);
  fabric_.packets = std::clamp(fabric_.packets, cwnd, max);
  endpoint_.packets = std::clamp(endpoint_.packets, cwnd, max);
  // Rounds up by integer conversion, which is faster than std::ceil().
  auto whole = static_cast<double>(static_cast<std::int64_t>(cwnd));
  if (whole < cwnd) ++whole;
  out.cwnd_bytes = (cwnd < 1 ? cwnd : whole) * mss_;
  if (smoothed_rtt_ > 0) {
    const double rate = std::clamp(cwnd * mss_ * 8e9 / smoothed_rtt_, 1.0, kHighestRate);
    out.pacing_rate = Rate(static_cast<std::uint64_t>(static_cast<std::int64_t>(rate)));
  }
}

}  // namespace mltcp::cc
