// The plug-in interface of congestion control.
//
// The transport owns bytes in flight, loss detection, RTT, the delivery-rate sampler, ECN counters, the app-limited
// flag and pacing. An algorithm owns only its own state and writes its output: a congestion window and a pacing
// rate. It is told of everything through the events below, at most one acknowledgement sample per received batch
// and path.
//
// The gain in an acknowledgement sample is the only thing an algorithm knows of iterations: it multiplies the gain
// into its increase step, and into nothing else. Gain 1 is the plain algorithm. In the decrease variant, which is
// off by default, a second gain makes decreases smaller or larger (see reduction()).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "mltcp/base/units.h"
#include "mltcp/cc/parameters.h"

namespace mltcp::cc {

/// What an algorithm needs from path and transport; refused at set-up when unmet.
struct Capabilities {
  bool needs_ecn = false;    ///< data packets must be ECN-capable
  bool needs_hops = false;   ///< AckSample::hops has to be known
  bool needs_timer = false;  ///< on_timer() is called at the time that it asked for
  bool rate_based = false;   ///< the pacing rate rules, the window is only a safety bound; PathInfo::max_rate is known
  /// Steps up follow a clock and not acknowledgements, so that the time to regain a link that has become free is
  /// inverse to the gain: below 1 it leaves capacity unused, however long the round trip. Such an algorithm gets
  /// MLTCP's gain as a multiple of its least, which is never below 1: shares of jobs are to each other as before, and
  /// nobody is slower to rise than without MLTCP. It may also choose its steps by the length of a burst.
  bool timed_increase = false;
};

/// What is known of a path when its controller starts.
struct PathInfo {
  std::uint32_t max_packet_bytes = 1400;  ///< the unit of the window's additive steps ("SMSS")
  Rate max_rate;                          ///< of the sender; 0 = not known
  /// Never null; read in start() only: `parameters->of<Swift>()`. They have been validated.
  const Parameters* parameters = &default_parameters;
};

/// An algorithm's output.
struct Output {
  double cwnd_bytes = 0;         ///< above 0; may be below one packet, which the transport then paces
  Rate pacing_rate;              ///< 0 = the transport derives one from window and RTT
  Nanos timer = Nanos::never();  ///< when on_timer() is wanted (needs_timer)
};

/// What a batch of acknowledgements said.
struct AckSample {
  Nanos now;
  Bytes acked_bytes = 0;  ///< newly acknowledged, on this path
  std::uint32_t acked_packets = 0;
  std::uint32_t lost_packets = 0;  ///< newly declared lost with this batch
  Bytes lost_bytes = 0;
  std::uint32_t ce_packets = 0;  ///< of the newly acknowledged, those that arrived marked CE
  Bytes ce_bytes = 0;
  Nanos latest_rtt;       ///< 0 if the batch gave no RTT sample
  Nanos endpoint_delay;   ///< of latest_rtt, what the peer spent between the packet's arrival and the acknowledgement
  std::uint8_t hops = 0;  ///< switches on the way to the peer; 0 = not known
  Nanos min_rtt;
  Nanos smoothed_rtt;
  Rate delivery_rate;                ///< 0 if the batch gave no sample
  Bytes bytes_in_flight_before = 0;  ///< before the batch was taken off
  // What happened since the newest of the acknowledged packets was sent, this batch included, as BBR and its kin ask
  // (draft-ietf-ccwg-bbr, "Rate Sample": RS.tx_in_flight, RS.delivered, RS.lost). Packets that are acknowledged after
  // they were taken for lost count as lost.
  Bytes in_flight_when_sent = 0;   ///< with that packet; 4 GiB - 1 if it was more
  Bytes delivered_since_sent = 0;  ///< above 0
  Bytes lost_since_sent = 0;       ///< right as long as it is below 4 GiB
  std::uint64_t round_count = 0;   ///< round trips since the connection began
  bool cwnd_limited = false;       ///< the window, and not the application or pacing, held sending back
  bool app_limited = false;
  bool in_recovery = false;    ///< everything acknowledged was sent before the last congestion response
  double gain = 1.0;           ///< of the increase step; above 0 and finite
  double decrease_gain = 1.0;  ///< for reduction(); above 0 and finite
  /// What the job's iteration sends from this shard, for algorithms with Capabilities::timed_increase; 0: not known, or
  /// the gain does not follow iterations.
  Bytes iteration_bytes = 0;
};

/// The first sign of congestion in a round trip. The next one is reported only for packets sent after this.
struct CongestionEvent {
  enum class Cause : std::uint8_t { loss, ecn };
  Nanos now;
  Cause cause = Cause::loss;
  Bytes bytes_in_flight = 0;
  double decrease_gain = 1.0;  ///< for reduction()
};

/// The share of the window or rate that a decrease takes away in the decrease variant, `share` (in [0, 1)) being the
/// plain algorithm's: a flow with gain F acts as F flows of which one decreases (MulTCP: Crowcroft and Oechslin, CCR
/// 28(3), 1998). A gain below 1 takes away more, but never more than three quarters because of the gain.
inline double reduction(double share, double decrease_gain) {
  constexpr double most = 0.75;
  return decrease_gain == 1.0 ? share : std::min(share / decrease_gain, std::max(share, most));
}

/// What every algorithm is. `State` is all of its memory.
template <typename State>
concept Algorithm = std::is_trivially_copyable_v<State> && std::default_initializable<State> &&
    requires(State s, const PathInfo& path, const AckSample& ack, const CongestionEvent& event, Nanos now,
             Output& out) {
  { State::name } -> std::convertible_to<std::string_view>;
  { State::capabilities } -> std::convertible_to<Capabilities>;
  s.start(path, out);                  // sets the initial window
  s.on_ack(ack, out);                  // once per batch and path
  s.on_congestion(event, out);         // once per episode
  s.on_timeout(now, out);              // persistent congestion (RFC 9002 section 7.6), after on_congestion
  s.on_spurious_congestion(now, out);  // the last loss episode was none: undo
  s.on_timer(now, out);                // at Output::timer
  s.on_idle_restart(now, out);         // first packet after an idle time longer than a timeout
};

}  // namespace mltcp::cc
