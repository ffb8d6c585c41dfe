// Asks the kernel for random numbers (see system_random.h).
#include "mltcp/base/system_random.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"

namespace mltcp {

void SystemRandom::refill() {
  static_assert(sizeof pool_ <= 256, "the most that getentropy() gives at once, and never less");
  if (getentropy(pool_.data(), sizeof pool_) != 0)
    throw RunError(
        fmt::format("the system gives no random numbers: {}; Linux 3.17 or later does, where a sandbox "
                    "does not forbid getrandom(2)",
                    std::strerror(errno)));
  left_ = pool_.size();
}

}  // namespace mltcp
