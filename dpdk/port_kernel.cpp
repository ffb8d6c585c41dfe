// Ports on interfaces of the kernel; see port_kernel.h.
#include "mltcp/dpdk/port_kernel.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "mltcp/base/error.h"

namespace mltcp::dpdk {

KernelPortKind::KernelPortKind(PortName name, const PortConfig& config, Sockets sockets)
    : PortKind(std::move(name), config),
      kind_(std::move(sockets)),
      device_(fmt::format("net_{}_{}", to_text(this->name().kind), this->name().target)) {}

void KernelPortKind::find_interface() { interface_ = std::make_unique<NetInterface>(name().target); }

void KernelPortKind::look() {
  const std::string& target = name().target;
  find_interface();
  if (!interface_->is_ethernet()) {
    throw InputError(fmt::format("port {}: {} is no Ethernet interface; use one, or make a pair: ip link add {}",
                                 quoted(), target, "mltcp0 type veth peer name mltcp1"));
  }
  if (!interface_->is_up()) {
    throw RunError(
        fmt::format("port {}: interface {} is down; bring it up: ip link set dev {} up", quoted(), target, target));
  }
  check_socket();
}

/// Opens a socket like the driver's, to find the reason if the driver cannot open one.
void KernelPortKind::check_socket() const {
  const int socket = ::socket(kind_.family, SOCK_RAW | SOCK_CLOEXEC, 0);
  const int error = errno;
  if (socket >= 0) {
    close(socket);
    return;
  }
  if (error == EPERM || error == EACCES) {
    throw RunError(fmt::format("port \"{}:{}\": no permission to open {} sockets; run it as root, or give it {}",
                               to_text(name().kind), name().target, kind_.what, kind_.permission));
  }
  throw RunError(fmt::format("port \"{}:{}\": the kernel has no {} sockets ({}); {}", to_text(name().kind),
                             name().target, kind_.what, std::strerror(error), kind_.cure));
}

std::string KernelPortKind::identity() const {
  struct stat place {};
  if (stat("/proc/thread-self/ns/net", &place) != 0) place = {};
  return fmt::format("interface {} of {}", if_nametoindex(name().target.c_str()), place.st_ino);
}

/// Refuses a second process, because two processes on one interface could not reach each other: the interface does not
/// loop back sent packets.
void KernelPortKind::claim() {
  claim_ = std::make_unique<InterfaceClaim>(name().target);
  if (claim_->is_ours()) return;
  throw RunError(fmt::format("port {}: {} uses {} already; end it, or use another interface", quoted(),
                             claim_->holder_text(), name().target));
}

void KernelPortKind::adapt(PortPlan& /*plan*/) {
  if (config().buffer_bytes != 0) {
    throw InputError(fmt::format("port {}: {} can't scatter frames over short buffers; leave their length out",
                                 quoted(), to_text(name().kind)));
  }
}

int KernelPortKind::numa_node() const {
  std::ifstream file("/sys/class/net/" + name().target + "/device/numa_node");
  int node = -1;
  file >> node;
  return file ? node : -1;
}

std::string KernelPortKind::driver_wanted() { return fmt::format("net_{}", to_text(name().kind)); }

std::string KernelPortKind::why_not_plugged(int /*error*/, const PortLog& log) {
  if (!log.has("PACKET_FANOUT")) return {};
  // The driver derives the fanout group's number from process and interface, and has no option for the number.
  return fmt::format(
      "port {}: the kernel does not group its packet sockets{}; by chance, a process on another interface may use the "
      "same group number: start this program again",
      quoted(), log.words());
}

void KernelPortKind::before_try() { others_ = all_sockets(); }

/// Returns the driver's sockets in the order of the queues. The order is known, because drivers open one socket per
/// queue in order, and the kernel assigns the lowest free descriptors.
std::vector<int> KernelPortKind::receive_files() const { return new_sockets(); }

std::vector<int> KernelPortKind::new_sockets() const {
  const auto all = all_sockets();
  std::vector<int> made;
  std::set_difference(all.begin(), all.end(), others_.begin(), others_.end(), std::back_inserter(made));
  return made;
}

std::vector<int> KernelPortKind::all_sockets() const {
  std::vector<int> sockets;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int file = std::atoi(entry.path().filename().c_str());
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == kind_.family) sockets.push_back(file);
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

}  // namespace mltcp::dpdk
