// All-reduce over Gloo's own TCP and over MLTCP, side by side: two processes on the loopback, a ring, bus bandwidth by
// size. Prints a table in Markdown.
//
//   build/bin/gloo_bench [largest length in bytes, 64 MiB unless told] [seconds a cell, 1 unless told]
//
// Bus bandwidth is 2 (n - 1) / n times the length by the time of one all-reduce, as in nccl-tests: here, of two ranks,
// the length by the time. The transports take turns, and of the times the median counts.
#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

namespace {

using Clock = std::chrono::steady_clock;
using Context = std::shared_ptr<gloo::rendezvous::Context>;

constexpr int kRanks = 2;
constexpr std::size_t kFirst = 1024;

Context connect(int rank, gloo::rendezvous::Store& store, const char* name,
                std::shared_ptr<gloo::transport::Device> device) {
  gloo::rendezvous::PrefixStore own(name, store);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, kRanks);
  context->connectFullMesh(own, device);
  return context;
}

double allreduce_us(const Context& context, std::vector<float>& data) {
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  const auto begin = Clock::now();
  gloo::AllreduceOptions options(context);
  options.setOutput(data.data(), data.size());
  options.setReduceFunction(
      [](void* out, const void* a, const void* b, std::size_t n) { gloo::max<float>(out, a, b, n); });
  gloo::allreduce(options);
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Rank 0 says how often, for both.
int agree(const Context& context, int rounds) {
  gloo::BroadcastOptions options(context);
  options.setOutput(&rounds, 1);
  options.setRoot(0);
  gloo::broadcast(options);
  return rounds;
}

void run(int rank, const std::string& folder, std::size_t longest, double seconds) {
  gloo::rendezvous::FileStore store(folder);
  gloo::transport::mltcp::attr ours;
  ours.hostname = "127.0.0.1";
  const std::vector<Context> contexts{
      connect(rank, store, "tcp", gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"))),
      connect(rank, store, "mltcp", gloo::transport::mltcp::CreateDevice(ours))};
  if (rank == 0)
    fmt::print(
        "| bytes | Gloo's TCP, Gbit/s | MLTCP, Gbit/s | Gloo's TCP, us | MLTCP, us | times "
        "|\n|---|---|---|---|---|---|\n");
  for (std::size_t bytes = kFirst; bytes <= longest; bytes *= 4) {
    std::vector<float> data(bytes / sizeof(float), 1.0F);
    std::vector<std::vector<double>> times(contexts.size());
    double first = 1;
    for (const Context& context : contexts)
      for (int i = 0; i < 2; ++i) first = allreduce_us(context, data);
    const int rounds = agree(contexts[0], static_cast<int>(std::clamp(seconds * 1e6 / first / 2, 5.0, 2000.0)));
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < contexts.size(); ++i) times[i].push_back(allreduce_us(contexts[i], data));
    for (auto& each : times) std::nth_element(each.begin(), each.begin() + rounds / 2, each.end());
    if (rank != 0) continue;
    const double tcp = times[0][static_cast<std::size_t>(rounds / 2)];
    const double mltcp = times[1][static_cast<std::size_t>(rounds / 2)];
    const auto gbps = [&](double us) { return static_cast<double>(bytes) * 8 / us / 1e3; };
    fmt::print("| {} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {} |\n", bytes, gbps(tcp), gbps(mltcp), tcp, mltcp, rounds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t longest = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : std::size_t{64} << 20;
  const double seconds = count > 2 ? std::strtod(arguments[2], nullptr) : 1;
  std::string folder = (std::filesystem::temp_directory_path() / "gloo-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const pid_t child = fork();
  int failed = 0;
  try {
    run(child == 0 ? 1 : 0, folder, longest, seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gloo_bench: {}\n", error.what());
    failed = 1;
  }
  if (child == 0) _exit(failed);
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  return failed;
}
