// Reads the number of a CPU from text; see thread_cpu.h.
#include "mltcp/base/thread_cpu.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp {

int named_cpu(const std::string& cores) {
  if (cores.empty()) return -1;
  int cpu = -1;
  const char* const end = cores.data() + cores.size();
  const auto [at, error] = std::from_chars(cores.data(), end, cpu);
  if (error != std::errc() || at != end || cpu < 0)
    throw InputError(fmt::format("cores {}: a host polls its port on one core; give one, such as 0", in_quotes(cores)));
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof usable, &usable) != 0 ||
      !CPU_ISSET(static_cast<std::size_t>(cpu), &usable))
    throw InputError(
        fmt::format("cores {}: this process may not use that CPU; nproc shows how many it may use", cores));
  return cpu;
}

}  // namespace mltcp
