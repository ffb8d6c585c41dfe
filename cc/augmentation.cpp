// Set-up checks of the augmentation (see augmentation.h).
#include "mltcp/cc/augmentation.h"

#include <fmt/format.h>

namespace mltcp::cc {

void Aggressiveness::validate() const {
  const Aggressiveness& f = *this;
  // Linear: positive at both ends is positive in between.
  if (!std::isfinite(slope) || !std::isfinite(f(0)) || !std::isfinite(f(1)) || !(f(0) > 0) || !(f(1) > 0))
    throw InputError(
        fmt::format("aggressiveness F(x) = {} x + {} is not finite and above 0 for every x from 0 to 1; choose an "
                    "intercept above 0 "
                    "and a slope above its negative, as in slope 1.75, intercept 0.25",
                    slope, intercept));
}

Augmentation Augmentation::constant(double gain) {
  if (!std::isfinite(gain) || gain <= 0)
    throw InputError(fmt::format("a weight of {} is not finite and above 0; 1 is a fair share", gain));
  Augmentation a;
  a.constant_ = gain;
  return a;
}

Augmentation Augmentation::mltcp(const Aggressiveness& function) {
  function.validate();
  Augmentation a;
  a.iteration_aware_ = true;
  a.function_ = function;
  return a;
}

}  // namespace mltcp::cc
