// Interface of an object that a loop or a simulator polls. It is polled when packets arrive for its host, and at the
// time that its previous poll() returned.
#pragma once

#include "mltcp/base/units.h"

namespace mltcp {

class Pollable {
 public:
  virtual ~Pollable() = default;

  /// Does all work that is due at `now`, which never decreases between calls. Returns the latest time for the next
  /// call; Nanos::never() if only an arriving packet creates work. A simulator calls it at the returned time, when a
  /// packet arrives for its host, and when the host's transmit queue is no longer full; a real-time datapath may call
  /// it at any time.
  virtual Nanos poll(Nanos now) = 0;
};

}  // namespace mltcp
