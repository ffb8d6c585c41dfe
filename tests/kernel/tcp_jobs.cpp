// Jobs over the kernel's TCP, for the tests in a guest: each computes (sleeps), sends its bytes over one connection,
// and waits until the peer has them all, as a training job does. Or it only sends, to measure shares.
//
//   tcp_jobs serve PORT
//   tcp_jobs run ADDRESS PORT CC SECONDS JOB...     JOB: MARK:COMPUTE_MS:BYTES:START_MS, BYTES 0: sends all the time
//
// Prints a line a job: "job MARK: " and the length of each iteration in ms; or, of one that only sends, the bytes that
// were acknowledged in the second half of the time. MARK 0 sets no mark. Any failure ends it with a line and status 1.
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tcp_jobs: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

sockaddr_in address_of(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
  return address;
}

void read_all(int fd, void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = read(fd, at, bytes);
    if (got <= 0) fail("read");
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

// Answers each `size` bytes by one; the connection begins with that number.
void receive(int fd) {
  std::uint64_t size = 0;
  read_all(fd, &size, sizeof(size));
  std::vector<char> buffer(std::size_t{1} << 16);
  std::uint64_t left = size;
  for (;;) {
    const std::size_t wanted = size == 0 ? buffer.size() : std::min<std::uint64_t>(buffer.size(), left);
    const ssize_t got = read(fd, buffer.data(), wanted);
    if (got <= 0) break;
    if (size == 0) continue;
    left -= static_cast<std::uint64_t>(got);
    if (left > 0) continue;
    left = size;
    if (write(fd, "", 1) != 1) break;
  }
  close(fd);
}

int serve(const char* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = address_of("0.0.0.0", port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 64) != 0)
    fail("listen");
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) fail("accept");
    std::thread(receive, fd).detach();
  }
}

struct Job {
  unsigned mark = 0;
  unsigned compute_ms = 0;
  unsigned long bytes = 0;
  unsigned start_ms = 0;
  std::vector<double> iterations_ms;
  std::uint64_t second_half = 0;
};

std::uint64_t acknowledged(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) fail("TCP_INFO");
  return info.tcpi_bytes_acked;
}

void run_job(Job& job, const sockaddr_in& address, const char* algorithm, Clock::time_point start,
             Clock::time_point end) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, static_cast<socklen_t>(std::strlen(algorithm))) != 0)
    fail(algorithm);
  if (job.mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &job.mark, sizeof(job.mark)) != 0) fail("SO_MARK");
  // A writer that is not a whole send buffer ahead: what is in flight is what the window lets out.
  const int buffer = 1 << 18;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fail("connect");
  const std::uint64_t size = job.bytes;
  if (write(fd, &size, sizeof(size)) != sizeof(size)) fail("write");
  const std::vector<char> data(std::size_t{1} << 15, 'x');
  std::this_thread::sleep_until(start + milliseconds(job.start_ms));
  if (job.bytes == 0) {
    const Clock::time_point half = Clock::now() + (end - Clock::now()) / 2;
    std::uint64_t before = 0;
    bool past_half = false;
    while (Clock::now() < end) {
      if (write(fd, data.data(), data.size()) < 0) fail("write");
      if (!past_half && Clock::now() >= half) {
        past_half = true;
        before = acknowledged(fd);
      }
    }
    job.second_half = acknowledged(fd) - before;
    const linger reset{1, 0};  // what is queued is not to be sent any more
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    return;
  }
  for (Clock::time_point begin = Clock::now(); begin < end;) {
    std::this_thread::sleep_for(milliseconds(job.compute_ms));
    for (std::size_t left = job.bytes; left > 0;) {
      const ssize_t sent = write(fd, data.data(), std::min(left, data.size()));
      if (sent < 0) fail("write");
      left -= static_cast<std::size_t>(sent);
    }
    char answer = 0;
    read_all(fd, &answer, 1);
    const Clock::time_point now = Clock::now();
    job.iterations_ms.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
    begin = now;
  }
  close(fd);
}

int run(int argc, char** argv) {
  const sockaddr_in address = address_of(argv[2], argv[3]);
  const Clock::time_point start = Clock::now() + milliseconds(100);
  const Clock::time_point end = start + milliseconds(static_cast<long>(std::atof(argv[5]) * 1000));
  std::vector<Job> jobs;
  for (int i = 6; i < argc; ++i) {
    Job job;
    if (std::sscanf(argv[i], "%u:%u:%lu:%u", &job.mark, &job.compute_ms, &job.bytes, &job.start_ms) != 4) fail(argv[i]);
    jobs.push_back(job);
  }
  std::vector<std::thread> threads;
  for (Job& job : jobs) threads.emplace_back(run_job, std::ref(job), std::cref(address), argv[4], start, end);
  for (std::thread& thread : threads) thread.join();
  for (const Job& job : jobs) {
    std::printf("job %u:", job.mark);
    if (job.bytes == 0) std::printf(" %llu", static_cast<unsigned long long>(job.second_half));
    for (const double iteration : job.iterations_ms) std::printf(" %.1f", iteration);
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "serve" && argc == 3) return serve(argv[2]);
  if (action == "run" && argc >= 7) return run(argc, argv);
  std::fprintf(stderr, "tcp_jobs serve PORT | run ADDRESS PORT CC SECONDS MARK:COMPUTE_MS:BYTES:START_MS...\n");
  return 2;
}
