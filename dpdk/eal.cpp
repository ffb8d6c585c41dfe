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
#include <charconv>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/eal_exit.h"
#include "mltcp/dpdk/log.h"
#include "mltcp/dpdk/port_name.h"

namespace mltcp::dpdk {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): what DPDK allows once is once per process
std::atomic<bool> started{false};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the same
std::atomic<bool> memory_is_left{false};

/// " (DPDK says: ...)" with the latest logged failure; empty if there is none.
std::string last_words() {
  const auto lines = dpdk_log();
  return lines.empty() ? std::string() : fmt::format(" (DPDK says: {})", lines.back());
}

std::string cpu_list(std::span<const unsigned> cpus) { return fmt::format("{}", fmt::join(cpus, ",")); }

/// Whether the kernel has so much free memory in huge pages. The mapping is not touched: mapping huge pages reserves
/// them, or fails.
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

/// Preserves the calling thread's CPU affinity while DPDK starts, which changes it.
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

struct Eal::Impl {
  std::vector<unsigned> cores;
  std::vector<std::string> pci;
  std::uint32_t memory_mb = 0;
  bool huge = false;
  Clock clock;
  SystemTime time{clock};
  std::string description;
};

Eal::Eal(const EalOptions& options) : impl_(std::make_unique<Impl>()) {
  const auto usable = usable_cpus();
  if (usable.empty()) throw RunError("the kernel does not tell which CPUs this process may use; check its cpuset");
  impl_->cores = options.cores.empty() ? std::vector<unsigned>{usable.front()} : parse_cores(options.cores, usable);
  if (options.memory_mb < least_memory_mb || options.memory_mb > most_memory_mb) {
    throw InputError(
        fmt::format("DPDK memory of {} MB: give {} to {} MB", options.memory_mb, least_memory_mb, most_memory_mb));
  }
  impl_->memory_mb = options.memory_mb;
  for (const auto& address : options.pci) {
    const PortName name = parse_port_name(address);
    if (name.kind != PortName::Kind::pci) {
      throw InputError(fmt::format("{} is no PCI address; `lspci -D` lists those of NICs", in_quotes(address)));
    }
    impl_->pci.push_back(name.target);
  }
  const bool free = huge_pages_are_free(std::uint64_t{options.memory_mb} << 20);
  if (!free && options.huge_pages == EalOptions::HugePages::required) {
    throw RunError(fmt::format(
        "{0} MB of huge pages are not free; free some or reserve them as root: echo {1} > /proc/sys/vm/nr_hugepages",
        options.memory_mb, (options.memory_mb + 1) / 2 + 8));
  }
  impl_->huge = free && options.huge_pages != EalOptions::HugePages::never;
  if (!impl_->huge)
    impl_->memory_mb = std::min(std::max(options.memory_mb, options.ordinary_memory_mb), most_memory_mb);
  if (started.exchange(true)) {
    throw RunError("DPDK was started in this process before and can't be started twice; keep one Eal for all runs");
  }

  capture_log();
  std::vector<std::string> words{"mltcp",
                                 "--no-telemetry",
                                 "--no-shconf",
                                 "--log-level=notice",
                                 fmt::format("--file-prefix=mltcp-{}", getpid()),
                                 "-m",
                                 std::to_string(impl_->memory_mb)};
  if (impl_->pci.empty()) {
    words.emplace_back("--no-pci");
    words.emplace_back("--iova-mode=va");  // with NICs, their drivers choose the mode
  }
  for (const auto& address : impl_->pci) words.push_back("--allow=" + address);
  // --no-huge and --in-memory exclude each other: without huge pages memory is anonymous anyway.
  words.emplace_back(impl_->huge ? "--in-memory" : "--no-huge");
  // Cores are numbered from 0 for DPDK, whose tables are too small for the CPU numbers of big machines.
  std::string lcores = "--lcores=";
  for (std::size_t i = 0; i < impl_->cores.size(); ++i) {
    lcores += fmt::format("{}{}@{}", i == 0 ? "" : ",", i, impl_->cores[i]);
  }
  words.push_back(lcores);
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (auto& word : words) arguments.push_back(word.data());

  {
    const AffinityKeeper keeper;
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
      const int error = rte_errno;
      throw RunError(
          fmt::format("DPDK can't start on core {} with {} MB in {} pages: {}{}; `mltcp doctor` tells what this "
                      "machine lacks",
                      cpu_list(impl_->cores), impl_->memory_mb, impl_->huge ? "huge" : "ordinary", rte_strerror(error),
                      last_words()));
    }
  }
  // DPDK creates a directory for files that are not written with these options.
  rmdir(rte_eal_get_runtime_dir());
  impl_->clock.calibrate();
  std::string version = rte_version();
  if (version.rfind("DPDK ", 0) == 0) version.erase(0, 5);
  impl_->description = fmt::format("DPDK {}, core{} {}, {} MB in {}", version, impl_->cores.size() > 1 ? "s" : "",
                                   cpu_list(impl_->cores), impl_->memory_mb,
                                   impl_->huge ? "huge pages"
                                               : (free ? "ordinary pages (huge pages not wanted)"
                                                       : "ordinary pages (not enough huge pages are free)"));
}

void leave_memory_to_exit() noexcept { memory_is_left.store(true); }

Eal::~Eal() {
  // A NIC's driver registers its files with DPDK's interrupt thread at start, even without a port.
  if (!memory_is_left.load() && impl_->pci.empty()) rte_eal_cleanup();
}

bool Eal::uses_huge_pages() const { return impl_->huge; }
std::uint32_t Eal::memory_mb() const { return impl_->memory_mb; }
std::span<const unsigned> Eal::cores() const { return impl_->cores; }
std::span<const std::string> Eal::pci() const { return impl_->pci; }
const Clock& Eal::clock() const { return impl_->clock; }
TimeSource& Eal::time() const { return impl_->time; }
const std::string& Eal::description() const { return impl_->description; }
bool Eal::was_started() { return started.load(); }

}  // namespace mltcp::dpdk
