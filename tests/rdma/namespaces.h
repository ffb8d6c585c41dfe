// Test helper: two network namespaces connected by a pair of interfaces. The kernel removes the namespaces when their
// processes end.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

namespace mltcp::rdma::namespaces {

inline bool runs(const std::string& commands) {
  return std::system(("(" + commands + ") >/dev/null 2>&1").c_str()) == 0;
}

/// Runs `part` in a network namespace with interface v0, 10.9.0.1 and fd09::1. Runs `far_part` in a second namespace
/// with interface v1, 10.9.0.2 and fd09::2, and kills its process at the end. Returns an empty string on success, an
/// error message, or "skip: ..." if the namespaces cannot be created.
inline std::string between_namespaces(const std::function<std::string()>& part,
                                      const std::function<void()>& far_part = nullptr) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string verdict =
        "skip: no network namespaces with a pair of interfaces can be made; run as root, with iproute2 and ethtool";
    std::array<int, 2> ready{};
    std::array<int, 2> go{};
    if (pipe(ready.data()) == 0 && pipe(go.data()) == 0 && unshare(CLONE_NEWNET) == 0) {
      const pid_t parent = getpid();
      const pid_t far = fork();
      if (far == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char one = 0;
        if (getppid() == parent && unshare(CLONE_NEWNET) == 0 && write(ready[1], "r", 1) == 1 &&
            read(go[0], &one, 1) == 1 && far_part)
          far_part();
        pause();
        _exit(0);
      }
      close(ready[1]);
      char one = 0;
      const std::string setup = fmt::format(
          "ip link set lo up && ip link add v0 address 02:00:00:00:00:01 mtu 1400 type veth peer name v1 address "
          "02:00:00:00:00:02 netns {0} && ip addr add 10.9.0.1/24 dev v0 && ip addr add fd09::1/64 dev v0 nodad && "
          "ip link set v0 up && nsenter -t {0} -n ip addr add 10.9.0.2/24 dev v1 && nsenter -t {0} -n ip addr add "
          "fd09::2/64 dev v1 nodad && nsenter -t {0} -n ip link set v1 up && ip route add 10.8.0.0/16 via 10.9.0.2{1}",
          far, far_part ? fmt::format(" && nsenter -t {0} -n ethtool -K v1 tx off gso off", far) : "");
      try {
        if (read(ready[0], &one, 1) == 1 && runs(setup) && write(go[1], "g", 1) == 1) verdict = part();
      } catch (const std::exception& error) {
        verdict = error.what();
      }
      kill(far, SIGKILL);
      waitpid(far, nullptr, 0);
    }
    [[maybe_unused]] const auto written = write(ends[1], verdict.data(), verdict.size());
    _exit(0);
  }
  close(ends[1]);
  std::string verdict;
  std::array<char, 4096> text{};
  for (ssize_t got = 0; (got = read(ends[0], text.data(), text.size())) > 0;)
    verdict.append(text.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return verdict;
}

}  // namespace mltcp::rdma::namespaces
