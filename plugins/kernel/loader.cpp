// Loads and pins algorithms and reads their status with libbpf (see loader.h).
#include "mltcp/plugins/kernel/loader.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/plugins/kernel/doctor.h"
#include "mltcp/plugins/kernel/internal/objects.h"

namespace mltcp::kernel {
namespace {

constexpr const char* kFileSystem = "/sys/fs/bpf";
constexpr const char* kFolder = "/sys/fs/bpf/mltcp";
constexpr const char* kLock = "/run/mltcp-kernel.lock";
constexpr const char* kCgroups = "/sys/fs/cgroup";
constexpr const char* kDefault = "/proc/sys/net/ipv4/tcp_congestion_control";
constexpr const char* kAvailable = "/proc/sys/net/ipv4/tcp_available_congestion_control";
constexpr const char* kModprobe = "/proc/sys/kernel/modprobe";
constexpr const char* kNotLoaded = "MLTCP for kernel TCP is not loaded; to load it: mltcp kernel load";
constexpr const char* kOtherVersion =
    "the loaded algorithms are from another version of mltcp; run mltcp kernel unload, then load";
constexpr std::uint32_t kOldest[] = {6, 1};

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string why(int error) { return std::strerror(error); }
const char* cure_of(int error) {
  return error == EACCES || error == EPERM ? "run it as root" : "mltcp kernel unload, then load";
}

std::string mltcp_name(std::string_view algorithm) { return fmt::format("mltcp_{}", algorithm); }

std::string pin_of(std::string_view name) { return fmt::format("{}/{}", kFolder, name); }
std::string pin_of_algorithm(std::string_view algorithm) { return pin_of(mltcp_name(algorithm)); }
std::string pin_of_users(std::string_view algorithm) { return pin_of(fmt::format("users_{}", algorithm)); }
constexpr const char* kShared[] = {"mltcp_jobs", "mltcp_settings", "mltcp_common"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_known(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!contains(algorithm_names(), name))
      throw InputError(fmt::format("{} is not a kernel algorithm that MLTCP supports; give one of {}", in_quotes(name),
                                   fmt::join(algorithm_names(), ", ")));
}

constexpr unsigned kNetAdmin = 12;
constexpr unsigned kSysAdmin = 21;
constexpr unsigned kPerfmon = 38;
constexpr unsigned kBpf = 39;

// Returns the capabilities of this process, one bit each. Returns all bits if the kernel does not report them.
std::uint64_t held_rights() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("CapEff:")) continue;
    std::uint64_t held = 0;
    const std::string_view digits = trimmed(std::string_view(line).substr(7));
    std::from_chars(digits.data(), digits.data() + digits.size(), held, 16);
    return held;
  }
  return ~std::uint64_t{0};
}

// Throws RunError unless this process has the rights to use BPF, to configure the network, to see kernel memory, and to
// find the types of modules.
void check_rights() {
  constexpr std::pair<unsigned, const char*> needed[] = {
      {kNetAdmin, "CAP_NET_ADMIN"}, {kSysAdmin, "CAP_SYS_ADMIN"}, {kPerfmon, "CAP_PERFMON"}, {kBpf, "CAP_BPF"}};
  const std::uint64_t held = held_rights();
  for (const auto& [bit, name] : needed)
    if ((held >> bit & 1) == 0)
      throw RunError(fmt::format("{} is missing, which is needed to change kernel TCP; run mltcp as root", name));
}

// Throws RunError if the kernel does not report the start of sending by cwnd_event(), because then no iteration would
// ever be seen. According to the sources of Linux, kernels from version 7.1 on do not report the start.
void check_events(std::string_view release) {
  struct FreeTypes {
    void operator()(btf* types) const { btf__free(types); }
  };
  const std::unique_ptr<btf, FreeTypes> types(btf__load_vmlinux_btf());
  if (!types) return;
  const int id = btf__find_by_name_kind(types.get(), "tcp_congestion_ops", BTF_KIND_STRUCT);
  if (id < 0) return;
  const btf_type* const operations = btf__type_by_id(types.get(), static_cast<std::uint32_t>(id));
  const auto* const members = reinterpret_cast<const btf_member*>(operations + 1);
  for (std::uint32_t i = 0; i < BTF_INFO_VLEN(operations->info); ++i) {
    const char* const name = btf__name_by_offset(types.get(), members[i].name_off);
    if (name != nullptr && std::string_view(name) == "cwnd_event_tx_start")
      throw RunError(
          fmt::format("this is Linux {}, whose interface for congestion control is too new; for MLTCP for kernel TCP, "
                      "boot Linux 6.1 to 7.0",
                      one_line(release)));
  }
}

void check_kernel() {
  utsname name{};
  uname(&name);
  const std::string_view release = name.release;
  std::uint32_t version[2] = {0, 0};
  const auto first = std::from_chars(release.data(), release.data() + release.size(), version[0]);
  if (first.ptr != release.data() + release.size())
    std::from_chars(first.ptr + 1, release.data() + release.size(), version[1]);
  if (std::pair(version[0], version[1]) < std::pair(kOldest[0], kOldest[1]))
    throw RunError(fmt::format("this is Linux {}, and MLTCP for kernel TCP needs {}.{} or later; boot a newer kernel",
                               one_line(release), kOldest[0], kOldest[1]));
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    throw RunError(
        "this kernel has no type information: there is no /sys/kernel/btf/vmlinux; boot a kernel with "
        "CONFIG_DEBUG_INFO_BTF, e.g. Debian's");
  // Check only kernels that may be too new, because reading all types takes a while.
  if (version[0] >= 7) check_events(release);
}

bool has_file_system() {
  struct statfs found {};
  return statfs(kFileSystem, &found) == 0 && found.f_type == BPF_FS_MAGIC;
}

void check_file_system() {
  if (!has_file_system())
    throw RunError(fmt::format(
        "{0} is not a BPF file system, which keeps the loaded algorithms; mount -t bpf -o mode=0700 bpf {0}",
        kFileSystem));
}

void check_machine() {
  check_rights();
  check_kernel();
  check_file_system();
}

// Takes the lock that lets only one command at a time change loaded algorithms. Only root can open the file, so no
// other user can hold the lock.
Descriptor lock() {
  Descriptor file(open(kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.open())
    throw RunError(fmt::format("{} can't be opened: {}; run it as root, outside of containers", kLock, why(errno)));
  constexpr std::chrono::milliseconds pause(50);
  constexpr std::chrono::seconds patience(10);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw RunError(fmt::format("{} can't be locked: {}; run it as root", kLock, why(errno)));
    if (std::chrono::steady_clock::now() >= end)
      throw RunError(fmt::format("another mltcp kernel command has been running for {} s; try again when it has ended",
                                 patience.count()));
    std::this_thread::sleep_for(pause);
  }
  return file;
}

// Throws RunError if users other than root can write to the folder of the pins, because these users could then replace
// the contents of the folder.
void check_folder() {
  struct stat found {};
  if (lstat(kFolder, &found) != 0) {
    if (errno == ENOENT) return;
    throw RunError(fmt::format("{} cannot be listed: {}; run mltcp as root", kFolder, why(errno)));
  }
  if (!S_ISDIR(found.st_mode) || found.st_uid != 0 || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw RunError(fmt::format("{} is open to users other than root; remove it and its contents", kFolder));
}

void make_folder() {
  if (mkdir(kFolder, S_IRWXU) != 0 && errno != EEXIST)
    throw RunError(fmt::format("{} cannot be created: {}; run mltcp as root", kFolder, why(errno)));
  check_folder();
}

std::string default_algorithm() {
  std::ifstream file(kDefault);
  std::string name;
  std::getline(file, name);
  return name;
}

Descriptor open_pin(const std::string& path) {
  Descriptor map(bpf_obj_get(path.c_str()));
  if (!map.open() && errno != ENOENT)
    throw RunError(fmt::format("{} can't be opened: {}; {}", path, why(errno), cure_of(errno)));
  return map;
}

// Returns MLTCP's congestion controls that are registered in the kernel, whichever program loaded them. All users can
// read this list.
std::vector<std::string> registered_algorithms() {
  std::ifstream file(kAvailable);
  if (!file)
    throw RunError(
        fmt::format("{} cannot be read, so the loaded algorithms are unknown: {}; run mltcp where /proc is mounted",
                    kAvailable, why(errno)));
  std::vector<std::string> found;
  for (std::string name; file >> name;)
    for (const std::string& algorithm : algorithm_names())
      if (name == mltcp_name(algorithm)) found.push_back(algorithm);
  return found;
}

bool is_registered(const std::string& algorithm) { return contains(registered_algorithms(), algorithm); }

std::string joined(const std::vector<std::string>& algorithms) {
  std::vector<std::string> names;
  for (const std::string& algorithm : algorithm_names())
    if (contains(algorithms, algorithm)) names.push_back(mltcp_name(algorithm));
  return fmt::format("{} {}", fmt::join(names, ", "), names.size() == 1 ? "is" : "are");
}

// An algorithm is loaded if it is pinned and registered. A pin without a registered algorithm was left by a command
// that was killed.
bool is_loaded(const std::string& algorithm) {
  return access(pin_of_algorithm(algorithm).c_str(), F_OK) == 0 && is_registered(algorithm);
}

std::vector<std::string> loaded_algorithms() {
  std::vector<std::string> found;
  for (const std::string& name : algorithm_names())
    if (is_loaded(name)) found.push_back(name);
  return found;
}

// Returns whether there may be pins that this process cannot read.
bool is_hidden() {
  if (!has_file_system()) return (held_rights() & (std::uint64_t{1} << kBpf | std::uint64_t{1} << kSysAdmin)) == 0;
  return access(pin_of("mltcp_common").c_str(), R_OK) != 0 && errno != ENOENT;
}

// The maps that all algorithms share. They exist while an algorithm is loaded.
struct Maps {
  Descriptor jobs = open_pin(pin_of("mltcp_jobs"));
  Descriptor settings = open_pin(pin_of("mltcp_settings"));
  Descriptor common = open_pin(pin_of("mltcp_common"));

  Maps() {
    if (!jobs.open() || !settings.open() || !common.open()) throw RunError(kNotLoaded);
    check_size(jobs, sizeof(mltcp_job));
    check_size(settings, sizeof(mltcp_settings));
    check_size(common, sizeof(mltcp_common));
    if (get_common().layout != MLTCP_LAYOUT) throw RunError(kOtherVersion);
  }
  [[nodiscard]] mltcp_common get_common() const {
    const std::uint32_t zero = 0;
    mltcp_common value{};
    if (bpf_map_lookup_elem(common.get(), &zero, &value) != 0)
      throw RunError(fmt::format("the settings cannot be read from the kernel: {}; run mltcp kernel unload, then load",
                                 why(errno)));
    return value;
  }
  void put_common(const mltcp_common& value) const {
    const std::uint32_t zero = 0;
    if (bpf_map_update_elem(common.get(), &zero, &value, BPF_ANY) != 0)
      throw RunError(fmt::format("the kernel refuses settings: {}; {}", why(errno), cure_of(errno)));
  }

 private:
  static void check_size(const Descriptor& map, std::size_t size) {
    bpf_map_info info{};
    std::uint32_t length = sizeof(info);
    if (bpf_obj_get_info_by_fd(map.get(), &info, &length) != 0 || info.value_size != size)
      throw RunError(kOtherVersion);
  }
};

// Messages that libbpf wrote while it loaded an object. The first line names the cause.
std::string& complaint() {
  static std::string text;
  return text;
}
int keep_complaint(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char line[1024];
  std::vsnprintf(line, sizeof(line), format, arguments);
  std::string_view text = line;
  if (text.starts_with("libbpf: ")) text.remove_prefix(8);
  text = text.substr(0, text.find('\n'));
  if (complaint().empty()) complaint() = one_line(text);
  return 0;
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

// Selects one of the kernel's own algorithms for a socket, so that the kernel loads the algorithm's module. Returns why
// the algorithm is missing even then, or an empty text.
std::string lack_of(const std::string& algorithm) {
  const Descriptor any(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!any.open()) return fmt::format("no socket can be opened: {}; raise the limit of open files", why(errno));
  if (setsockopt(any.get(), IPPROTO_TCP, TCP_CONGESTION, algorithm.c_str(), static_cast<socklen_t>(algorithm.size())) ==
      0)
    return "";
  const int error = errno;
  if (error != ENOENT) return fmt::format("the kernel refuses {}: {}; leave it out by --cc", algorithm, why(error));
  std::ifstream file(kModprobe);
  std::string program;
  std::getline(file, program);
  const bool fetches = !program.empty() && access(program.c_str(), X_OK) == 0;
  const std::string option = algorithm == "dctcp" ? "DCTCP" : "CUBIC";  // the kernel always has Reno
  return fmt::format(
      "the kernel has no {0} now, and {1}; load its module tcp_{0}, or boot a kernel that was built with "
      "CONFIG_TCP_CONG_{2}, or leave it out by --cc",
      algorithm,
      fetches           ? fmt::format("{} tcp_{} did not bring it", one_line(program), algorithm)
      : program.empty() ? std::string("fetches no modules by itself")
                        : fmt::format("fetches no modules by itself, for there is no {}", one_line(program)),
      option);
}

// Registers an algorithm and pins its parts. Returns why this failed, or an empty text.
std::string load_one(const std::string& algorithm, const mltcp_common& common) {
  if (std::string lack = lack_of(algorithm); !lack.empty()) return lack;
  complaint().clear();
  const auto refused = [&](const char* what, int error) {
    return fmt::format(
        "the kernel refuses mltcp_{}: {}: {}{}{}; {}", algorithm, what, why(error), complaint().empty() ? "" : ": ",
        complaint(), error == EPERM ? "run it as root, outside of containers" : "report it, with the kernel's version");
  };
  const std::span<const unsigned char> bytes = internal::object_of(algorithm);
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = algorithm.c_str();
  options.pin_root_path = kFolder;
  const std::unique_ptr<bpf_object, CloseObject> object(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (!object) return refused("its program can't be read", errno);
  if (const int error = bpf_object__load(object.get()); error != 0) return refused("it can't be loaded", -error);
  bpf_map* const users = bpf_object__find_map_by_name(object.get(), "mltcp_users");
  bpf_map* const operations = bpf_object__find_map_by_name(object.get(), mltcp_name(algorithm).c_str());
  if (users == nullptr || operations == nullptr) return refused("its program is incomplete", EINVAL);
  bpf_map* const shared = bpf_object__find_map_by_name(object.get(), "mltcp_common");
  const std::uint32_t zero = 0;
  if (shared == nullptr || bpf_map_update_elem(bpf_map__fd(shared), &zero, &common, BPF_ANY) != 0)
    return refused("its settings can't be written", errno);
  // Create the pins before registering the algorithm. If this process is killed, the pins show which algorithm is
  // registered.
  const auto pin = [](const bpf_map* map, const std::string& path) {
    unlink(path.c_str());
    return bpf_obj_pin(bpf_map__fd(map), path.c_str()) == 0 ? 0 : errno;
  };
  const auto unpin = [&] {
    unlink(pin_of_users(algorithm).c_str());
    unlink(pin_of_algorithm(algorithm).c_str());
  };
  if (const int error = pin(users, pin_of_users(algorithm)); error != 0) return refused("it can't be pinned", error);
  if (const int error = pin(operations, pin_of_algorithm(algorithm)); error != 0) {
    unpin();
    return refused("it can't be pinned", error);
  }
  bpf_link* const link = bpf_map__attach_struct_ops(operations);
  if (link == nullptr) {
    const int error = errno;
    unpin();
    return refused("it can't be registered", error);
  }
  // From here on, the algorithm stays registered when the process ends. Deleting the value of the algorithm's map
  // removes the algorithm.
  bpf_link__disconnect(link);
  bpf_link__destroy(link);
  return "";
}

// Removes an algorithm from the kernel through the map that registered it.
void unregister(const std::string& algorithm, const Descriptor& map) {
  const std::uint32_t zero = 0;
  if (bpf_map_delete_elem(map.get(), &zero) != 0 && errno != ENOENT && errno != EINPROGRESS)
    throw RunError(fmt::format("mltcp_{} can't be taken out of the kernel: {}; {}", algorithm, why(errno),
                               errno == EACCES || errno == EPERM
                                   ? "run it as root"
                                   : fmt::format("rm -r {}, then mltcp kernel unload", kFolder)));
}

// Removes an algorithm that has lost its pins because the file system of the pins was mounted again.
void unregister_unpinned(const std::string& algorithm) {
  for (std::uint32_t id = 0; is_registered(algorithm) && bpf_map_get_next_id(id, &id) == 0;) {
    const Descriptor map(bpf_map_get_fd_by_id(id));
    bpf_map_info info{};
    std::uint32_t length = sizeof(info);
    if (map.open() && bpf_obj_get_info_by_fd(map.get(), &info, &length) == 0 && info.type == BPF_MAP_TYPE_STRUCT_OPS &&
        mltcp_name(algorithm) == info.name)
      unregister(algorithm, map);
  }
}

void unload_one(const std::string& algorithm) {
  const std::string pin = pin_of_algorithm(algorithm);
  if (const Descriptor map = open_pin(pin); map.open()) unregister(algorithm, map);
  unregister_unpinned(algorithm);
  unlink(pin.c_str());
  unlink(pin_of_users(algorithm).c_str());
}

// Removes the pins of the shared maps. Connections that use the maps keep them alive.
void unpin_shared() {
  for (const char* name : kShared) unlink(pin_of(name).c_str());
  rmdir(kFolder);
}

std::uint64_t users_of(const std::string& algorithm) {
  const Descriptor map = open_pin(pin_of_users(algorithm));
  const std::uint32_t zero = 0;
  std::uint64_t count = 0;
  if (map.open()) bpf_map_lookup_elem(map.get(), &zero, &count);
  return count;
}

std::uint64_t tick_ns() {
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  return static_cast<std::uint64_t>(tick.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(tick.tv_nsec);
}

mltcp_job_key key_of(const JobName& job) { return {job.id, job.kind, 0}; }

// The path of a cgroup with a given number, or the fact that the cgroup is gone. If `path` is empty and `is_gone` is
// false, the cgroup may or may not exist: the kernel reports nothing without CAP_DAC_READ_SEARCH, or if cgroup v2 is
// mounted elsewhere.
struct Cgroup {
  std::optional<std::string> path;
  bool is_gone = false;
};

// Finds a cgroup by its number, which is part of its file handle (name_to_handle_at(2)).
Cgroup find_cgroup(std::uint64_t id) {
  constexpr int kind_of_handle = 0xfe;  // FILEID_KERNFS in the kernel's exportfs.h
  alignas(file_handle) std::array<char, sizeof(file_handle) + sizeof(id)> buffer{};
  auto* const handle = new (buffer.data()) file_handle{};
  handle->handle_bytes = sizeof(id);
  handle->handle_type = kind_of_handle;
  std::memcpy(handle->f_handle, &id, sizeof(id));
  const Descriptor mount(open(kCgroups, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs system {};
  if (!mount.open() || fstatfs(mount.get(), &system) != 0 || system.f_type != CGROUP2_SUPER_MAGIC) return {};
  const Descriptor found(open_by_handle_at(mount.get(), handle, O_PATH | O_CLOEXEC));
  if (!found.open()) return {std::nullopt, errno == ESTALE};
  std::error_code problem;
  const std::string path =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", found.get()), problem).string();
  if (problem) return {};
  return {path.starts_with(kCgroups) ? path.substr(std::strlen(kCgroups)) : path};
}

std::string name_of(const mltcp_job_key& key) {
  if (key.kind == MLTCP_JOB_MARK) return fmt::format("mark {}", key.id);
  const Cgroup cgroup = find_cgroup(key.id);
  return cgroup.path ? one_line(*cgroup.path)
                     : fmt::format("cgroup {}{}", key.id, cgroup.is_gone ? ", which is gone" : "");
}

template <typename Value, typename Take>
void for_each(const Descriptor& map, std::uint64_t flags, const Take& take) {
  mltcp_job_key key{};
  mltcp_job_key next{};
  // If a job is deleted during the walk, the walk starts again from the first key. So the number of steps is limited.
  std::size_t left = std::size_t{4} * MLTCP_MAX_JOBS;
  for (const void* from = nullptr; left > 0 && bpf_map_get_next_key(map.get(), from, &next) == 0; --left) {
    Value value{};
    if (bpf_map_lookup_elem_flags(map.get(), &next, &value, flags) == 0) take(next, value);
    key = next;
    from = &key;
  }
}

// Removes the settings of cgroups that no longer exist.
void forget_gone(const Descriptor& settings) {
  std::vector<mltcp_job_key> gone;
  for_each<mltcp_settings>(settings, 0, [&](const mltcp_job_key& key, const mltcp_settings&) {
    if (key.kind == MLTCP_JOB_CGROUP && find_cgroup(key.id).is_gone) gone.push_back(key);
  });
  for (const mltcp_job_key& key : gone) bpf_map_delete_elem(settings.get(), &key);
}

}  // namespace

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names{"reno", "cubic", "dctcp"};
  return names;
}

JobName JobName::cgroup(const std::string& folder) {
  struct statfs system {};
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0)
    throw InputError(fmt::format("--cgroup: {}: {}; give the folder of a cgroup, such as {}/system.slice/train.service",
                                 in_quotes(folder), why(errno), kCgroups));
  if (statfs(folder.c_str(), &system) != 0 || system.f_type != CGROUP2_SUPER_MAGIC)
    throw InputError(
        fmt::format("--cgroup: {} is not a folder of cgroup v2; give one below {}", in_quotes(folder), kCgroups));
  constexpr ino_t root = 1;
  if (found.st_ino == root)
    throw InputError(
        fmt::format("--cgroup: {} is the root, which contains all sockets; give a folder below it", in_quotes(folder)));
  // Counts the levels from the folder up to the root of cgroup v2 or of the cgroup namespace.
  std::string above = folder;
  struct stat parent = found;
  for (int depth = 0; parent.st_ino != root && parent.st_dev == found.st_dev; ++depth) {
    if (depth == MLTCP_MAX_LEVELS)
      throw InputError(fmt::format("--cgroup: {} is too deep; give one at most {} levels below the root",
                                   in_quotes(folder), static_cast<int>(MLTCP_MAX_LEVELS)));
    above += "/..";
    if (stat(above.c_str(), &parent) != 0) break;
  }
  return {MLTCP_JOB_CGROUP, found.st_ino};
}

JobName JobName::cgroup_with_number(std::uint64_t number) { return {MLTCP_JOB_CGROUP, number}; }

std::vector<LeftOut> load(const std::vector<std::string>& names, const SettingsChange& change,
                          std::optional<std::uint32_t> mark_mask) {
  check_known(names);
  mltcp_common common{};
  common.layout = MLTCP_LAYOUT;
  common.settings = default_settings();
  apply(change, common.settings);
  common.mark_mask = mark_mask.value_or(~std::uint32_t{0});
  common.tick_ns = tick_ns();
  check_machine();
  const Descriptor held = lock();
  check_folder();
  const std::vector<std::string> there = loaded_algorithms();
  std::vector<std::string> wanted;
  for (const std::string& name : names.empty() ? algorithm_names() : names)
    if (!contains(there, name) && !contains(wanted, name)) wanted.push_back(name);
  if (wanted.empty())
    throw RunError(fmt::format("{} loaded; change settings by mltcp kernel set, or unload first", joined(there)));
  for (const std::string& name : algorithm_names())
    if (!contains(there, name) && is_registered(name))
      throw RunError(
          fmt::format("mltcp_{} is registered, but not pinned in {}, which has been mounted again since; run mltcp "
                      "kernel unload first",
                      name, kFolder));
  // An algorithm that is added to loaded algorithms shares their settings and jobs.
  if (!there.empty()) {
    if (!change.empty() || mark_mask)
      throw RunError(
          fmt::format("{} loaded, and all loaded algorithms share their settings; load without --function, --gap, "
                      "--bytes and --marks, and change settings by mltcp kernel set, or unload all first",
                      joined(there)));
    common = Maps().get_common();
  }
  // Removes pins that were left by a command that was killed.
  for (const std::string& name : algorithm_names()) {
    if (contains(there, name)) continue;
    unlink(pin_of_algorithm(name).c_str());
    unlink(pin_of_users(name).c_str());
  }
  if (there.empty()) unpin_shared();
  make_folder();
  const libbpf_print_fn_t before = libbpf_set_print(keep_complaint);
  std::vector<LeftOut> left_out;
  std::vector<std::string> loaded;
  for (const std::string& name : wanted) {
    const std::string reason = load_one(name, common);
    if (reason.empty()) {
      loaded.push_back(name);
      continue;
    }
    left_out.push_back({name, reason});
    if (!names.empty()) break;
  }
  libbpf_set_print(before);
  if (loaded.empty() || (!names.empty() && !left_out.empty())) {
    for (const std::string& name : loaded) unload_one(name);
    if (there.empty()) unpin_shared();
    throw RunError((names.empty() && !there.empty() ? joined(there) + " loaded, but no more can be: " : "") +
                   left_out.front().reason);
  }
  return left_out;
}

void set_common(const SettingsChange& change) {
  check_rights();
  check_file_system();
  const Descriptor held = lock();
  const Maps maps;
  mltcp_common common = maps.get_common();
  apply(change, common.settings);
  maps.put_common(common);
}

void set_job(const JobName& job, const SettingsChange& change) {
  check_rights();
  check_file_system();
  const Descriptor held = lock();
  const Maps maps;
  const mltcp_job_key key = key_of(job);
  mltcp_common common = maps.get_common();
  if (job.kind == MLTCP_JOB_MARK && (job.id & common.mark_mask) != job.id)
    throw InputError(
        fmt::format("--job: the bits of marks that number jobs are {:#x}, which {:#x} is not of; give another, "
                    "or load with --marks",
                    common.mark_mask, job.id));
  mltcp_settings settings{};
  const bool is_new = bpf_map_lookup_elem(maps.settings.get(), &key, &settings) != 0;
  if (is_new) settings = common.settings;
  apply(change, settings);
  const auto put = [&] { return bpf_map_update_elem(maps.settings.get(), &key, &settings, BPF_ANY) == 0 ? 0 : errno; };
  int error = put();
  if (error == E2BIG) {
    forget_gone(maps.settings);
    error = put();
  }
  if (error != 0)
    throw RunError(
        error == E2BIG
            ? fmt::format("{} jobs have settings, which is the maximum; remove one by mltcp kernel set --forget",
                          int{MLTCP_MAX_JOBS})
            : fmt::format("the kernel refuses settings: {}; {}", why(error), cure_of(error)));
  if (!is_new) return;
  ++common.generation;
  maps.put_common(common);
}

void forget_job(const JobName& job) {
  check_rights();
  check_file_system();
  const Descriptor held = lock();
  const Maps maps;
  const mltcp_job_key key = key_of(job);
  if (bpf_map_delete_elem(maps.settings.get(), &key) != 0)
    throw InputError("this job has no settings of its own; for jobs that have, see mltcp kernel status");
  mltcp_common common = maps.get_common();
  ++common.generation;
  maps.put_common(common);
}

std::uint64_t unload(const std::vector<std::string>& names) {
  check_known(names);
  check_rights();
  check_file_system();
  const Descriptor held = lock();
  std::vector<std::string> there;
  for (const std::string& name : algorithm_names())
    if (is_registered(name) || access(pin_of_algorithm(name).c_str(), F_OK) == 0) there.push_back(name);
  if (there.empty() && access(kFolder, F_OK) != 0) throw RunError("nothing is loaded, so there is nothing to unload");
  const std::vector<std::string>& wanted = names.empty() ? there : names;
  const std::string by_default = default_algorithm();
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) == there.end())
      throw RunError(fmt::format("mltcp_{} is not loaded; for loaded algorithms, see mltcp kernel status", name));
    if (by_default == mltcp_name(name))
      throw RunError(
          fmt::format("mltcp_{0} is the default of new connections; run sysctl -w net.ipv4.tcp_congestion_control={0} "
                      "first, then unload",
                      name));
  }
  std::uint64_t users = 0;
  for (const std::string& name : wanted) {
    users += users_of(name);
    unload_one(name);
  }
  if (loaded_algorithms().empty()) unpin_shared();
  return users;
}

Status status() {
  Status status;
  status.default_algorithm = default_algorithm();
  const std::vector<std::string> registered = registered_algorithms();
  if (!registered.empty() && is_hidden())
    throw RunError(
        fmt::format("{} loaded, but only root can see jobs and connections; run mltcp as root", joined(registered)));
  for (const std::string& name : algorithm_names()) {
    AlgorithmStatus algorithm{mltcp_name(name), is_loaded(name), false, 0};
    algorithm.lost = !algorithm.loaded && contains(registered, name);
    if (algorithm.loaded) algorithm.connections = users_of(name);
    status.loaded = status.loaded || algorithm.loaded;
    status.algorithms.push_back(std::move(algorithm));
  }
  if (!status.loaded) return status;
  const Maps maps;
  const mltcp_common common = maps.get_common();
  status.settings = common.settings;
  status.mark_mask = common.mark_mask;
  std::map<std::pair<std::uint32_t, std::string>, JobStatus> jobs;
  for_each<mltcp_settings>(maps.settings, 0, [&](const mltcp_job_key& key, const mltcp_settings& settings) {
    JobStatus job;
    job.name = name_of(key);
    job.settings = settings;
    job.own_settings = true;
    jobs[{key.kind, fmt::format("{:020}", key.id)}] = job;
  });
  for_each<mltcp_job>(maps.jobs, BPF_F_LOCK, [&](const mltcp_job_key& key, const mltcp_job& value) {
    JobStatus& job = jobs[{key.kind, fmt::format("{:020}", key.id)}];
    if (!job.own_settings) {
      job.name = name_of(key);
      job.settings = common.settings;
    }
    const mltcp_iterations& seen = value.iterations;
    job.seen = true;
    job.connections = seen.connections;
    job.in_flight = seen.sending;
    job.iterations = seen.iterations;
    job.sent_bytes = mltcp_sent(&seen);
    job.gap = Nanos(static_cast<std::int64_t>(seen.gap_ns));
    job.iteration_bytes = mltcp_known_size(&seen, &job.settings);
    if (job.iteration_bytes > 0)
      job.bytes_ratio = std::min(1.0, static_cast<double>(job.sent_bytes) / static_cast<double>(job.iteration_bytes));
    job.gain = static_cast<double>(mltcp_gain(&seen, &job.settings)) / static_cast<double>(MLTCP_GAIN_ONE);
  });
  for (auto& [key, job] : jobs) status.jobs.push_back(std::move(job));
  return status;
}

Examination examine() {
  try {
    if (const std::vector<std::string> there = registered_algorithms(); !there.empty())
      return {true,
              fmt::format("{} loaded; new connections here get {} by default", joined(there),
                          one_line(default_algorithm())),
              ""};
    check_kernel();
    check_file_system();
    if (geteuid() == 0) check_rights();
    utsname name{};
    uname(&name);
    return {true,
            fmt::format("not loaded, but supported by Linux {}; to load it: sudo mltcp kernel load",
                        one_line(name.release)),
            ""};
  } catch (const RunError& error) {
    const std::string_view line = error.what();
    const std::size_t end = std::min(line.find("; "), line.size());
    const std::string_view cure = line.substr(std::min(end + 2, line.size()));
    return {false, std::string(line.substr(0, end)), cure.empty() ? "see docs/how-to/kernel.md" : std::string(cure)};
  }
}

}  // namespace mltcp::kernel
