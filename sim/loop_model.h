// How the loops of real hosts and switches look after their packets: not at once, as the simulator does otherwise, but
// in looks, since a loop that shares its CPU sleeps in between and the machine ends each sleep late
// (transport/poll_loop.h, dpdk/soft_switch.h). With it, virtual time shows what real time does to spacing, round trips
// and acknowledgements.
//
// A loop that has moved a packet looks on for a few rounds, and then naps until the next deadline, but no longer than
// `nap`. When it has been idle for a while, it waits for a packet or a deadline. Every sleep ends late by a time that
// is drawn: `late_least` and, beyond it, exponentially distributed, `late_mean` on the whole. Now and then the machine
// stalls a loop for longer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"

namespace mltcp::sim {

/// Of one loop. All times are 0 or above and at most kLongestLoopTime.
struct LoopModel {
  Nanos nap;          ///< the longest while packets come; 0: it never sleeps, and sees everything at once
  Nanos late_least;   ///< by which every sleep ends late
  Nanos late_mean;    ///< on average, late_least at the least
  Nanos stall_every;  ///< between two stalls, on average; 0: none
  Nanos stall_mean;   ///< how long they are, on average

  [[nodiscard]] bool on() const { return nap.count > 0; }
};

inline constexpr Nanos kLongestLoopTime{1'000'000'000};

/// Of all hosts and switches of a network.
struct MachineModel {
  LoopModel host;
  LoopModel network_switch;  ///< naps all the time
  std::uint64_t seed = 1;

  [[nodiscard]] bool on() const { return host.on() || network_switch.on(); }
};

/// Draws how late sleeps end.
class Lateness {
 public:
  Lateness(const LoopModel& model, Random random) : model_(model), random_(random) {}

  /// Of a sleep that should take `wanted`.
  Nanos draw(Nanos wanted) {
    Nanos late = model_.late_least + exponential(model_.late_mean - model_.late_least);
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

  LoopModel model_;
  Random random_;
};

/// The looks of a loop that naps all the time: those of a switch, whose naps end by no packet.
class Looks {
 public:
  Looks(const LoopModel& model, Random random) : nap_(model.nap), lateness_(model, random) {}

  /// The first look at `time` or later. Looks before `now`, which never falls, are forgotten.
  Nanos at_or_after(Nanos time, Nanos now) {
    while (!times_.empty() && times_.front() < now) {
      latest_gone_ = times_.front();
      times_.pop_front();
    }
    for (const Nanos look : times_)
      if (look >= time) return look;
    Nanos last = times_.empty() ? latest_gone_ : times_.back();
    do {
      // Of a long pause only the last looks matter.
      constexpr std::int64_t naps = 16;
      last = std::max(last, time - nap_ * naps) + nap_ + lateness_.draw(nap_);
      times_.push_back(last);
    } while (last < time);
    return last;
  }
  /// The latest look before `now`.
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
