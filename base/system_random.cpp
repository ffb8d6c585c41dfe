// Gets random numbers from the kernel (see system_random.h).
#include "mltcp/base/system_random.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "mltcp/base/error.h"

namespace mltcp {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the fork handler has no parameter
constinit std::atomic<std::uint32_t> copies{0};

// Registers the fork handler at program start; child processes inherit it.
// NOLINTNEXTLINE(cert-err58-cpp): throws only if no memory is left at program start
const bool watches_forks = [] {
  // pthread_atfork() fails only for lack of memory
  if (pthread_atfork(nullptr, nullptr, note_process_copy) != 0) throw std::bad_alloc();
  return true;
}();

}  // namespace

std::uint32_t process_copies() noexcept { return copies.load(std::memory_order_relaxed); }
void note_process_copy() noexcept { copies.fetch_add(1, std::memory_order_relaxed); }

void draw_system_random(std::span<std::byte> out) {
  constexpr std::size_t max = 256;  // maximum bytes of a getentropy() call, which returns all requested bytes or fails
  for (; !out.empty(); out = out.subspan(std::min(out.size(), max)))
    if (getentropy(out.data(), std::min(out.size(), max)) != 0)
      throw RunError(fmt::format(
          "the system gives no random numbers: {}; use Linux 3.17 or later, and no sandbox that forbids getrandom(2)",
          std::strerror(errno)));
}

void SystemRandom::refill() {
  const std::uint32_t now = process_copies();
  draw_system_random(std::as_writable_bytes(std::span(pool_)));
  left_ = pool_.size();
  drawn_after_ = now;
}

}  // namespace mltcp
