// Checks for experiments across hosts (see experiment_doctor.h). Creates namespaces with a pair of interfaces, and
// loads MPI's module, each in a child process. The end of the child removes them.
#include "experiment_doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>

#include "load_mpi_module.h"
#include "machine_doctor.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/lab/testbed/sandbox.h"

namespace mltcp::tools {
namespace {

using dpdk::Check;
using dpdk::CheckStatus;

bool works(std::span<const Check> machine, std::string_view name) {
  return std::ranges::any_of(
      machine, [&](const Check& check) { return check.name == name && check.status != CheckStatus::missing; });
}

/// Returns 0 if this process can change interfaces of its network namespace, or errno. The change needs CAP_NET_ADMIN
/// in the user namespace that owns the network namespace. A container may lack it, even if it can create namespaces.
int try_interface() {
  const int file = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return errno;
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");  // NOLINT(clang-analyzer-security.insecureAPI.strcpy)
  request.ifr_flags = IFF_UP;
  const int error = ioctl(file, SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
  close(file);
  return error;
}

/// The result of creating namespaces and a pair of interfaces. The child process returns it as one line: a letter for
/// the kind, a number, and text.
struct Trial {
  enum Kind : char {
    made = 'o',
    no_user = 'u',               ///< the text is "cause; cure"
    no_pid_namespace = 'p',      ///< the number is errno
    no_network_namespace = 'n',  ///< the number is errno
    no_pair = 'v',               ///< the number is the errno of try_interface(), and the text is the output of ip(8)
    not_tried = 'x',             ///< the text is the reason
  };
  Kind kind = not_tried;
  int error = 0;
  std::string text;

  [[nodiscard]] std::string line() const { return fmt::format("{}{} {}", static_cast<char>(kind), error, text); }
  static Trial from(const std::string& line) {
    Trial trial;
    if (line.empty()) return trial;
    trial.kind = static_cast<Kind>(line[0]);
    const char* const end = line.data() + line.size();
    const auto [at, problem] = std::from_chars(line.data() + 1, end, trial.error);
    // The reason that in_child() returns is not preceded by a number.
    const char* const text = problem == std::errc() && at != end ? at + 1 : line.data() + 1;
    trial.text.assign(text, end);
    return trial;
  }
};

/// Creates a PID namespace, a network namespace, and a pair of interfaces in the latter.
Trial try_namespaces() {
  return Trial::from(dpdk::in_child(Trial::not_tried, [] {
    testbed::add_administrators_path();
    if (const std::string why = testbed::become_root_of_own(); !why.empty())
      return Trial{Trial::no_user, 0, why}.line();
    if (unshare(CLONE_NEWPID) != 0) return Trial{Trial::no_pid_namespace, errno, ""}.line();
    if (unshare(CLONE_NEWNET) != 0) return Trial{Trial::no_network_namespace, errno, ""}.line();
    try {
      testbed::run_program({"ip", "-batch", "-"}, "link add name v0 type veth peer name v1\n");
    } catch (const std::exception& error) {
      return Trial{Trial::no_pair, try_interface(), error.what()}.line();
    }
    return Trial{Trial::made, 0, ""}.line();
  }));
}

std::string cure_of(Trial::Kind kind, int error) {
  const char* const config = kind == Trial::no_pid_namespace ? "CONFIG_PID_NS" : "CONFIG_NET_NS";
  if (error == EINVAL) return fmt::format("use a kernel with {}=y", config);
  if (error == ENOSPC)
    return fmt::format("raise the limit: sysctl user.max_{}_namespaces=1000",
                       kind == Trial::no_pid_namespace ? "pid" : "net");
  return "run mltcp outside of this container, or give the container CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run "
         "--privileged)";
}

Check check_testbed(std::span<const Check> machine) {
  const std::string name = "mltcp testbed";
  std::vector<std::string> lacking;
  for (const char* const program : {"ip", "nsenter"})
    if (testbed::find_program(program).empty()) lacking.emplace_back(program);
  if (!lacking.empty())
    return dpdk::missing(name, fmt::format("not installed: {}", fmt::join(lacking, ", ")),
                         "install iproute2 (ip) and util-linux (nsenter)");
  const bool is_root = geteuid() == 0;
  const std::string who = is_root ? "root" : "not root";
  const Trial trial = try_namespaces();
  if (trial.kind == Trial::no_user) {
    const std::size_t end = trial.text.find("; ");
    return dpdk::missing(name, fmt::format("not root, and {}", trial.text.substr(0, end)), trial.text.substr(end + 2));
  }
  if (trial.kind == Trial::no_pid_namespace || trial.kind == Trial::no_network_namespace)
    return dpdk::missing(
        name,
        fmt::format("{}, but the kernel cannot create a {} namespace ({})", who,
                    trial.kind == Trial::no_pid_namespace ? "PID" : "network", std::strerror(trial.error)),
        cure_of(trial.kind, trial.error));
  if (trial.kind == Trial::no_pair)
    return dpdk::missing(
        name, fmt::format("namespaces work, but a pair of interfaces cannot be created: {}", one_line(trial.text)),
        trial.error == EPERM ? cure_of(Trial::no_network_namespace, EPERM) : "load the kernel module: modprobe veth");
  if (trial.kind != Trial::made)
    return dpdk::missing(name, fmt::format("the check of namespaces failed: {}", one_line(trial.text)),
                         "run mltcp doctor again when the machine is less busy");
  const std::string detail = fmt::format("{}, ip, nsenter, {}PID and network namespaces, pairs of interfaces (veth)",
                                         who, is_root ? "" : "user, ");
  if (!is_root) return dpdk::ok(name, detail + "; --device af_packet or udp");
  if (works(machine, "AF_XDP")) return dpdk::ok(name, detail);
  if (works(machine, "AF_PACKET"))
    return dpdk::warn(name, detail + ", but AF_XDP does not work", "give --device af_packet, or see AF_XDP above");
  return dpdk::missing(name, detail + ", but neither AF_XDP nor AF_PACKET works works works works works works",
                       "see AF_XDP and AF_PACKET above");
}

Check check_gen(std::span<const Check> machine, std::span<const Check> ports) {
  const std::string name = "mltcp gen";
  std::vector<std::string> kinds;
  if (works(machine, "AF_XDP")) kinds.emplace_back("af_xdp");
  if (works(machine, "AF_PACKET")) kinds.emplace_back("af_packet");
  const auto usable = std::ranges::count_if(ports, [](const Check& check) { return check.is_port; });
  const bool of_kernel =
      std::ranges::any_of(ports, [](const Check& check) { return check.is_port && check.is_interface; });
  std::string faster;
  if (usable > 0)
    faster = !of_kernel      ? "a NIC below"
             : kinds.empty() ? ""
                             : fmt::format("{}, on an interface that is ready below", fmt::join(kinds, " or "));
  if (works(machine, kUdpCheck))
    return dpdk::ok(
        name, faster.empty() ? "a host's port can be udp:, with an address of this machine"
                             : fmt::format("a host's port can be {}, or udp: with an address of this machine", faster));
  if (faster.empty())
    return dpdk::missing(name, "a host's port can be neither udp nor af_xdp nor af_packet here",
                         "see UDP sockets, AF_XDP and AF_PACKET above and the interfaces below, or create hosts on "
                         "this machine with mltcp testbed; a coordinator needs no port");
  return dpdk::ok(name, "a host's port can be " + faster);
}

Check check_mpi() {
  const std::string name = "mltcp gen --mpi";
  const std::string result = dpdk::in_child('e', [] {
    std::string why;
    return load_mpi_module(why) != nullptr ? std::string("o") : "e" + why;
  });
  if (result[0] != 'o')
    return dpdk::missing(
        name, fmt::format("the MPI module cannot be loaded ({})", one_line(result.substr(1))),
        "install MPI (Debian: libopenmpi-dev, openmpi-bin) and build again; mltcp gen --join does not need MPI");
  for (const char* const launcher : {"mpirun", "srun"})
    if (const std::string path = testbed::find_program(launcher); !path.empty())
      return dpdk::ok(name, fmt::format("the MPI module can be loaded, {} starts it", path));
  return dpdk::missing(name, "the MPI module can be loaded, but neither mpirun nor srun is in PATH",
                       "install an MPI launcher (Debian: openmpi-bin)");
}

}  // namespace

std::vector<Check> examine_experiments(std::span<const Check> machine, std::span<const Check> ports) {
  return {check_testbed(machine), check_gen(machine, ports), check_mpi()};
}

}  // namespace mltcp::tools
