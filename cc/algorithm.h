// The plug-in interface of congestion control.
//
// The transport provides bytes in flight, loss detection, RTT, the delivery-rate sampler, ECN counters, the app-limited
// flag and pacing. An algorithm stores only its own state. Its output is a congestion window and a pacing rate. All
// input comes through the events below, with at most one acknowledgement sample per received batch and path.
//
// An algorithm does not know iterations. It multiplies its increase step by the gain in an acknowledgement sample. Gain
// 1 is the unmodified algorithm. In the decrease variant, off by default, a second gain scales decreases (see
// reduction()).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"

namespace mltcp::cc {

/// The requirements of an algorithm on path and transport. Set-up fails if a requirement is not met.
struct Capabilities {
  bool needs_ecn = false;    ///< packets with data must be ECN-capable
  bool needs_hops = false;   ///< AckSample::hops must be known
  bool needs_timer = false;  ///< on_timer() must be called at Output::timer
  bool by_delay = false;     ///< the algorithm uses AckSample::endpoint_delay
  /// The pacing rate controls sending, and the window is only a safety limit. PathInfo::max_rate must be known.
  bool rate_based = false;
  /// A timer, not acknowledgements, triggers increase steps. The time that such an algorithm needs to use the capacity
  /// of a freed link is inversely proportional to the gain, at any RTT. A gain below 1 would leave capacity unused. So
  /// the algorithm gets MLTCP's gain divided by the minimum of F. This quotient is never below 1: the ratios between
  /// jobs stay the same, and no job increases more slowly than without MLTCP. The algorithm may also scale its steps by
  /// the length of a burst (AckSample::iteration_bytes).
  bool timed_increase = false;
};

/// Properties of a path when its controller starts.
struct PathInfo {
  std::uint32_t max_packet_bytes = 1400;  ///< maximum packet size; unit of the window's additive steps ("SMSS")
  Rate max_rate;                          ///< maximum sending rate; 0 if not known
  /// The algorithm's parameters, which start() reads by `parameters->of<Swift>()`. The pointer is never null, and may
  /// be used only in start(). The parameters are in range.
  const Parameters* parameters = &default_parameters;
};

/// An algorithm's output.
struct Output {
  double cwnd_bytes = 0;         ///< above 0; may be below one packet: the transport then paces single packets
  Rate pacing_rate;              ///< 0 if the transport shall derive a rate from window and RTT
  Nanos timer = Nanos::never();  ///< when to call on_timer() (Capabilities::needs_timer); never() if not at all
};

/// The acknowledgements of one batch on one path.
struct AckSample {
  Nanos now;
  Bytes acked_bytes = 0;  ///< bytes newly acknowledged on this path
  std::uint32_t acked_packets = 0;
  std::uint32_t lost_packets = 0;  ///< packets newly declared lost since the previous sample
  Bytes lost_bytes = 0;
  std::uint32_t ce_packets = 0;  ///< newly acknowledged packets that arrived with a CE mark
  Bytes ce_bytes = 0;
  Nanos latest_rtt;  ///< 0 if the batch gave no RTT sample
  /// The part of latest_rtt for which the peer held the packet, as the peer reports; 0 if ConnectionConfig::check_peer
  /// is set.
  Nanos endpoint_delay;
  std::uint8_t hops = 0;  ///< number of switches on the path to the peer; 0 if not known
  Nanos min_rtt;
  Nanos smoothed_rtt;
  Rate delivery_rate;                ///< 0 if the batch gave no rate sample
  Bytes bytes_in_flight_before = 0;  ///< bytes in flight before this batch was processed
  // The next three members are for BBR (draft-ietf-ccwg-bbr, "Rate Sample": RS.tx_in_flight, RS.delivered, RS.lost).
  // Packets acknowledged after they were declared lost count as lost.
  Bytes in_flight_when_sent = 0;  ///< bytes in flight when the newest acknowledged packet was sent; at most 4 GiB - 1
  /// Bytes delivered since the newest acknowledged packet was sent, including this batch; above 0.
  Bytes delivered_since_sent = 0;
  /// Bytes lost since the newest acknowledged packet was sent, including this batch; correct below 4 GiB.
  Bytes lost_since_sent = 0;
  std::uint64_t round_count = 0;  ///< number of round trips since the connection began
  bool cwnd_limited = false;      ///< sending was limited by the window, not by the application or pacing
  bool app_limited = false;
  bool in_recovery = false;    ///< all acknowledged packets were sent before the last congestion response
  double gain = 1.0;           ///< multiplies the increase step; above 0 and finite
  double decrease_gain = 1.0;  ///< passed to reduction(); above 0 and finite
  /// Bytes that the job sends from this shard in one iteration, for algorithms with Capabilities::timed_increase. 0 if
  /// not known, if the gain does not depend on iterations, and under policy `turns`.
  Bytes iteration_bytes = 0;
};

/// The first sign of congestion in a round trip. The next event follows only for packets sent after this event.
struct CongestionEvent {
  enum class Cause : std::uint8_t { loss, ecn };
  Nanos now;
  Cause cause = Cause::loss;
  Bytes bytes_in_flight = 0;
  double decrease_gain = 1.0;  ///< passed to reduction()
};

/// Returns the share of the window or rate that a decrease removes in the decrease variant. `share`, in [0, 1), is the
/// share that the unmodified algorithm removes. A flow with gain F behaves like F flows of which one decreases (MulTCP:
/// Crowcroft and Oechslin, CCR 28(3), 1998). A gain below 1 removes more than `share`, but at most three quarters,
/// unless `share` itself is above three quarters.
inline double reduction(double share, double decrease_gain) {
  constexpr double max = 0.75;
  return decrease_gain == 1.0 ? share : std::min(share / decrease_gain, std::max(share, max));
}

/// Reports packets newly declared lost. This report precedes all other events of the batch of acknowledgements that
/// showed the losses.
struct LossReport {
  Nanos now;
  std::uint32_t packets = 0;     ///< number of packets newly declared lost; above 0
  std::uint32_t ce_packets = 0;  ///< packets with a CE mark that the batch acknowledges
  Nanos smoothed_rtt;
  Nanos min_rtt;
  bool ecn_works = false;  ///< whether packets are sent ECN-capable and, as far as known, the path carries marks
};

/// Requirements on an algorithm. `State` is the complete memory of the algorithm.
template <typename State>
concept Algorithm = std::is_trivially_copyable_v<State> && std::default_initializable<State> &&
    requires(State s, const PathInfo& path, const AckSample& ack, const CongestionEvent& event, Nanos now,
             Output& out) {
  { State::name } -> std::convertible_to<std::string_view>;
  { State::capabilities } -> std::convertible_to<Capabilities>;
  s.start(path, out);                  // sets the initial window
  s.on_ack(ack, out);                  // called once per batch of acknowledgements and path
  s.on_congestion(event, out);         // called once per loss or marking episode
  s.on_timeout(now, out);              // called at persistent congestion (RFC 9002 section 7.6), after on_congestion
  s.on_spurious_congestion(now, out);  // called if the last loss episode was spurious, to undo the response
  s.on_timer(now, out);                // called at the time Output::timer
  s.on_idle_restart(now, out);         // called for the first packet after an idle time longer than a probe timeout
};

/// Optional: the algorithm decides which losses are a sign of congestion. Other losses appear only in the counts of
/// AckSample, and cause neither on_congestion() nor recovery. Without this function every loss is a sign of congestion.
/// The function is called for each batch of acknowledgements that shows losses, which can be several times in a round
/// trip.
template <typename State>
concept TellsLossesApart = requires(State s, const LossReport& losses) {
  { s.is_congestion(losses) } -> std::same_as<bool>;
};

/// Optional: the algorithm continues with its current window when packets of this path become longer (see
/// transport/internal/path_mtu.h). Without this function the algorithm starts anew. Every algorithm starts anew when
/// packets become shorter.
template <typename State>
concept ChangesPacketSize = requires(State s, std::uint32_t max_packet_bytes, Output& out) {
  s.on_packet_size(max_packet_bytes, out);
};

}  // namespace mltcp::cc
