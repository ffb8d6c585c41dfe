// The parameters of the algorithms, with the values of their sources as defaults. One object serves any number of
// controllers: an algorithm copies what it needs when it starts.
#pragma once

#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp::cc {

/// RFC 9438 section 4, RFC 9406.
struct CubicParameters {
  double c = 0.4;                ///< of the cubic curve, in packets / s^3; above 0, at most 1e9
  double beta = 0.7;             ///< what is left of the window after a congestion event; in [0.5, 1)
  bool fast_convergence = true;  ///< section 4.7
  bool hystart = true;           ///< leave slow start when the round trip grows (RFC 9406)
};

/// RFC 8257.
struct DctcpParameters {
  double g = 1.0 / 16;         ///< weight of a window's marks in alpha; in (0, 1]
  double initial_alpha = 1.0;  ///< in [0, 1]; section 3.3 (4)
};

/// Zhu et al., SIGCOMM'15 (doi 10.1145/2785956.2787484), sections 3 and 5. The paper's rates and bytes are for links of
/// 40 Gbps: those left at 0 are the same shares of the sender's line rate.
struct DcqcnParameters {
  double g = 1.0 / 256;                   ///< weight of a notification in alpha; in (0, 1]
  Nanos notification_interval{50'000};    ///< N: a flow is told of marks at most so often; above 0
  Nanos alpha_interval{55'000};           ///< K: without a notification for so long, alpha falls; above N
  Nanos increase_interval{55'000};        ///< T: of the timer for rate increases; above 0
  Bytes increase_bytes = 0;               ///< B: of the byte counter for rate increases; 0: 2 ms at line rate (10 MB)
  std::uint32_t fast_recovery_steps = 5;  ///< F; 1 or more
  Rate additive_increase;                 ///< R_AI; 0: a thousandth of the line rate (40 Mbps)
  Rate hyper_increase;                    ///< R_HAI; 0: five thousandths
  Rate min_rate;                          ///< 0: a thousandth
};

/// Kumar et al., SIGCOMM'20 (doi 10.1145/3387514.3406591), section 3.
struct SwiftParameters {
  /// Of the fabric delay, for the shortest path; best given, and the same for all that share a link: the delay of an
  /// empty path and half as much again or more. 0: the power of two of nanoseconds from twice to four times the
  /// smallest delay that the flow has seen.
  Nanos base_target{0};
  Nanos per_hop{1'000};            ///< topology scaling; 0 or more
  Nanos flow_scaling{100'000};     ///< fs_range: most that small windows add to the target; 0 or more
  double flow_min_window = 0.1;    ///< fs_min_cwnd, packets; above 0
  double flow_max_window = 100;    ///< fs_max_cwnd, packets; above fs_min_cwnd
  Nanos endpoint_target{150'000};  ///< of the delay in the peer; above ConnectionConfig::max_ack_delay, so above 0
  double additive_increase = 1.0;  ///< ai, packets per round trip; above 0
  double beta = 0.8;               ///< scales the decrease by how far the target is exceeded; in (0, 1]
  double max_decrease = 0.5;       ///< max_mdf, of one decrease; in (0, 1)
  double min_window = 0.01;        ///< packets; above 0
  double max_window = 10'000;      ///< packets; at least 1 and min_window, at most 1e9
};

struct Parameters {
  CubicParameters cubic;
  DctcpParameters dctcp;
  DcqcnParameters dcqcn;
  SwiftParameters swift;

  /// Throws InputError that names the first parameter of algorithm `name` that is out of range.
  void validate(std::string_view name) const;
};

/// All defaults.
inline constexpr Parameters default_parameters{};

}  // namespace mltcp::cc
