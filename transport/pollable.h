// What a datapath drives: something that wants to run when packets arrive for its host or its time has come.
#pragma once

#include "mltcp/base/units.h"

namespace mltcp {

class Pollable {
 public:
  virtual ~Pollable() = default;

  /// Does what is due at `now` (never earlier than in the call before) and returns when it wants to be called
  /// again at the latest: Nanos::never() if only an arriving packet gives it work. A simulator calls it when a
  /// packet arrives for its host, at the returned time, and when the host's transmit queue, having been full, has
  /// room again; a real-time datapath may call it at any time.
  virtual Nanos poll(Nanos now) = 0;
};

}  // namespace mltcp
