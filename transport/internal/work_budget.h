// Bounds work that anybody can ask for by sending packets: so much a second, and a tenth of a second's at once.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class WorkBudget {
 public:
  /// `each`: a piece of work in so long, above 0.
  explicit WorkBudget(Nanos each) : each_(each) {}

  /// Whether another piece has to wait.
  [[nodiscard]] bool is_spent(Nanos now) const { return paid_until_ > now + std::max(kSavedUp, each_) - each_; }
  void pay(Nanos now) { paid_until_ = std::max(paid_until_, now) + each_; }

 private:
  static constexpr Nanos kSavedUp{100'000'000};

  Nanos each_;
  Nanos paid_until_;  ///< what was paid for is done evenly until then
};

}  // namespace mltcp::transport
