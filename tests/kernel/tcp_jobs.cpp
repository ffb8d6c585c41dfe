// Runs jobs over the kernel's TCP, for tests in a guest. As a training job does, each job computes (sleeps), sends its
// bytes over one connection, and waits until the peer has received all of them. To measure shares, a job can also send
// all the time.
//
//   tcp_jobs run NAMESPACE ADDRESS CC SECONDS JOB...  runs jobs; JOB is MARK:COMPUTE_MS:BYTES:START_MS. BYTES 0 lets a
//                                                     job send all the time. MARK 0 sets no mark.
//   tcp_jobs many NAMESPACE ADDRESS CC FIRST COUNT    opens COUNT connections with marks from FIRST on, and sends a
//                                                     byte on each
//   tcp_jobs settings FIRST COUNT                     copies the settings of an existing job to COUNT jobs from FIRST
//                                                     on, like COUNT calls of mltcp kernel set --job. A negative COUNT
//                                                     removes the settings of -COUNT jobs.
//
// CC is the congestion control of the jobs, for example "mltcp_dctcp". The peer uses the kernel's algorithm with the
// same name, but without "mltcp_". CC/CC sets the congestion control of the jobs and of the peer. DCTCP uses ECN only
// if both sides use DCTCP.
//
// The peer has the address ADDRESS. It consists of threads of this process, with a socket in the network namespace
// NAMESPACE (of `ip netns`). Threads avoid switches to another address space, and data is not copied. In a guest with
// an interpreted processor, a switch to another address space would take as long as many packets.
//
// `run` prints a line per job: "job MARK: " and the length of each iteration in ms, or, for a job that sends all the
// time, the bytes that were acknowledged in the second half of the time. If the kernel uses another congestion control
// than requested for a connection, a first line names this connection. `many` opens all connections, reports this, and
// closes them when its standard input ends. Any failure ends the program with a line of text and exit status 1.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/plugins/kernel/iterations.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tcp_jobs: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void read_all(int fd, void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = read(fd, at, bytes);
    if (got <= 0) fail("read");
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

// Sends one byte each time `size` bytes have arrived. The client sends `size` as the first number on the connection.
void receive(int fd) {
  std::uint64_t size = 0;
  read_all(fd, &size, sizeof(size));
  constexpr std::size_t max = std::size_t{1} << 16;
  std::uint64_t left = size;
  for (;;) {
    const std::size_t wanted = size == 0 ? max : std::min<std::uint64_t>(max, left);
    const ssize_t got = recv(fd, nullptr, wanted, MSG_TRUNC);  // the kernel drops the received data
    if (got <= 0) break;
    if (size == 0) continue;
    left -= static_cast<std::uint64_t>(got);
    if (left > 0) continue;
    left = size;
    if (write(fd, "", 1) != 1) break;
  }
  close(fd);
}

void choose(int fd, const std::string& algorithm) {
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm.c_str(), static_cast<socklen_t>(algorithm.size())) != 0)
    fail(algorithm.c_str());
}

// Starts the peer and returns its address.
sockaddr_in serve(const char* name_space, const char* host, const std::string& algorithm) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int theirs = open((std::string("/run/netns/") + name_space).c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0 || theirs < 0 || setns(theirs, CLONE_NEWNET) != 0) fail(name_space);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (setns(own, CLONE_NEWNET) != 0) fail("setns");
  close(own);
  close(theirs);
  choose(listener, algorithm);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail("listen");
  std::thread([listener] {
    for (;;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) fail("accept");
      std::thread(receive, fd).detach();
    }
  }).detach();
  return address;
}

// Creates the file that contains the data of the jobs. Connections send the pages of this file, so that no data is
// copied.
constexpr std::size_t kDataBytes = std::size_t{1} << 15;
int data_file() {
  const int fd = memfd_create("data", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, kDataBytes) != 0) fail("memfd_create");
  return fd;
}

std::size_t send_some(int to, int data, std::size_t max) {
  off_t begin = 0;
  const ssize_t sent = sendfile(to, data, &begin, std::min(max, kDataBytes));
  if (sent <= 0) fail("sendfile");
  return static_cast<std::size_t>(sent);
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

int open_socket(const std::string& algorithm, unsigned mark) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  choose(fd, algorithm);
  if (mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0) fail("SO_MARK");
  return fd;
}

void say_other_algorithm(int fd, unsigned mark, const std::string& wanted) {
  char name[16] = "";
  socklen_t length = sizeof(name) - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) fail("TCP_CONGESTION");
  if (wanted != name) std::printf("job %u goes by %s\n", mark, name);
}

void run_job(Job& job, const sockaddr_in& address, const std::string& algorithm, Clock::time_point start,
             Clock::time_point end) {
  const int fd = open_socket(algorithm, job.mark);
  // The send buffer is small, so that the job cannot write data long before TCP sends it. The congestion window still
  // limits the data in flight.
  const int buffer = 1 << 18;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fail("connect");
  say_other_algorithm(fd, job.mark, algorithm);
  const std::uint64_t size = job.bytes;
  if (write(fd, &size, sizeof(size)) != sizeof(size)) fail("write");
  const int data = data_file();
  std::this_thread::sleep_until(start + milliseconds(job.start_ms));
  if (job.bytes == 0) {
    const Clock::time_point half = Clock::now() + (end - Clock::now()) / 2;
    std::uint64_t before = 0;
    bool past_half = false;
    while (Clock::now() < end) {
      send_some(fd, data, kDataBytes);
      if (!past_half && Clock::now() >= half) {
        past_half = true;
        before = acknowledged(fd);
      }
    }
    job.second_half = acknowledged(fd) - before;
    const linger reset{1, 0};  // lets close() drop queued data
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    close(data);
    return;
  }
  for (Clock::time_point begin = Clock::now(); begin < end;) {
    std::this_thread::sleep_for(milliseconds(job.compute_ms));
    for (std::size_t left = job.bytes; left > 0;) left -= send_some(fd, data, left);
    char answer = 0;
    read_all(fd, &answer, 1);
    const Clock::time_point now = Clock::now();
    job.iterations_ms.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
    begin = now;
  }
  close(fd);
  close(data);
}

// CC/CC.
struct Algorithms {
  explicit Algorithms(const std::string& text) : jobs(text.substr(0, text.find('/'))) {
    if (jobs.size() < text.size())
      peer = text.substr(jobs.size() + 1);
    else
      peer = jobs.starts_with("mltcp_") ? jobs.substr(6) : jobs;
  }
  std::string jobs;
  std::string peer;
};

int run(int argc, char** argv) {
  const Algorithms algorithms(argv[4]);
  const sockaddr_in address = serve(argv[2], argv[3], algorithms.peer);
  const Clock::time_point start = Clock::now() + milliseconds(100);
  const Clock::time_point end = start + milliseconds(static_cast<long>(std::atof(argv[5]) * 1000));
  std::vector<Job> jobs;
  for (int i = 6; i < argc; ++i) {
    Job job;
    if (std::sscanf(argv[i], "%u:%u:%lu:%u", &job.mark, &job.compute_ms, &job.bytes, &job.start_ms) != 4) fail(argv[i]);
    jobs.push_back(job);
  }
  std::vector<std::thread> threads;
  for (Job& job : jobs)
    threads.emplace_back(run_job, std::ref(job), std::cref(address), std::cref(algorithms.jobs), start, end);
  for (std::thread& thread : threads) thread.join();
  for (const Job& job : jobs) {
    std::printf("job %u:", job.mark);
    if (job.bytes == 0) std::printf(" %llu", static_cast<unsigned long long>(job.second_half));
    for (const double iteration : job.iterations_ms) std::printf(" %.1f", iteration);
    std::printf("\n");
  }
  return 0;
}

// Opens COUNT connections, and sends one byte on each, which the peer answers.
int many(char** argv) {
  const Algorithms algorithms(argv[4]);
  const sockaddr_in address = serve(argv[2], argv[3], algorithms.peer);
  const auto first = static_cast<unsigned>(std::atoi(argv[5]));
  const auto count = static_cast<unsigned>(std::atoi(argv[6]));
  for (unsigned i = 0; i < count; ++i) {
    const int fd = open_socket(algorithms.jobs, first + i);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fail("connect");
    const std::uint64_t size = 1;
    char answer = 0;
    if (write(fd, &size, sizeof(size)) != sizeof(size) || write(fd, "x", 1) != 1) fail("write");
    read_all(fd, &answer, 1);
  }
  std::printf("%u connections\n", count);
  std::fflush(stdout);
  for (char ignored = 0; read(0, &ignored, 1) > 0;) {
  }
  return 0;
}

long map_call(int what, bpf_attr& call) { return syscall(SYS_bpf, what, &call, sizeof(call)); }

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

int settings(char** argv) {
  const auto first = static_cast<unsigned>(std::atoi(argv[2]));
  const int count = std::atoi(argv[3]);
  bpf_attr pin{};
  pin.pathname = address_of("/sys/fs/bpf/mltcp/mltcp_settings");
  const long map = map_call(BPF_OBJ_GET, pin);
  if (map < 0) fail("BPF_OBJ_GET");
  mltcp_job_key key{};
  mltcp_settings value{};
  bpf_attr call{};
  call.map_fd = static_cast<std::uint32_t>(map);
  call.next_key = address_of(&key);
  if (map_call(BPF_MAP_GET_NEXT_KEY, call) != 0) fail("BPF_MAP_GET_NEXT_KEY");
  call.key = address_of(&key);
  call.value = address_of(&value);
  if (map_call(BPF_MAP_LOOKUP_ELEM, call) != 0) fail("BPF_MAP_LOOKUP_ELEM");
  for (unsigned i = 0; i < static_cast<unsigned>(std::abs(count)); ++i) {
    key = {first + i, MLTCP_JOB_MARK, 0};
    if (count < 0) call.value = 0;  // BPF_MAP_DELETE_ELEM requires 0 here
    if (map_call(count < 0 ? BPF_MAP_DELETE_ELEM : BPF_MAP_UPDATE_ELEM, call) != 0) fail("mltcp_settings");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::string action = argc > 1 ? argv[1] : "";
  int status = 2;
  if (action == "run" && argc >= 7) {
    status = run(argc, argv);
  } else if (action == "many" && argc == 7) {
    status = many(argv);
  } else if (action == "settings" && argc == 4) {
    status = settings(argv);
  } else {
    std::fprintf(stderr,
                 "tcp_jobs run NAMESPACE ADDRESS CC SECONDS MARK:COMPUTE_MS:BYTES:START_MS... | "
                 "many NAMESPACE ADDRESS CC FIRST COUNT | settings FIRST COUNT\n");
  }
  std::fflush(stdout);
  std::_Exit(status);  // ends the process without waiting for the threads of the peer
}
