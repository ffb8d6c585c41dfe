// Starting and stopping the EAL; see eal.h.
#include "mltcp/dpdk/eal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/mman.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/core_thread.h"
#include "mltcp/dpdk/log.h"
#include "mltcp/dpdk/port_name.h"
#include "mltcp/dpdk/service.h"

namespace mltcp::dpdk {
namespace {

/// Returns " (DPDK says: ...)" with the latest line of DPDK's log; empty if there is none.
std::string last_words() {
  const auto lines = dpdk_log();
  return lines.empty() ? std::string() : fmt::format(" (DPDK says: {})", lines.back());
}

std::string cpu_list(std::span<const unsigned> cpus) { return fmt::format("{}", fmt::join(cpus, ",")); }

/// Returns whether the kernel has `bytes` of free memory in huge pages. Mapping huge pages reserves them or fails, so
/// the mapping need not be touched.
bool huge_pages_are_free(std::uint64_t bytes) {
  struct PageSize {
    int flag;
    std::uint64_t bytes;
  };
  for (const PageSize page : {PageSize{static_cast<int>(MAP_HUGE_2MB), std::uint64_t{2} << 20},
                              PageSize{static_cast<int>(MAP_HUGE_1GB), std::uint64_t{1} << 30}}) {
    const std::uint64_t size = (bytes + page.bytes - 1) / page.bytes * page.bytes;
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | page.flag, -1, 0);
    if (memory != MAP_FAILED) {
      munmap(memory, size);
      return true;
    }
  }
  return false;
}

/// Restores the calling thread's CPU affinity, which DPDK changes when it starts.
class AffinityKeeper {
 public:
  AffinityKeeper() { known_ = pthread_getaffinity_np(pthread_self(), sizeof set_, &set_) == 0; }
  ~AffinityKeeper() {
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof set_, &set_);
  }
  AffinityKeeper(const AffinityKeeper&) = delete;
  AffinityKeeper& operator=(const AffinityKeeper&) = delete;

 private:
  cpu_set_t set_{};
  bool known_ = false;
};

unsigned parse_number(std::string_view text, std::string_view whole) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value >= 65536) {
    throw InputError(
        fmt::format("core list \"{}\": \"{}\" is not a CPU number; write a list such as 0 or 0,1 or 0-1", whole, text));
  }
  return value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<unsigned> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cpus;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<unsigned> parse_cores(std::string_view text, std::span<const unsigned> usable) {
  const std::string_view whole = text;
  std::vector<unsigned> cores;
  const auto add = [&](unsigned cpu) {
    if (std::find(usable.begin(), usable.end(), cpu) == usable.end()) {
      throw InputError(fmt::format(
          "core list \"{}\": CPU {} is not among the CPUs that this process may use ({}); write for example {}", whole,
          cpu, cpu_list(usable), usable.size() > 1 ? fmt::format("{},{}", usable[0], usable[1]) : cpu_list(usable)));
    }
    if (std::find(cores.begin(), cores.end(), cpu) != cores.end()) {
      throw InputError(fmt::format("core list \"{}\": CPU {} is named twice; name each once", whole, cpu));
    }
    cores.push_back(cpu);
  };
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view item = trim(text.substr(0, comma));
    if (more) text.remove_prefix(comma + 1);
    const std::size_t dash = item.find('-');
    if (dash == std::string_view::npos) {
      add(parse_number(item, whole));
      continue;
    }
    const unsigned first = parse_number(trim(item.substr(0, dash)), whole);
    const unsigned last = parse_number(trim(item.substr(dash + 1)), whole);
    if (last < first) {
      throw InputError(
          fmt::format("core list \"{}\": the range {} runs backwards; write {}-{}", whole, item, last, first));
    }
    for (unsigned cpu = first; cpu <= last; ++cpu) add(cpu);
  }
  return cores;
}

namespace {

/// State of DPDK in this process. Only the service thread changes it, and only before DPDK runs.
struct Dpdk {
  std::atomic<bool> running{false};
  bool huge = false;
  bool huge_were_free = false;
  std::uint32_t memory_mb = 0;
  std::string failure;  ///< reason of a failed start, because DPDK may refuse another start
  Clock clock;
  SystemTime time{clock};
};

/// Never destroyed, because ports may be closed while the process ends.
Dpdk& dpdk() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one for the process
  static Dpdk* const instance = new Dpdk;
  return *instance;
}

/// A PCI address without a device. If no NIC is named, DPDK is allowed only this address, so that it uses no NIC.
constexpr const char* kNoDevice = "ffff:ff:1f.7";

std::vector<std::string> nics_among(const std::vector<std::string>& devices) {
  std::vector<std::string> nics;
  for (const std::string& device : devices) {
    const PortName name = parse_port_name(device);
    if (name.kind == PortName::Kind::pci) nics.push_back(name.target);
  }
  return nics;
}

std::vector<std::string> arguments(const Dpdk& dpdk, unsigned core, const std::vector<std::string>& nics) {
  std::vector<std::string> words{"mltcp",
                                 "--no-telemetry",
                                 "--no-shconf",
                                 "--log-level=notice",
                                 fmt::format("--file-prefix=mltcp-{}", getpid()),
                                 "-m",
                                 std::to_string(dpdk.memory_mb)};
  if (nics.empty()) {
    words.push_back(fmt::format("--allow={}", kNoDevice));
    words.emplace_back("--iova-mode=va");  // if NICs are used, their drivers choose the IOVA mode
  }
  for (const auto& address : nics) words.push_back("--allow=" + address);
  // --no-huge and --in-memory exclude each other: without huge pages memory is anonymous anyway.
  words.emplace_back(dpdk.huge ? "--in-memory" : "--no-huge");
  // The core of the service thread. It has number 0 in DPDK, because DPDK's tables are too small for the CPU numbers of
  // big machines.
  words.push_back(fmt::format("--lcores=0@{}", core));
  return words;
}

void choose_memory(Dpdk& dpdk, const EalOptions& options) {
  dpdk.huge_were_free = huge_pages_are_free(std::uint64_t{options.memory_mb} << 20);
  if (!dpdk.huge_were_free && options.huge_pages == EalOptions::HugePages::required) {
    throw RunError(fmt::format(
        "{0} MB of huge pages are not free; free some or reserve them as root: echo {1} > /proc/sys/vm/nr_hugepages",
        options.memory_mb, (options.memory_mb + 1) / 2 + 8));
  }
  dpdk.huge = dpdk.huge_were_free && options.huge_pages != EalOptions::HugePages::never;
  dpdk.memory_mb = dpdk.huge ? options.memory_mb
                             : std::min(std::max(options.memory_mb, options.ordinary_memory_mb), Eal::kMaxMemoryMb);
}

/// Starts DPDK. Runs on the service thread.
void start_dpdk(Dpdk& dpdk, const EalOptions& options, unsigned core, const std::vector<std::string>& nics) {
  choose_memory(dpdk, options);
  capture_log();
  std::vector<std::string> words = arguments(dpdk, core, nics);
  std::vector<char*> pointers;
  pointers.reserve(words.size());
  for (auto& word : words) pointers.push_back(word.data());
  int result = 0;
  {
    const AffinityKeeper keeper;
    result = rte_eal_init(static_cast<int>(pointers.size()), pointers.data());
  }
  if (result < 0) {
    const int error = rte_errno;
    if (error == EALREADY && !dpdk.failure.empty()) throw RunError(dpdk.failure);
    if (error == EALREADY)
      throw RunError(
          "this program has called rte_eal_init() itself, and DPDK starts only once in a process; remove that call, or "
          "use another datapath here, such as udp:");
    dpdk.failure = fmt::format(
        "DPDK can't start on core {} with {} MB in {} pages: {}{}; `mltcp doctor` shows what this machine lacks", core,
        dpdk.memory_mb, dpdk.huge ? "huge" : "ordinary", rte_strerror(error), last_words());
    throw RunError(dpdk.failure);
  }
  // Removes the directory that DPDK creates for files, because DPDK writes no files with the options from arguments().
  rmdir(rte_eal_get_runtime_dir());
  dpdk.clock.calibrate();
  dpdk.running.store(true, std::memory_order_release);
}

/// Throws RunError if the running DPDK does not satisfy `options`.
void check_shared(const Dpdk& dpdk, const EalOptions& options) {
  using HugePages = EalOptions::HugePages;
  const auto refuse = [](const std::string& what, const std::string& cure) {
    throw RunError(fmt::format("all ports of a process share one DPDK, which already runs {}; {}", what, cure));
  };
  if (dpdk.huge && options.huge_pages == HugePages::never)
    refuse("in huge pages, but ordinary ones are requested here",
           "request ordinary pages when opening the first port, too");
  if (!dpdk.huge && options.huge_pages == HugePages::required)
    refuse("in ordinary pages, but huge ones are requested here",
           dpdk.huge_were_free ? "request huge pages when opening the first port, too"
                               : "free or reserve enough huge pages before the first port is opened");
  if (!dpdk.huge && options.min_shared_mb > dpdk.memory_mb)
    refuse(fmt::format("with {} MB in ordinary pages, which can't grow, but {} MB are requested here", dpdk.memory_mb,
                       options.min_shared_mb),
           "request that when opening the first port, or leave it out here");
}

void check_memory(std::uint32_t memory_mb) {
  if (memory_mb < Eal::kMinMemoryMb || memory_mb > Eal::kMaxMemoryMb)
    throw InputError(fmt::format("DPDK memory of {} MB is out of range; give {} to {} MB", memory_mb, Eal::kMinMemoryMb,
                                 Eal::kMaxMemoryMb));
}

}  // namespace

struct Eal::Impl {
  std::vector<unsigned> cores;
  std::vector<std::unique_ptr<CoreThread>> threads;  ///< threads of all cores except the first
  bool shared = false;
  std::string description;
};

Eal::Eal(const EalOptions& options) : impl_(std::make_unique<Impl>()) {
  const auto usable = usable_cpus();
  if (usable.empty()) throw RunError("the kernel does not report which CPUs this process may use; check its cpuset");
  impl_->cores = options.cores.empty() ? std::vector<unsigned>{usable.front()} : parse_cores(options.cores, usable);
  check_memory(options.memory_mb);
  if (options.min_shared_mb != 0) check_memory(options.min_shared_mb);
  const std::vector<std::string> nics = nics_among(options.devices);
  Dpdk& all = dpdk();
  run_on_service([&] {
    impl_->shared = all.running.load();
    if (impl_->shared) {
      check_shared(all, options);
    } else {
      start_dpdk(all, options, impl_->cores.front(), nics);
    }
  });
  join_dpdk();
  for (std::size_t core = 1; core < impl_->cores.size(); ++core)
    impl_->threads.push_back(std::make_unique<CoreThread>(impl_->cores[core]));
  std::string version = rte_version();
  if (version.rfind("DPDK ", 0) == 0) version.erase(0, 5);
  impl_->description = fmt::format("DPDK {}, core{} {}, {} MB in {}", version, impl_->cores.size() > 1 ? "s" : "",
                                   cpu_list(impl_->cores), all.memory_mb,
                                   all.huge ? "huge pages"
                                            : (all.huge_were_free ? "ordinary pages (huge pages not requested)"
                                                                  : "ordinary pages (not enough huge pages are free)"));
}

Eal::~Eal() = default;

bool Eal::is_shared() const { return impl_->shared; }
CoreThread& Eal::core_thread(std::size_t core) const { return *impl_->threads.at(core - 1); }
bool Eal::uses_huge_pages() const { return dpdk().huge; }
std::uint32_t Eal::memory_mb() const { return dpdk().memory_mb; }
std::span<const unsigned> Eal::cores() const { return impl_->cores; }
const Clock& Eal::clock() const { return dpdk().clock; }
TimeSource& Eal::time() const { return dpdk().time; }
const std::string& Eal::description() const { return impl_->description; }
bool Eal::was_started() { return dpdk().running.load(std::memory_order_acquire); }

}  // namespace mltcp::dpdk
