// Wakes a thread through an eventfd; see wakeup.h.
#include "mltcp/endpoint/internal/wakeup.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"

namespace mltcp::endpoint {

Wakeup::Wakeup() : file_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (file_ < 0)
    throw RunError(
        fmt::format("cannot create an eventfd: {}; raise the limit of open files (ulimit -n)", std::strerror(errno)));
}
Wakeup::~Wakeup() { close(file_); }

bool Wakeup::write() noexcept {
  const std::uint64_t one = 1;
  announced_.fetch_add(1, std::memory_order_release);
  return ::write(file_, &one, sizeof one) == sizeof one;
}

void Wakeup::clear() noexcept {
  std::uint64_t count = 0;
  // If there is nothing to read, a waker is about to write. The waker's write ends the next sleep early, and the next
  // clear() reads it.
  if (read(file_, &count, sizeof count) == sizeof count) taken_ += count;
}

}  // namespace mltcp::endpoint
