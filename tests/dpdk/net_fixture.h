// Hosts for tests of ports. Each host is a process in its own network namespace, which is removed with the process. A
// veth pair connects two hosts. DPDK starts once in a process, so the process of the test itself never starts it.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include "mltcp/base/clock.h"
#include "mltcp/dpdk/eal.h"

namespace mltcp::dpdk {

inline bool run_command(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// One end of a socket pair between two processes of a test. The processes send each other single bytes as signals.
class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  void tell(char byte) const { [[maybe_unused]] const auto sent = ::send(file_, &byte, 1, MSG_NOSIGNAL); }
  /// Waits up to 10 seconds for the next byte. Returns whether it is `byte`.
  [[nodiscard]] bool receives(char byte) const {
    pollfd ready{file_, POLLIN, 0};
    char got = 0;
    return ::poll(&ready, 1, 10'000) == 1 && ::recv(file_, &got, 1, 0) == 1 && got == byte;
  }
  /// Returns whether an unread byte has arrived.
  [[nodiscard]] bool is_called() const {
    pollfd ready{file_, POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
  }

 private:
  int file_;
};

/// A process that runs one part of a test.
class Host {
 public:
  /// `part` returns a description of what failed, an empty text if nothing failed, or "skip: ..." if the test is
  /// impossible here. The text of an exception counts as a description.
  using Part = std::function<std::string(const Channel& other)>;

  Host(const Part& part, int own_end, int other_end) {
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) return;
    result_ = pipe_ends[0];
    process_ = fork();
    if (process_ != 0) {
      close(pipe_ends[1]);
      return;
    }
    close(pipe_ends[0]);
    close(other_end);
    std::string verdict;
    try {
      verdict = part(Channel(own_end));
    } catch (const std::exception& error) {
      verdict = error.what();
    }
    [[maybe_unused]] const auto written = write(pipe_ends[1], verdict.data(), verdict.size());
    _exit(0);
  }
  ~Host() { finish(0); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }

  /// Returns the result of the part, or an error if the part does not end within `millis` milliseconds.
  std::string finish(int millis = 20'000) {
    if (process_ <= 0) return verdict_;
    verdict_ = "it took too long";
    pollfd ready{result_, POLLIN, 0};
    std::array<char, 4096> text{};
    if (poll(&ready, 1, millis) == 1) {
      const auto size = read(result_, text.data(), text.size());
      verdict_.assign(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    } else {
      kill(process_, SIGKILL);
    }
    int status = 0;
    waitpid(process_, &status, 0);
    if (WIFSIGNALED(status) && verdict_.empty()) verdict_ = fmt::format("signal {}", WTERMSIG(status));
    close(result_);
    process_ = 0;
    return verdict_;
  }

 private:
  pid_t process_ = -1;
  int result_ = -1;
  std::string verdict_ = "no process could be started";
};

/// Results of two parts. Each part runs in its own network namespace with one end of a veth pair, "ve0" on the left and
/// "ve1" on the right.
struct Pair {
  std::string left;
  std::string right;
  [[nodiscard]] bool skipped() const { return left.rfind("skip: ", 0) == 0 || right.rfind("skip: ", 0) == 0; }
};

inline Pair play(const Host::Part& left, const Host::Part& right, int mtu = 1500) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return {"no sockets", ""};
  Host other(
      [&](const Channel& channel) {
        if (unshare(CLONE_NEWNET) != 0) {
          channel.tell('n');
          return std::string("skip: no network namespace can be made; run as root");
        }
        channel.tell('u');
        if (!channel.receives('v')) return std::string("skip: no veth pair can be made");
        return right(channel);
      },
      ends[1], ends[0]);
  const pid_t there = other.process();
  Host one(
      [&](const Channel& channel) {
        if (!channel.receives('u') || unshare(CLONE_NEWNET) != 0 ||
            !run_command(fmt::format("ip link add ve0 mtu {0} type veth peer name ve1 mtu {0} netns {1} && "
                                     "ip link set ve0 up && nsenter -t {1} -n ip link set ve1 up",
                                     mtu, there))) {
          channel.tell('n');
          return std::string("skip: no veth pair can be made; run as root, with iproute2");
        }
        channel.tell('v');
        return left(channel);
      },
      ends[0], ends[1]);
  close(ends[0]);
  close(ends[1]);
  Pair result;
  result.left = one.finish();
  result.right = other.finish();
  return result;
}

inline EalOptions small_eal(std::uint32_t memory_mb = 64, const std::string& cores = "") {
  EalOptions options;
  options.cores = cores;
  options.memory_mb = memory_mb;
  options.huge_pages = EalOptions::HugePages::never;
  return options;
}

}  // namespace mltcp::dpdk
