// Reads the system's time and waits; see time_source.h.
#include "mltcp/base/time_source.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <ctime>
#include <optional>
#include <vector>

namespace mltcp {
namespace {

constexpr int kPauses = 32;

void pause_once() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

thread_local std::optional<PreciseSleep> precise;  // set while a loop runs in this thread

}  // namespace

PreciseSleep::PreciseSleep() : slack_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1); }
PreciseSleep::~PreciseSleep() {
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, slack_);
}

void SystemTime::begin_loop() { precise.emplace(); }
void SystemTime::end_loop() { precise.reset(); }

void SystemTime::pause() {
  for (int i = 0; i < kPauses; ++i) pause_once();
}

void SystemTime::sleep(Nanos duration) { Clock::sleep(duration); }

WaitEnd SystemTime::wait(std::span<const int> files, Nanos max) {
  thread_local std::vector<pollfd> waited;  // kept between calls, so that a wait allocates no memory
  waited.clear();
  for (const int file : files) waited.push_back({file, POLLIN, 0});
  const timespec limit{0, static_cast<long>(max.count)};
  if (ppoll(waited.data(), waited.size(), &limit, nullptr) <= 0) return WaitEnd::timed_out;
  for (const pollfd& file : waited) {
    if ((file.revents & ~POLLIN) == 0) continue;
    // An interface that goes down reports an error to its sockets once; reading the error clears it. A file that stays
    // in error is always ready, so polling it would not sleep.
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(file.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error == 0) return WaitEnd::failed;
  }
  return WaitEnd::readable;
}

}  // namespace mltcp
