// Measures the cost that the NCCL plug-in adds to its endpoint. One process sends messages of 1 to 64 MB to another
// process, over UDP on the loopback. Eight messages are in flight, as with NCCL. Both sides poll for completions and
// yield between polls, like NCCL's proxy thread, so that the cases differ only in the plug-in. The cases alternate, and
// the result is the best of several rounds. The third column is an endpoint without a thread: the polling loop drives
// it. The last line is half the round-trip time of messages of 8 bytes.
//
//   build/bin/nccl_bench [PLUGIN.so [ROUNDS]]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../tests/plugins/nccl/loaded_plugin.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/socket/register_datapath.h"

namespace {

using namespace mltcp;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kUnderWay = 8;
constexpr std::size_t kBytes = 256UL << 20U;  // bytes per measurement
constexpr int kRoundTrips = 2000;

/// One direction of a connection.
class Lane {
 public:
  virtual ~Lane() = default;
  virtual void* post(std::span<std::byte> bytes) = 0;
  virtual bool ended(void* request) = 0;

  void wait(void* request) {
    while (!ended(request)) std::this_thread::yield();
  }
};

/// The connections of one process to its peer, in both directions.
class End {
 public:
  virtual ~End() = default;
  virtual nccl::harness::Handle handle() = 0;
  virtual void connect(nccl::harness::Handle peer) = 0;
  virtual Lane& out() = 0;
  virtual Lane& in() = 0;
};

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + " fails");
}

/// Throws an exception with the plug-in's last message if `result` is an error.
void check(nccl::Result result, const char* what) {
  if (result == nccl::Result::success) return;
  const std::vector<nccl::harness::Line> said = nccl::harness::take_lines();
  throw std::runtime_error(fmt::format("{} fails{}", what, said.empty() ? "" : ": " + said.back().text));
}

// ---- Through the plug-in ----

class NetLane final : public Lane {
 public:
  NetLane(nccl::harness::Net& net, void* comm, bool sends) : net_(net), comm_(comm), sends_(sends) {}
  void* post(std::span<std::byte> bytes) override {
    void* request = nullptr;
    while (request == nullptr) {
      const nccl::Result result = sends_ ? net_.send(comm_, bytes.data(), bytes.size(), &request)
                                         : net_.receive(comm_, bytes.data(), bytes.size(), &request);
      check(result == nccl::Result::success, "isend or irecv");
    }
    return request;
  }
  bool ended(void* request) override {
    int done = 0;
    check(net_.test(request, &done, nullptr) == nccl::Result::success, "test");
    return done != 0;
  }

 private:
  nccl::harness::Net& net_;
  void* comm_;
  bool sends_;
};

class NetEnd final : public End {
 public:
  explicit NetEnd(const std::string& plugin) : library_(plugin), net_(library_.newest_net()) {
    check(net_ != nullptr, "finding NCCL's net API in it");
    check(net_->init(&nccl::harness::log), "init");
    check(net_->listen(0, handle_, &listen_comm_), "listen");
  }
  nccl::harness::Handle handle() override { return handle_; }
  void connect(nccl::harness::Handle peer) override {
    nccl::harness::Pair pair;
    pair.listen_comm = listen_comm_;
    nccl::harness::connect_again(*net_, *net_, peer, pair);
    out_ = std::make_unique<NetLane>(*net_, pair.send_comm, true);
    in_ = std::make_unique<NetLane>(*net_, pair.receive_comm, false);
  }
  Lane& out() override { return *out_; }
  Lane& in() override { return *in_; }

 private:
  nccl::harness::Library library_;
  std::unique_ptr<nccl::harness::Net> net_;
  nccl::harness::Handle handle_;
  void* listen_comm_ = nullptr;
  std::unique_ptr<NetLane> out_;
  std::unique_ptr<NetLane> in_;
};

// ---- Through the endpoint, without the plug-in ----

class EndpointLane final : public Lane {
 public:
  EndpointLane(endpoint::Endpoint& endpoint, endpoint::ConnectionHandle connection, bool sends)
      : endpoint_(endpoint), connection_(connection), sends_(sends) {}
  void* post(std::span<std::byte> bytes) override {
    endpoint::OperationHandle operation = 0;
    const endpoint::Code code = sends_ ? endpoint_.send(connection_, bytes, 0, {}, operation)
                                       : endpoint_.receive(connection_, bytes, 0, {}, operation);
    check(code == endpoint::Code::ok, "send or receive");
    operations_[next_ % operations_.size()] = operation;
    return &operations_[next_++ % operations_.size()];
  }
  bool ended(void* request) override {
    const endpoint::OperationHandle operation = *static_cast<endpoint::OperationHandle*>(request);
    endpoint::Completion end;
    if (endpoint_.config().driving == endpoint::Driving::caller) endpoint_.progress();
    const endpoint::Code code = endpoint_.test(operation, end);
    if (code == endpoint::Code::timed_out) return false;
    check(code == endpoint::Code::ok && end.code == endpoint::Code::ok, "an operation");
    return true;
  }

 private:
  endpoint::Endpoint& endpoint_;
  endpoint::ConnectionHandle connection_;
  bool sends_;
  std::array<endpoint::OperationHandle, 64> operations_{};
  std::size_t next_ = 0;
};

class EndpointEnd final : public End {
 public:
  explicit EndpointEnd(endpoint::Driving driving) {
    endpoint::EndpointConfig config;
    config.datapath.device = "udp:127.0.0.1";
    config.address = Address::parse("127.0.0.1");
    config.driving = driving;
    endpoint_ = std::make_unique<endpoint::Endpoint>(config);
    check(endpoint_->create_job({.number = 1, .learn_iterations = true}, job_) == endpoint::Code::ok, "create_job");
  }
  nccl::harness::Handle handle() override {
    nccl::harness::Handle handle;
    const auto blob = endpoint_->address().bytes();
    std::memcpy(handle.bytes, blob.data(), blob.size());
    return handle;
  }
  void connect(nccl::harness::Handle peer) override {
    endpoint::ConnectionHandle connection = 0;
    const auto blob = std::as_bytes(std::span(peer.bytes)).first(endpoint_->address().bytes().size());
    endpoint::OperationHandle operation = 0;
    check(endpoint_->connect(blob, {}, connection, &operation) == endpoint::Code::ok, "connect");
    endpoint_->attach(connection, job_);
    endpoint::Completion end;
    check(endpoint_->wait(operation, end, Nanos(10'000'000'000)) == endpoint::Code::ok, "connect");
    out_ = std::make_unique<EndpointLane>(*endpoint_, connection, true);
    std::array<endpoint::Completion, 1> event;
    std::size_t count = 0;
    check(endpoint_->events().wait(event, count, Nanos(10'000'000'000)) == endpoint::Code::ok, "accept");
    in_ = std::make_unique<EndpointLane>(*endpoint_, event[0].connection, false);
  }
  Lane& out() override { return *out_; }
  Lane& in() override { return *in_; }

 private:
  std::unique_ptr<endpoint::Endpoint> endpoint_;
  endpoint::JobHandle job_ = 0;
  std::unique_ptr<EndpointLane> out_;
  std::unique_ptr<EndpointLane> in_;
};

// ---- Measurements ----

using Open = std::function<std::unique_ptr<End>()>;

/// Posts `count` messages, with kUnderWay in flight. Returns the seconds from the end of the first message to the end
/// of the last one.
double stream(Lane& lane, std::size_t size, std::size_t count) {
  std::vector<std::byte> memory(size * 2);
  std::vector<void*> requests;
  std::size_t ended = 0;
  Clock::time_point begin;
  while (ended < count) {
    while (requests.size() < count && requests.size() - ended < kUnderWay)
      requests.push_back(lane.post(std::span(memory).subspan(requests.size() % 2 * size, size)));
    lane.wait(requests[ended++]);
    if (ended == 1) begin = Clock::now();
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Returns the rate in Gbit/s. If `size` is 0, returns half the round-trip time in microseconds.
double run_end(End& end, bool first, std::size_t size) {
  if (size > 0) {
    const std::size_t count = kBytes / size + 1;
    Lane& lane = first ? end.out() : end.in();
    return static_cast<double>(count - 1) * static_cast<double>(size) * 8e-9 / stream(lane, size, count);
  }
  std::array<std::byte, 8> bytes{};
  const auto begin = Clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    void* const receiving = end.in().post(bytes);
    if (first) end.out().wait(end.out().post(bytes));
    end.in().wait(receiving);
    if (!first) end.out().wait(end.out().post(bytes));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() * 1e6 / kRoundTrips / 2;
}

/// Starts a process that writes its rate to the pipe `result`. Exchanges handles with the peer through the pipes `give`
/// and `take`.
pid_t start(const Open& open, bool first, std::size_t size, int give, int take, int result) {
  const pid_t process = fork();
  if (process != 0) return process;
  try {
    alarm(60);
    const std::unique_ptr<End> end = open();
    const nccl::harness::Handle own = end->handle();
    nccl::harness::Handle peer;
    check(write(give, &own, sizeof own) == sizeof own && read(take, &peer, sizeof peer) == sizeof peer, "a pipe");
    end->connect(peer);
    const double value = run_end(*end, first, size);
    check(first || write(result, &value, sizeof value) == sizeof value, "a pipe");
    usleep(100'000);  // time to send the last acknowledgements
  } catch (const std::exception& error) {
    fmt::print(stderr, "nccl_bench: {}\n", error.what());
    _exit(1);
  }
  _exit(0);
}

double measure(const Open& open, std::size_t size) {
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& one : pipes) check(pipe(one.data()) == 0, "pipe");
  const pid_t sender = start(open, true, size, pipes[0][1], pipes[1][0], pipes[2][1]);
  const pid_t receiver = start(open, false, size, pipes[1][1], pipes[0][0], pipes[2][1]);
  close(pipes[2][1]);
  double value = 0;
  check(read(pipes[2][0], &value, sizeof value) == sizeof value, "a measurement");
  waitpid(sender, nullptr, 0);
  waitpid(receiver, nullptr, 0);
  for (auto& one : pipes)
    for (const int file : one)
      if (file != pipes[2][1]) close(file);
  return value;
}

void table(const std::array<Open, 3>& kinds, int rounds) {
  fmt::print("| messages of | plug-in | endpoint | endpoint, no thread of its own | plug-in by endpoint |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const std::size_t megabytes : {1UL, 4UL, 16UL, 64UL, 0UL}) {
    const bool latency = megabytes == 0;
    std::array<double, 3> best{};
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const double value = measure(kinds[i], megabytes << 20U);
        best[i] = best[i] == 0 ? value : latency ? std::min(best[i], value) : std::max(best[i], value);
      }
    const auto text = [latency](double value) {
      return latency ? fmt::format("{:.1f} us", value) : fmt::format("{:.2f} Gbit/s", value);
    };
    fmt::print("| {} | {} | {} | {} | {:.3f} |\n", latency ? "8 B" : fmt::format("{} MB", megabytes), text(best[0]),
               text(best[1]), text(best[2]), best[0] / best[1]);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    fmt::print("usage: nccl_bench [PLUGIN.so [ROUNDS]]\n");
    return std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  setenv("MLTCP_DEVICE", "udp:127.0.0.1", 1);
  const std::string plugin = argc > 1 ? argv[1] : MLTCP_NCCL_PLUGIN;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  mltcp::socket::register_datapath();
  try {
    table({[&] { return std::make_unique<NetEnd>(plugin); },
           [] { return std::make_unique<EndpointEnd>(endpoint::Driving::threads); },
           [] { return std::make_unique<EndpointEnd>(endpoint::Driving::caller); }},
          std::max(rounds, 1));
  } catch (const std::exception& error) {
    fmt::print(stderr, "nccl_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
