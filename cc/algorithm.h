// The plug-in interface of congestion control.
//
// The transport keeps bytes in flight, loss detection, RTT, the delivery-rate sampler, ECN counters, the app-limited
// flag and pacing. An algorithm keeps only its own state and writes its output: a congestion window and a pacing rate.
// All input comes through the events below, with at most one acknowledgement sample per received batch and path.
//
// An algorithm knows nothing of iterations except the gain in an acknowledgement sample: it multiplies its increase
// step by the gain. Gain 1 is the unmodified algorithm. In the decrease variant, off by default, a second gain scales
// decreases (see reduction()).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"

namespace mltcp::cc {

/// The requirements of an algorithm on path and transport. Set-up fails if one is not met.
struct Capabilities {
  bool needs_ecn = false;    ///< packets with data must be ECN-capable
  bool needs_hops = false;   ///< AckSample::hops must be known
  bool needs_timer = false;  ///< on_timer() must be called at Output::timer
  bool by_delay = false;     ///< uses AckSample::endpoint_delay
  bool rate_based = false;   ///< the pacing rate controls sending, and the window is only a safety limit;
                             ///< PathInfo::max_rate must be known
  /// A timer, not acknowledgements, triggers increase steps. The time to use the capacity of a freed link is then
  /// inversely proportional to the gain at any RTT, and a gain below 1 would leave capacity unused. So such an
  /// algorithm gets MLTCP's gain divided by the function's minimum, which is never below 1: the ratios between jobs
  /// stay the same, and no job increases more slowly than without MLTCP. The algorithm may also scale its steps by the
  /// length of a burst.
  bool timed_increase = false;
};

/// Properties of a path when its controller starts.
struct PathInfo {
  std::uint32_t max_packet_bytes = 1400;  ///< unit of the window's additive steps ("SMSS")
  Rate max_rate;                          ///< maximum sending rate; 0 = not known
  /// The algorithm's parameters, read by `parameters->of<Swift>()`: never null, validated, and valid only in start().
  const Parameters* parameters = &default_parameters;
};

/// An algorithm's output.
struct Output {
  double cwnd_bytes = 0;         ///< above 0; may be below one packet: the transport then paces single packets
  Rate pacing_rate;              ///< 0 = the transport derives a rate from window and RTT
  Nanos timer = Nanos::never();  ///< when to call on_timer() (Capabilities::needs_timer); never() = do not call
};

/// The acknowledgements of one batch.
struct AckSample {
  Nanos now;
  Bytes acked_bytes = 0;  ///< newly acknowledged, on this path
  std::uint32_t acked_packets = 0;
  std::uint32_t lost_packets = 0;  ///< newly declared lost since the previous sample
  Bytes lost_bytes = 0;
  std::uint32_t ce_packets = 0;  ///< newly acknowledged packets that arrived with a CE mark
  Bytes ce_bytes = 0;
  Nanos latest_rtt;       ///< 0 if the batch gave no RTT sample
  Nanos endpoint_delay;   ///< part of latest_rtt that the peer reports as its own; 0 with ConnectionConfig::check_peer
  std::uint8_t hops = 0;  ///< switches on the path to the peer; 0 = not known
  Nanos min_rtt;
  Nanos smoothed_rtt;
  Rate delivery_rate;                ///< 0 if the batch gave no sample
  Bytes bytes_in_flight_before = 0;  ///< before this batch was processed
  // Counts since the newest acknowledged packet was sent, this batch included, for BBR (draft-ietf-ccwg-bbr, "Rate
  // Sample": RS.tx_in_flight, RS.delivered, RS.lost). Packets acknowledged after they were declared lost count as lost.
  Bytes in_flight_when_sent = 0;   ///< in flight when that packet was sent; at most 4 GiB - 1
  Bytes delivered_since_sent = 0;  ///< above 0
  Bytes lost_since_sent = 0;       ///< correct below 4 GiB
  std::uint64_t round_count = 0;   ///< round trips since the connection began
  bool cwnd_limited = false;       ///< sending was limited by the window, not by the application or pacing
  bool app_limited = false;
  bool in_recovery = false;    ///< all acknowledged packets were sent before the last congestion response
  double gain = 1.0;           ///< multiplies the increase step; above 0 and finite
  double decrease_gain = 1.0;  ///< for reduction(); above 0 and finite
  /// Bytes that the job's iteration sends from this shard, for algorithms with Capabilities::timed_increase; 0 if not
  /// known, or if the gain does not depend on iterations.
  Bytes iteration_bytes = 0;
};

/// The first sign of congestion in a round trip. The next event comes only for packets sent after this one.
struct CongestionEvent {
  enum class Cause : std::uint8_t { loss, ecn };
  Nanos now;
  Cause cause = Cause::loss;
  Bytes bytes_in_flight = 0;
  double decrease_gain = 1.0;  ///< for reduction()
};

/// The share of the window or rate that a decrease removes in the decrease variant; `share` (in [0, 1)) is the share of
/// the unmodified algorithm. A flow with gain F behaves like F flows of which one decreases (MulTCP: Crowcroft and
/// Oechslin, CCR 28(3), 1998). A gain below 1 removes more, but the gain alone never raises the share above three
/// quarters.
inline double reduction(double share, double decrease_gain) {
  constexpr double most = 0.75;
  return decrease_gain == 1.0 ? share : std::min(share / decrease_gain, std::max(share, most));
}

/// Packets newly declared lost. It precedes all other events of the batch of acknowledgements that showed the losses.
struct LossReport {
  Nanos now;
  std::uint32_t packets = 0;     ///< above 0
  std::uint32_t ce_packets = 0;  ///< marked packets acknowledged by the same batch
  Nanos smoothed_rtt;
  Nanos min_rtt;
  bool ecn_works = false;  ///< packets are sent ECN-capable and, as far as known, the path carries marks
};

/// Requirements on an algorithm. `State` is all of its memory.
template <typename State>
concept Algorithm = std::is_trivially_copyable_v<State> && std::default_initializable<State> &&
    requires(State s, const PathInfo& path, const AckSample& ack, const CongestionEvent& event, Nanos now,
             Output& out) {
  { State::name } -> std::convertible_to<std::string_view>;
  { State::capabilities } -> std::convertible_to<Capabilities>;
  s.start(path, out);                  // sets the initial window
  s.on_ack(ack, out);                  // once per batch and path
  s.on_congestion(event, out);         // once per loss or marking episode
  s.on_timeout(now, out);              // persistent congestion (RFC 9002 section 7.6), after on_congestion
  s.on_spurious_congestion(now, out);  // the last loss episode was spurious: undo the response
  s.on_timer(now, out);                // at Output::timer
  s.on_idle_restart(now, out);         // first packet after an idle time longer than a probe timeout
};

/// Optional: the algorithm decides which losses are a sign of congestion. The other losses appear only in the counts of
/// AckSample, without on_congestion() and without recovery. Without this function every loss is a sign of congestion.
/// It is called for each batch that shows losses, also several times in a round trip.
template <typename State>
concept TellsLossesApart = requires(State s, const LossReport& losses) {
  { s.is_congestion(losses) } -> std::same_as<bool>;
};

/// Optional: the algorithm continues with its current window when packets of this path become longer (see
/// transport/internal/path_mtu.h). Without this function it starts anew, as all algorithms do when packets become
/// shorter.
template <typename State>
concept ChangesPacketSize = requires(State s, std::uint32_t max_packet_bytes, Output& out) {
  s.on_packet_size(max_packet_bytes, out);
};

}  // namespace mltcp::cc
