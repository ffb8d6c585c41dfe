// Asks the kernel for random numbers (see system_random.h).
#include "mltcp/base/system_random.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "mltcp/base/error.h"

namespace mltcp {

void SystemRandom::refill() {
  // Once a program: children have it from their parents.
  static const int failed = pthread_atfork(nullptr, nullptr, &SystemRandom::on_fork);
  if (failed != 0) throw std::bad_alloc();  // of which it is the only cause
  static_assert(sizeof pool_ <= 256, "the most that getentropy() gives at once, and never less");
  if (getentropy(pool_.data(), sizeof pool_) != 0)
    throw RunError(
        fmt::format("the system gives no random numbers: {}; Linux 3.17 or later does, where a sandbox "
                    "does not forbid getrandom(2)",
                    std::strerror(errno)));
  left_ = pool_.size();
  drawn_after_ = forks_.load(std::memory_order_relaxed);
}

}  // namespace mltcp
