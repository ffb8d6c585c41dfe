// ECN marking by the instantaneous queue length that an arriving packet finds, as in DCTCP (RFC 8257 section 3.1) and
// RED-like switch configurations. Packets are not marked up to kmin, and always marked above kmax. Between kmin and
// kmax the probability rises linearly to pmax.
#pragma once

#include <cstdint>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"

namespace mltcp::fabric {

struct EcnConfig {
  bool enabled = false;
  Bytes kmin_bytes = 0;
  /// Queue length in bytes, at least kmin_bytes. If kmax_bytes equals kmin_bytes, the marking probability is a step
  /// from 0 to 1, as in DCTCP.
  Bytes kmax_bytes = 0;
  /// Marking probability at kmax, in [0, 1].
  double pmax = 1.0;
};

class EcnMarker {
 public:
  EcnMarker(const EcnConfig& config, std::uint64_t seed) : config_(config), random_(Random::stream(seed, 0)) {
    if (config.enabled && config.kmax_bytes > config.kmin_bytes)
      slope_ = config.pmax / static_cast<double>(config.kmax_bytes - config.kmin_bytes);
  }

  /// Returns whether to mark an ECN-capable packet that finds `queue` bytes in the queue.
  bool marks(Bytes queue) {
    if (!config_.enabled || queue <= config_.kmin_bytes) return false;
    if (queue > config_.kmax_bytes) return true;
    return random_.chance(slope_ * static_cast<double>(queue - config_.kmin_bytes));
  }

 private:
  EcnConfig config_;
  double slope_ = 0;  // marking probability per byte above kmin
  Random random_;
};

}  // namespace mltcp::fabric
