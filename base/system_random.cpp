// Asks the kernel for random numbers (see system_random.h).
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

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): global, because the whole process is copied
constinit std::atomic<std::uint32_t> copies{0};

// Registered at program start; children inherit it. NOLINTNEXTLINE(cert-err58-cpp): without memory for this, no program
// begins
const bool watches_forks = [] {
  if (pthread_atfork(nullptr, nullptr, note_process_copy) != 0) throw std::bad_alloc();  // its only cause
  return true;
}();

}  // namespace

std::uint32_t process_copies() noexcept { return copies.load(std::memory_order_relaxed); }
void note_process_copy() noexcept { copies.fetch_add(1, std::memory_order_relaxed); }

void draw_system_random(std::span<std::byte> out) {
  constexpr std::size_t most = 256;  // maximum of one getentropy() call, which never returns less than requested
  for (; !out.empty(); out = out.subspan(std::min(out.size(), most)))
    if (getentropy(out.data(), std::min(out.size(), most)) != 0)
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
