// What experiments across hosts find on this machine (see experiment_doctor.h): by making namespaces with a pair of
// interfaces, and by loading MPI's module, each in a child process that takes it all with it.
#include "experiment_doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "load_mpi_module.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/testbed/sandbox.h"

namespace mltcp::tools {
namespace {

using dpdk::Check;
using dpdk::CheckStatus;

bool works(std::span<const Check> machine, std::string_view name) {
  return std::any_of(machine.begin(), machine.end(),
                     [&](const Check& check) { return check.name == name && check.status != CheckStatus::missing; });
}

/// Makes a PID namespace, a network namespace and a pair of interfaces in it. The result begins with 'o': they could be
/// made, 'p' or 'n': no namespace of that kind, with errno behind it, 'v': no pair, with ip's words behind it, or 'x':
/// it could not be tried.
std::string try_namespaces() {
  return dpdk::in_child('x', [] {
    testbed::add_administrators_path();
    if (unshare(CLONE_NEWPID) != 0) return fmt::format("p{}", errno);
    if (unshare(CLONE_NEWNET) != 0) return fmt::format("n{}", errno);
    try {
      testbed::run_program({"ip", "-batch", "-"}, "link add name v0 type veth peer name v1\n");
    } catch (const std::exception& error) {
      return fmt::format("v{}", error.what());
    }
    return std::string("o");
  });
}

std::string cure_of(char kind, int error) {
  const char* const config = kind == 'p' ? "CONFIG_PID_NS" : "CONFIG_NET_NS";
  if (error == EINVAL) return fmt::format("use a kernel with {}=y", config);
  if (error == ENOSPC)
    return fmt::format("raise the limit: sysctl user.max_{}_namespaces=1000", kind == 'p' ? "pid" : "net");
  return "run it outside of this container, or give that CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)";
}

Check check_testbed(std::span<const Check> machine) {
  const std::string name = "mltcp testbed";
  std::vector<std::string> lacking;
  for (const char* const program : {"ip", "nsenter"})
    if (testbed::find_program(program).empty()) lacking.emplace_back(program);
  if (!lacking.empty())
    return dpdk::missing(name, fmt::format("not installed: {}", fmt::join(lacking, ", ")),
                         "install iproute2 (ip) and util-linux (nsenter)");
  if (geteuid() != 0)
    return dpdk::missing(name, "not root, which makes the hosts' network namespaces", "run it with sudo");
  const std::string result = try_namespaces();
  if (const char kind = result[0]; kind == 'p' || kind == 'n') {
    const int error = std::atoi(result.c_str() + 1);  // NOLINT(cert-err34-c): it is of this file
    return dpdk::missing(name,
                         fmt::format("root, but the kernel makes no {} namespace ({})", kind == 'p' ? "PID" : "network",
                                     std::strerror(error)),
                         cure_of(kind, error));
  }
  if (result[0] == 'v')
    return dpdk::missing(name, fmt::format("namespaces, but no pair of interfaces: {}", one_line(result.substr(1))),
                         result.find("not permitted") != std::string::npos ? cure_of('n', EPERM)
                                                                           : "load the kernel's module: modprobe veth");
  if (result[0] != 'o')
    return dpdk::missing(name, fmt::format("namespaces could not be tried: {}", one_line(result.substr(1))),
                         "run it again when the machine has less to do");
  const std::string detail = "root, ip, nsenter, PID and network namespaces, pairs of interfaces (veth)";
  if (works(machine, "AF_XDP")) return dpdk::ok(name, detail);
  if (works(machine, "AF_PACKET"))
    return dpdk::warn(name, detail + ", but no AF_XDP", "give it --device af_packet, or see AF_XDP above");
  return dpdk::missing(name, detail + ", but neither AF_XDP nor AF_PACKET", "see these two above");
}

Check check_gen(std::span<const Check> machine, std::span<const Check> ports) {
  const std::string name = "mltcp gen";
  std::vector<std::string> kinds;
  if (works(machine, "AF_XDP")) kinds.emplace_back("af_xdp");
  if (works(machine, "AF_PACKET")) kinds.emplace_back("af_packet");
  const auto usable = std::count_if(ports.begin(), ports.end(), [](const Check& check) { return check.is_port; });
  const bool of_kernel =
      std::any_of(ports.begin(), ports.end(), [](const Check& check) { return check.is_port && check.is_interface; });
  if (kinds.empty() && (usable == 0 || of_kernel))
    return dpdk::missing(name, "a host's port can be neither af_xdp nor af_packet here",
                         "see AF_XDP and AF_PACKET above, or use a NIC that DPDK drives; a coordinator needs no port");
  if (usable == 0)
    return dpdk::missing(
        name, fmt::format("a host's port could be {}, but there is no interface here for it", fmt::join(kinds, " or ")),
        "see the interfaces below, and bring one up; or make hosts of this machine, by mltcp testbed; a "
        "coordinator needs no port");
  return dpdk::ok(name, of_kernel ? fmt::format("a host's port can be {}, on an interface that is ready below",
                                                fmt::join(kinds, " or "))
                                  : std::string("a host's port can be a NIC below"));
}

Check check_mpi() {
  const std::string name = "mltcp gen --mpi";
  const std::string result = dpdk::in_child('e', [] {
    std::string why;
    return load_mpi_module(why) != nullptr ? std::string("o") : "e" + why;
  });
  if (result[0] != 'o')
    return dpdk::missing(name, fmt::format("the module for MPI can't be loaded ({})", one_line(result.substr(1))),
                         "install an MPI (Debian: libopenmpi-dev, openmpi-bin) and build again; mltcp gen --join needs "
                         "none");
  for (const char* const launcher : {"mpirun", "srun"})
    if (const std::string path = testbed::find_program(launcher); !path.empty())
      return dpdk::ok(name, fmt::format("the module for MPI can be loaded, {} starts it", path));
  return dpdk::missing(name, "the module for MPI can be loaded, but neither mpirun nor srun is in the path",
                       "install what starts MPI (Debian: openmpi-bin)");
}

}  // namespace

std::vector<Check> examine_experiments(std::span<const Check> machine, std::span<const Check> ports) {
  return {check_testbed(machine), check_gen(machine, ports), check_mpi()};
}

}  // namespace mltcp::tools
