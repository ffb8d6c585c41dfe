// Limits work that anybody can cause by sending packets. Allows a fixed rate, and the work of a tenth of a second at
// once.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class WorkBudget {
 public:
  /// `each` is the time per allowed piece of work, above 0.
  explicit WorkBudget(Nanos each) : each_(each) {}

  /// Returns whether another piece of work must wait.
  [[nodiscard]] bool is_spent(Nanos now) const { return paid_until_ > now + std::max(kSavedUp, each_) - each_; }
  void pay(Nanos now) { paid_until_ = std::max(paid_until_, now) + each_; }

 private:
  static constexpr Nanos kSavedUp{100'000'000};

  Nanos each_;
  Nanos paid_until_;  ///< when the work done so far would end at the allowed rate
};

}  // namespace mltcp::transport
