// Compares ring all-reduce over Gloo's own TCP and over MLTCP: two processes on the loopback, or one on each of two
// hosts that share a folder. Prints bus bandwidth by size as a Markdown table.
//
//   build/bin/gloo_bench [BYTES [SECONDS]]            default: up to 64 MiB, 1 s per cell
//   build/bin/gloo_bench ... --rank 0 --folder FOLDER --address 10.77.0.1        and rank 1 on the other host
//
// The two hosts can be those of a testbed, in namespaces of this machine (docs/how-to/testbed.md).
// docs/reference/tables/runtimes.md has the command for this.
//
// Bus bandwidth is 2 (n - 1) / n times the length divided by the time of an all-reduce, as in nccl-tests; with two
// ranks, length / time. The transports run alternately, and the result is the median.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

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

/// Returns on both ranks the `rounds` that rank 0 passes, so that both ranks repeat equally often.
int agree(const Context& context, int rounds) {
  gloo::BroadcastOptions options(context);
  options.setOutput(&rounds, 1);
  options.setRoot(0);
  gloo::broadcast(options);
  return rounds;
}

void run(int rank, const std::string& folder, const std::string& address, std::size_t longest, double seconds) {
  gloo::rendezvous::FileStore store(folder);
  gloo::transport::mltcp::attr ours;
  ours.hostname = address;
  const std::vector<Context> contexts{
      connect(rank, store, "tcp", gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()))),
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

/// Runs this rank. If this throws an exception, prints its message. Returns the exit status.
int try_run(int rank, const std::string& folder, const std::string& address, std::size_t longest, double seconds) {
  try {
    run(rank, folder, address, longest, seconds);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gloo_bench: {}\n", error.what());
    return 1;
  }
}

int run_both(std::size_t longest, double seconds) {
  std::string folder = (std::filesystem::temp_directory_path() / "gloo-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "gloo_bench: no folder {}; set TMPDIR to one that can be written to\n", folder);
    return 1;
  }
  const pid_t child = fork();
  const int failed = try_run(child == 0 ? 1 : 0, folder, "127.0.0.1", longest, seconds);
  if (child == 0) _exit(failed);
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  return failed != 0 || status != 0 ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t longest = std::size_t{64} << 20;
  double seconds = 1;
  int rank = -1;
  std::string folder;
  std::string address;
  CLI::App app("All-reduce over Gloo's TCP and over MLTCP, side by side");
  app.add_option("BYTES", longest, "Largest length")->check(CLI::Range(std::size_t{1024}, std::size_t{1} << 32));
  app.add_option("SECONDS", seconds, "Of each cell")->check(CLI::Range(0.01, 60.0));
  auto* const rank_option =
      app.add_option("--rank", rank, "This host's, of two hosts")->check(CLI::Range(0, kRanks - 1));
  auto* const folder_option = app.add_option("--folder", folder, "Empty, and the same for both ranks");
  auto* const address_option = app.add_option("--address", address, "This host's");
  rank_option->needs(folder_option)->needs(address_option);
  folder_option->needs(rank_option);
  address_option->needs(rank_option);
  CLI11_PARSE(app, count, arguments);
  return rank < 0 ? run_both(longest, seconds) : try_run(rank, folder, address, longest, seconds);
}
