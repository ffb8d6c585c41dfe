// Bare loops on the kernel's sockets (see kernel_loop.h). The system calls are described in udp(7) and tcp(7).
#include "kernel_loop.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace mltcp::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t kPort = 62300;
constexpr std::size_t kLongestMessage = 65507;
constexpr std::size_t kMaxSegments = 64;
constexpr int kBufferBytes = 8 << 20;
constexpr int kPatienceMs = 10'000;

class File {
 public:
  explicit File(int file) : file_(file) {
    if (file < 0) fail("a socket");
  }
  ~File() { close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
  }
  void set(int level, int option, int value) const {
    if (setsockopt(file_, level, option, &value, sizeof value) != 0) fail("setsockopt");
  }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

sockaddr_in name_of(const std::string& ip) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(kPort);
  if (inet_pton(AF_INET, ip.c_str(), &name.sin_addr) != 1) throw std::runtime_error(ip + " is no IPv4 address");
  return name;
}

void bind_to(const File& file, const std::string& ip) {
  const sockaddr_in name = name_of(ip);
  if (bind(file.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) File::fail("bind");
}

void connect_to(const File& file, const std::string& ip) {
  const sockaddr_in name = name_of(ip);
  if (connect(file.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) File::fail("connect");
}

void be_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void await(const File& file) {
  pollfd wanted{file.get(), POLLIN, 0};
  if (poll(&wanted, 1, kPatienceMs) != 1) throw std::runtime_error("nobody sends");
}

/// Calls `receive`, which returns a number of bytes, for the requested time. Prints the rate after the warm-up.
template <typename Receive>
void measure(const KernelLoop& loop, Receive receive) {
  const auto begin = Clock::now();
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  bool counts = false;
  auto from = begin;
  for (;;) {
    const double passed = since(begin);
    if (!counts && passed >= loop.warm_up) {
      counts = true;
      from = Clock::now();
      bytes = calls = 0;
    }
    if (passed >= loop.warm_up + loop.seconds) break;
    const std::size_t got = receive();
    bytes += got;
    calls += got != 0 ? 1U : 0U;
  }
  const double seconds = since(from);
  const auto size = static_cast<double>(loop.size);
  fmt::print("{{\"gbps\": {}, \"packets_per_second\": {}, \"bytes_a_call\": {}}}\n",
             static_cast<double>(bytes) * 8e-9 / seconds, static_cast<double>(bytes) / size / seconds,
             calls == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(calls));
}

void serve_segments(const KernelLoop& loop) {
  const File file(socket(AF_INET, SOCK_DGRAM, 0));
  file.set(IPPROTO_UDP, UDP_GRO, 1);
  file.set(SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  bind_to(file, loop.address);
  be_ready();
  await(file);
  std::vector<char> buffer(1 << 16);
  alignas(cmsghdr) std::array<char, 64> control{};
  measure(loop, [&] {
    iovec piece{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(file.get(), &message, MSG_DONTWAIT);
    return got > 0 ? static_cast<std::size_t>(got) : std::size_t{0};
  });
}

void run_segments(const KernelLoop& loop) {
  const File file(socket(AF_INET, SOCK_DGRAM, 0));
  file.set(SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  file.set(IPPROTO_UDP, UDP_SEGMENT, static_cast<int>(loop.size));
  file.set(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  bind_to(file, loop.address);
  connect_to(file, loop.peer);
  const std::size_t bytes = std::min(kLongestMessage / loop.size, kMaxSegments) * loop.size;
  // Send from many addresses in memory, because port_bench also sends from many buffers.
  std::vector<char> data(4 << 20);
  std::size_t at = 0;
  const auto begin = Clock::now();
  while (since(begin) < loop.warm_up + loop.seconds + 0.3) {
    if (at + bytes > data.size()) at = 0;
    if (send(file.get(), data.data() + at, bytes, 0) < 0 && errno != ECONNREFUSED && errno != EAGAIN &&
        errno != ENOBUFS)
      File::fail("send");
    at += bytes;
  }
}

void serve_stream(const KernelLoop& loop) {
  const File listening(socket(AF_INET, SOCK_STREAM, 0));
  listening.set(SOL_SOCKET, SO_REUSEADDR, 1);
  bind_to(listening, loop.address);
  if (listen(listening.get(), 1) != 0) File::fail("listen");
  be_ready();
  await(listening);
  const File file(accept(listening.get(), nullptr, nullptr));
  std::vector<char> buffer(loop.size);
  measure(loop, [&] {
    const ssize_t got = recv(file.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? static_cast<std::size_t>(got) : std::size_t{0};
  });
}

void run_stream(const KernelLoop& loop) {
  const File file(socket(AF_INET, SOCK_STREAM, 0));
  connect_to(file, loop.peer);
  const std::vector<char> data(loop.size);
  const auto begin = Clock::now();
  while (since(begin) < loop.warm_up + loop.seconds + 0.3)
    if (send(file.get(), data.data(), data.size(), MSG_NOSIGNAL) < 0) break;  // the receiver has closed the connection
}

void serve_echo(const KernelLoop& loop) {
  const File file(socket(AF_INET, SOCK_DGRAM, 0));
  bind_to(file, loop.address);
  be_ready();
  await(file);
  std::vector<char> buffer(loop.size);
  const auto begin = Clock::now();
  const timeval patience{1, 0};
  setsockopt(file.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  while (since(begin) < loop.warm_up + loop.seconds + 0.3) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(file.get(), buffer.data(), buffer.size(), loop.spins ? MSG_DONTWAIT : 0,
                                 reinterpret_cast<sockaddr*>(&from), &size);
    if (got >= 0)
      sendto(file.get(), buffer.data(), static_cast<std::size_t>(got), 0, reinterpret_cast<const sockaddr*>(&from),
             size);
  }
  std::puts("{}");
}

void run_echo(const KernelLoop& loop) {
  const File file(socket(AF_INET, SOCK_DGRAM, 0));
  bind_to(file, loop.address);
  connect_to(file, loop.peer);
  const timeval patience{0, 200'000};
  setsockopt(file.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::vector<char> buffer(loop.size);
  std::vector<std::uint32_t> trips;
  trips.reserve(1 << 22);
  const auto begin = Clock::now();
  for (double passed = 0; (passed = since(begin)) < loop.warm_up + loop.seconds;) {
    const auto sent = Clock::now();
    if (send(file.get(), buffer.data(), buffer.size(), 0) < 0) continue;
    ssize_t got = -1;
    do {
      got = recv(file.get(), buffer.data(), buffer.size(), loop.spins ? MSG_DONTWAIT : 0);
    } while (loop.spins && got < 0 && since(sent) < 0.2);
    if (got < 0 || passed < loop.warm_up || trips.size() == trips.capacity()) continue;
    trips.push_back(static_cast<std::uint32_t>(since(sent) * 1e9));
  }
  if (trips.empty()) throw std::runtime_error("nobody answers");
  std::sort(trips.begin(), trips.end());
  const auto rank = [&](double share) {
    return trips[static_cast<std::size_t>(share * static_cast<double>(trips.size() - 1))] * 1e-3;
  };
  fmt::print("{{\"p50_us\": {}, \"p99_us\": {}, \"p999_us\": {}}}\n", rank(0.5), rank(0.99), rank(0.999));
}

}  // namespace

void serve_kernel_loop(const KernelLoop& loop) {
  switch (loop.what) {
    case KernelLoop::What::segments:
      return serve_segments(loop);
    case KernelLoop::What::stream:
      return serve_stream(loop);
    case KernelLoop::What::echo:
      return serve_echo(loop);
  }
}

void run_kernel_loop(const KernelLoop& loop) {
  switch (loop.what) {
    case KernelLoop::What::segments:
      return run_segments(loop);
    case KernelLoop::What::stream:
      return run_stream(loop);
    case KernelLoop::What::echo:
      return run_echo(loop);
  }
}

}  // namespace mltcp::bench
