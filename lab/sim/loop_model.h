// Model of the polling loops of real hosts and switches. Without it, the simulator processes packets at once. A real
// loop that shares its CPU sleeps between rounds, and the operating system ends each sleep late (transport/poll_loop.h,
// lab/realtime/soft_switch.h). In virtual time, the model reproduces the effect of these delays on packet spacing,
// round-trip times and acknowledgements.
//
// After a loop has moved a packet, it polls for a few more rounds. Then it sleeps until the next deadline, but at most
// for `nap`. If it has been idle for a while, it blocks until a packet arrives or a deadline passes. Every sleep ends
// late by a random time: `late_min` plus an exponentially distributed time, `late_mean` on average in total.
// Occasionally a loop stalls for longer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/network_config.h"

namespace mltcp::sim {

/// Draws at random how late sleeps end.
class Lateness {
 public:
  Lateness(const fabric::LoopModel& model, Random random) : model_(model), random_(random) {}

  /// Draws the time by which a sleep of duration `wanted` ends late.
  Nanos draw(Nanos wanted) {
    Nanos late = model_.late_min + exponential(model_.late_mean - model_.late_min);
    if (model_.stall_every.count > 0 &&
        random_.chance(static_cast<double>((wanted + late).count) / static_cast<double>(model_.stall_every.count)))
      late += exponential(model_.stall_mean);
    return late;
  }

 private:
  Nanos exponential(Nanos mean) {
    if (mean.count <= 0) return {};
    return Nanos(static_cast<std::int64_t>(-std::log(1.0 - random_.uniform()) * static_cast<double>(mean.count)));
  }

  fabric::LoopModel model_;
  Random random_;
};

/// The polling times of a loop that always sleeps for `nap` between polls, as switches do. Packets do not end its
/// sleeps.
class Looks {
 public:
  Looks(const fabric::LoopModel& model, Random random) : nap_(model.nap), lateness_(model, random) {}

  /// Returns the first polling time at or after `time`. Forgets polling times before `now`, which must not decrease
  /// between calls.
  Nanos at_or_after(Nanos time, Nanos now) {
    while (!times_.empty() && times_.front() < now) {
      latest_gone_ = times_.front();
      times_.pop_front();
    }
    for (const Nanos look : times_)
      if (look >= time) return look;
    Nanos last = times_.empty() ? latest_gone_ : times_.back();
    do {
      // Skips all but about the last 16 polling times before `time`, because earlier ones do not matter.
      constexpr std::int64_t naps = 16;
      last = std::max(last, time - nap_ * naps) + nap_ + lateness_.draw(nap_);
      times_.push_back(last);
    } while (last < time);
    return last;
  }
  /// Returns the last polling time before `now`.
  [[nodiscard]] Nanos before(Nanos now) {
    at_or_after(now, now);
    return latest_gone_;
  }

 private:
  Nanos nap_;
  Lateness lateness_;
  std::deque<Nanos> times_;
  Nanos latest_gone_;
};

}  // namespace mltcp::sim
