// Set-up checks of the augmentation (see augmentation.h).
#include "mltcp/cc/augmentation.h"

#include <fmt/format.h>

#include <cmath>

#include "mltcp/base/error.h"

namespace mltcp::cc {

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
  a.inverse_least_ = 1 / function.least();
  return a;
}

}  // namespace mltcp::cc
