// Captured messages; see log.h.
#include "mltcp/dpdk/log.h"

#include <dlfcn.h>
#include <rte_log.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string_view>

#include "mltcp/dpdk/eal.h"

namespace mltcp::dpdk {
namespace {

/// Never destroyed, because DPDK's threads may log until the process ends.
struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;
  std::string partial;
  std::uint64_t count = 0;
};

Log& log_of_process() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): DPDK has one log in a process
  static Log* const log = new Log;
  return *log;
}

void append(std::string_view text) {
  constexpr std::size_t kMaxLines = 64;
  constexpr std::size_t kLongestLine = 512;
  Log& log = log_of_process();
  const std::lock_guard lock(log.mutex);
  for (const char c : text) {
    if (c != '\n') {
      if (log.partial.size() < kLongestLine) log.partial.push_back(c);
      continue;
    }
    if (!log.partial.empty()) {
      log.lines.push_back(std::move(log.partial));
      ++log.count;
    }
    log.partial.clear();
    if (log.lines.size() > kMaxLines) log.lines.pop_front();
  }
}

ssize_t write_log(void* /*cookie*/, const char* text, std::size_t size) {
  append({text, size});
  return static_cast<ssize_t>(size);
}

/// Callback for messages of libxdp and libbpf. `level` is 0 for warnings, 1 for information and 2 for debugging.
__attribute__((format(printf, 2, 0))) int print_xdp(int level, const char* format, std::va_list arguments) {
  if (level > 0) return 0;
  std::array<char, 512> text{};
  const int size = std::vsnprintf(text.data(), text.size(), format, arguments);
  append(text.data());
  return size;
}

}  // namespace

void capture_log() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): DPDK's log stream is one per process
  static std::FILE* stream = nullptr;
  if (stream != nullptr) return;
  cookie_io_functions_t functions{};
  functions.write = write_log;
  stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  std::setvbuf(stream, nullptr, _IOLBF, 0);
  rte_openlog_stream(stream);
}

void capture_xdp_log() {
  // Looks up the functions at run time, because the libraries are loaded only if DPDK's AF_XDP driver is used.
  using Print = int (*)(int, const char*, std::va_list);
  using SetPrint = Print (*)(Print);
  struct Library {
    const char* file;
    const char* setter;
  };
  for (const Library library : {Library{"libxdp.so.1", "libxdp_set_print"}, Library{"libbpf.so.1", "libbpf_set_print"},
                                Library{"libbpf.so.0", "libbpf_set_print"}}) {
    void* const handle = dlopen(library.file, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (void* const symbol = dlsym(handle, library.setter)) reinterpret_cast<SetPrint>(symbol)(print_xdp);
    dlclose(handle);  // releases only the reference taken above
  }
}

std::uint64_t log_count() {
  Log& log = log_of_process();
  const std::lock_guard lock(log.mutex);
  return log.count;
}

std::vector<std::string> log_since(std::uint64_t count) {
  Log& log = log_of_process();
  const std::lock_guard lock(log.mutex);
  const auto wanted = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(log.count - count, log.lines.size()));
  return {log.lines.end() - wanted, log.lines.end()};
}

std::vector<std::string> dpdk_log() { return log_since(0); }

}  // namespace mltcp::dpdk
