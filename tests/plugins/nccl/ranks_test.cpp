// Tests ranks in separate processes: a ring of eight ranks that reduces, and peers that are killed. The test starts
// this program again for each rank, because a forked process would inherit the plug-in that the test has loaded.
//
//   plugins_nccl_ranks_test --rank ROLE NUMBER RANKS HANDLES_IN HANDLES_OUT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <numeric>

#include "loaded_plugin.h"

namespace mltcp::nccl::harness {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 8;
constexpr std::size_t kLong = 64UL << 20U;

struct Pipe {
  int out = -1;
  int in = -1;
};

void write_handle(int file, const Handle& handle) {
  if (write(file, handle.bytes, sizeof handle.bytes) != sizeof handle.bytes) throw std::runtime_error("write fails");
}

Handle read_handle(int file) {
  Handle handle;
  if (read(file, handle.bytes, sizeof handle.bytes) != sizeof handle.bytes) throw std::runtime_error("read fails");
  return handle;
}

void ready(Net& net) {
  if (net.init(&log) != Result::success) throw std::runtime_error(take_lines().front().text);
}

// ---- What ranks do ----

/// Sends `size` bytes to the next rank, and receives the same number of bytes from the previous rank.
void shift(Net& net, const Pair& pair, const std::uint32_t* out, std::uint32_t* in, std::size_t size) {
  void* const receiving = receive(net, pair.receive_comm, in, size);
  void* const sending = send(net, pair.send_comm, const_cast<std::uint32_t*>(out), size);
  if (finish(net, receiving) != Result::success || finish(net, sending) != Result::success)
    throw std::runtime_error(take_lines().front().text);
}

/// All-reduce on a ring: first the partial sums pass all ranks, then the results.
void reduce(Net& net, const Pair& pair, int rank, int ranks, std::vector<std::uint32_t>& values) {
  const std::size_t part = values.size() / static_cast<std::size_t>(ranks);
  const auto at = [&](int index) {
    return values.data() + static_cast<std::size_t>((index + 2 * ranks) % ranks) * part;
  };
  std::vector<std::uint32_t> incoming(part);
  for (int step = 0; step < ranks - 1; ++step) {
    shift(net, pair, at(rank - step), incoming.data(), part * sizeof(std::uint32_t));
    std::uint32_t* const sums = at(rank - step - 1);
    for (std::size_t i = 0; i < part; ++i) sums[i] += incoming[i];
  }
  for (int step = 0; step < ranks - 1; ++step)
    shift(net, pair, at(rank + 1 - step), at(rank - step), part * sizeof(std::uint32_t));
}

int ring(Net& net, int rank, int ranks, int next, int own) {
  Pair pair;
  Handle handle;
  if (net.listen(0, handle, &pair.listen_comm) != Result::success) return 3;
  write_handle(own, handle);
  connect_again(net, net, read_handle(next), pair);
  constexpr std::size_t count = std::size_t{kRanks} * 40'000;
  for (std::uint32_t iteration = 1; iteration <= 3; ++iteration) {
    std::vector<std::uint32_t> values(count);
    std::iota(values.begin(), values.end(), static_cast<std::uint32_t>(rank) * iteration);
    reduce(net, pair, rank, ranks, values);
    for (std::uint32_t i = 0; i < count; ++i)
      if (values[i] != static_cast<std::uint32_t>(ranks) * i + iteration * 28) return 4;
  }
  close(net, net, pair);
  return net.finalize() == Result::success ? 0 : 5;
}

/// Receives one short message, begins to receive a long one, and waits until the test kills this process.
int victim_receives(Net& net, int own) {
  void* listen_comm = nullptr;
  void* comm = nullptr;
  Handle handle;
  if (net.listen(0, handle, &listen_comm) != Result::success) return 3;
  write_handle(own, handle);
  while (comm == nullptr)
    if (net.accept(listen_comm, &comm) != Result::success) return 4;
  std::vector<char> buffer(kLong);
  if (finish(net, receive(net, comm, buffer.data(), 1)) != Result::success) return 5;
  receive(net, comm, buffer.data(), buffer.size());
  for (;;) pause();
}

/// Sends one short message, and waits until the test kills this process.
int victim_sends(Net& net, int next) {
  Handle handle = read_handle(next);
  void* comm = nullptr;
  while (comm == nullptr)
    if (net.connect(0, handle, &comm) != Result::success) return 4;
  char byte = 1;
  if (finish(net, send(net, comm, &byte, 1)) != Result::success) return 5;
  for (;;) pause();
}

int be_a_rank(const std::vector<std::string>& arguments) {
  alarm(100);
  const std::string& role = arguments.at(0);
  const int rank = std::stoi(arguments.at(1));
  const int ranks = std::stoi(arguments.at(2));
  const int next = std::stoi(arguments.at(3));
  const int own = std::stoi(arguments.at(4));
  try {
    const Library library(MLTCP_NCCL_PLUGIN);
    // Each rank imitates a different version of NCCL. Ranks with different versions must work together.
    const auto net = library.newest_net(7 + rank % 5);
    ready(*net);
    if (role == "ring") return ring(*net, rank, ranks, next, own);
    return role == "receiver" ? victim_receives(*net, own) : victim_sends(*net, next);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

// ---- The tests ----

class Ranks : public testing::Test {
 protected:
  Ranks() {
    setenv("MLTCP_DEVICE", "udp:127.0.0.1", 1);
    setenv("MLTCP_PEER_TIMEOUT_MS", "10000", 1);
  }
  ~Ranks() override {
    for (const pid_t process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    for (const int file : files_) ::close(file);
  }

  Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("pipe fails");
    files_.insert(files_.end(), ends.begin(), ends.end());
    return {ends[0], ends[1]};
  }

  pid_t start(const std::string& role, int rank, int ranks, int next, int own) {
    std::vector<std::string> words{
        "/proc/self/exe",     "--rank",           role, std::to_string(rank), std::to_string(ranks),
        std::to_string(next), std::to_string(own)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    processes_.push_back(process);
    return process;
  }

  /// Waits for the process to end. Returns its exit status, or -1 if a signal ended it.
  int status_of(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    std::erase(processes_, process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::vector<int> files_;
  std::vector<pid_t> processes_;
};

TEST_F(Ranks, ring_of_eight__reduces) {
  std::vector<Pipe> pipes;
  for (int i = 0; i < kRanks; ++i) pipes.push_back(make_pipe());
  std::vector<pid_t> ranks;
  for (int i = 0; i < kRanks; ++i)
    ranks.push_back(start("ring", i, kRanks, pipes[static_cast<std::size_t>((i + 1) % kRanks)].out,
                          pipes[static_cast<std::size_t>(i)].in));
  for (const pid_t rank : ranks) EXPECT_EQ(status_of(rank), 0);
}

/// Expects that the request ends with an error. Returns the time until then in milliseconds.
std::int64_t time_to_error(Net& net, void* request) {
  const auto begin = Clock::now();
  EXPECT_EQ(finish(net, request), Result::remote_error);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
}

TEST_F(Ranks, receiver_that_is_killed__ends_sends_in_time) {
  setenv("MLTCP_PEER_TIMEOUT_MS", "1000", 1);
  const Pipe handles = make_pipe();
  const pid_t victim = start("receiver", 3, 2, -1, handles.in);
  const Library library(MLTCP_NCCL_PLUGIN);
  const auto net = library.newest_net();
  ready(*net);
  Handle handle = read_handle(handles.out);
  void* comm = nullptr;
  while (comm == nullptr) ASSERT_EQ(net->connect(0, handle, &comm), Result::success);
  std::vector<char> message(kLong);
  ASSERT_EQ(finish(*net, send(*net, comm, message.data(), 1)), Result::success);
  void* const first = send(*net, comm, message.data(), message.size());
  // The peer has posted no buffer for this second message.
  void* const second = send(*net, comm, message.data(), message.size());
  kill(victim, SIGKILL);
  EXPECT_EQ(status_of(victim), -1);
  take_lines();
  EXPECT_LT(time_to_error(*net, first), 3000);
  EXPECT_LT(time_to_error(*net, second), 1000);
  ASSERT_EQ(take_lines().size(), 1U);
  // After the error, the plug-in still accepts a send, but the request of this send also ends with an error.
  void* const third = send(*net, comm, message.data(), 1);
  EXPECT_LT(time_to_error(*net, third), 1000);
  EXPECT_EQ(net->close_send(comm), Result::success);
  EXPECT_EQ(net->finalize(), Result::success);
}

TEST_F(Ranks, sender_that_is_killed__ends_receives_in_time) {
  setenv("MLTCP_PEER_TIMEOUT_MS", "1000", 1);
  const Library library(MLTCP_NCCL_PLUGIN);
  const auto net = library.newest_net();
  ready(*net);
  Handle handle;
  void* listen_comm = nullptr;
  ASSERT_EQ(net->listen(0, handle, &listen_comm), Result::success);
  const Pipe handles = make_pipe();
  write_handle(handles.in, handle);
  const pid_t victim = start("sender", 4, 2, handles.out, -1);
  void* comm = nullptr;
  while (comm == nullptr) ASSERT_EQ(net->accept(listen_comm, &comm), Result::success);
  std::vector<char> buffer(1000);
  ASSERT_EQ(finish(*net, receive(*net, comm, buffer.data(), buffer.size())), Result::success);
  void* const receiving = receive(*net, comm, buffer.data(), buffer.size());
  kill(victim, SIGKILL);
  EXPECT_EQ(status_of(victim), -1);
  EXPECT_LT(time_to_error(*net, receiving), 3000);
  EXPECT_EQ(net->close_receive(comm), Result::success);
  EXPECT_EQ(net->close_listen(listen_comm), Result::success);
  EXPECT_EQ(net->finalize(), Result::success);
}

TEST_F(Ranks, handle_of_a_rank_that_was_killed__is_an_error_in_time) {
  setenv("MLTCP_PEER_TIMEOUT_MS", "500", 1);
  const Pipe handles = make_pipe();
  const pid_t victim = start("receiver", 1, 2, -1, handles.in);
  Handle handle = read_handle(handles.out);
  kill(victim, SIGKILL);
  EXPECT_EQ(status_of(victim), -1);
  const Library library(MLTCP_NCCL_PLUGIN);
  const auto net = library.newest_net();
  ready(*net);
  take_lines();
  const auto begin = Clock::now();
  void* comm = nullptr;
  Result result = Result::success;
  while (result == Result::success && comm == nullptr) result = net->connect(0, handle, &comm);
  EXPECT_EQ(result, Result::remote_error);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0].text, HasSubstr("lo can't connect to 127.0.0.1:"));
  EXPECT_EQ(net->finalize(), Result::success);
}

}  // namespace
}  // namespace mltcp::nccl::harness

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--rank")
    return mltcp::nccl::harness::be_a_rank(std::vector<std::string>(argv + 2, argv + argc));
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
