// Interface of an object that a loop or a simulator polls, when packets arrive for the object's host, or at a time that
// the object has requested.
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
